"""The name that `epicycle.automl` had in 0.1.0."""

from epicycle.automl import *  # noqa: F403
