"""Diagnoses of a trained model: learning curve, explanations, a surrogate tree."""
