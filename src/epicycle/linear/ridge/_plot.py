"""The picture of a choice of alpha: error against alpha, degrees of freedom along the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epicycle.core._plot_style import axes_of, ink, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epicycle.linear.ridge._ridge_cv import RidgeCV

__all__ = ["draw_scores"]


@styled
def draw_scores(model: RidgeCV, ax: Axes | None) -> Axes:
    """Draw the scores of every alpha on `ax`, or on axes of their own."""
    ax = axes_of(ax)
    order = np.argsort(model.alphas_)
    order = order[model.alphas_[order] > 0]
    alphas, sign = model.alphas_[order], 1 if model.scoring is not None else -1
    curves = sign * np.atleast_2d(model.scores_)[:, order]
    for t, curve in enumerate(curves):
        label = {"loo": "leave-one-out", "gcv": "generalised"}[model.criterion] if model.cv is None else "mean of folds"
        ax.plot(alphas, curve, lw=1.6, label=label if len(curves) == 1 else f"target {t}")
    if hasattr(model, "fold_scores_") and model.fold_scores_.ndim == 2 and model.fold_scores_.shape[1] > 1:
        se = model.fold_scores_[order].std(axis=1, ddof=1) / np.sqrt(model.fold_scores_.shape[1])
        ax.fill_between(alphas, curves[0] - se, curves[0] + se, alpha=0.2, lw=0, label="± standard error")
    for t, alpha in enumerate(np.atleast_1d(model.alpha_)):
        ax.axvline(alpha, color=ink(ax, 0.7), ls="--", lw=1, label=f"chosen: alpha {alpha:.3g}" if t == 0 else None)
    ax.set_xscale("log")
    ax.set_xlabel(r"$\alpha$")
    ax.set_ylabel("mean squared error of rows left out" if model.scoring is None else "score of rows left out")
    ax.legend()
    _mark_degrees(ax, alphas, model.dof_path_[order])
    return ax


def _mark_degrees(ax: Axes, alphas: np.ndarray, dof: np.ndarray) -> None:
    if len(alphas) < 2:
        return
    shown = np.unique(np.linspace(0, len(alphas) - 1, 6).round().astype(int))
    top = ax.secondary_xaxis("top")
    top.set_xticks(alphas[shown], [f"{dof[i]:.3g}" for i in shown])
    top.set_xticks([], minor=True)
    top.set_xlabel("effective degrees of freedom")
