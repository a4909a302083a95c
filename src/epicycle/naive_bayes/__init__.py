"""Naive Bayes: features that are independent given the class."""

from epicycle.naive_bayes._bernoulli import BernoulliNB
from epicycle.naive_bayes._categorical import CategoricalNB
from epicycle.naive_bayes._complement import ComplementNB
from epicycle.naive_bayes._gaussian import GaussianNB
from epicycle.naive_bayes._log_odds import LogOdds
from epicycle.naive_bayes._mixed import MixedNB
from epicycle.naive_bayes._multinomial import MultinomialNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "LogOdds",
    "MixedNB",
    "MultinomialNB",
]
