"""How strong hidden confounding would have to be, and tests that an estimate should pass."""
