"""Arguments that all forests share."""

from __future__ import annotations

from epicycle.core._parameters import AnyOf, Boolean, Domain, Integer, NoneOr, Real
from epicycle.tree.cart._parameters import growth_domains

__all__ = ["forest_domains"]


def forest_domains() -> dict[str, Domain]:
    """Domains of the arguments that classifiers and regressors share."""
    return {
        **growth_domains(),
        "n_estimators": Integer(1),
        "bootstrap": Boolean(),
        "max_samples": NoneOr(AnyOf(Integer(1), Real(0, 1, inclusive=(False, True)))),
        "oob_score": Boolean(),
        "max_bins": NoneOr(Integer(2, 255)),
        "warm_start": Boolean(),
        "verbose": AnyOf(Boolean(), Integer(0)),
    }
