"""Effects of a treatment on an outcome from data, given the covariates that confound them."""
