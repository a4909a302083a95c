"""Networks that look at images."""

from epicycle.nets.vision._conv_net_classifier import ConvNetClassifier

__all__ = ["ConvNetClassifier"]
