"""Hidden Markov models: sequences whose observations depend on states that were not seen."""

from epicycle.hmm._hidden_markov_model import HiddenMarkovModel

__all__ = ["HiddenMarkovModel"]
