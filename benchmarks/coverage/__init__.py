"""How often 95% intervals of causal effects hold the effect: simulated studies under the assumptions of each method."""
