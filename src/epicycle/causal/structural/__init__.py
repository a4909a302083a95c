"""Structural causal models: equations, interventions, counterfactuals, mediation."""
