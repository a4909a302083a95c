"""Sections of pages about several runs."""
