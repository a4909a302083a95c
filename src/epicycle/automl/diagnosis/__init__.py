"""What is said about a trained model: learning curve, explanations, a surrogate tree."""
