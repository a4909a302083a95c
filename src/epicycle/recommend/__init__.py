"""Recommenders: factors of users and items from ratings and from implicit feedback."""

from epicycle.recommend._collaborative_filtering import CollaborativeFiltering

__all__ = ["CollaborativeFiltering"]
