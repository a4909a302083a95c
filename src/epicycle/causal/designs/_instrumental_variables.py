r"""`InstrumentalVariables`: effects of a treatment that is confounded, from what moves the treatment and nothing else.

With the controls W (intercept first) removed from y, d and Z by least squares, and M = I - Z(Z'Z)^{-1}Z', the k-class:

    b = d'(I - k M) y / d'(I - k M) d,   k = 1 (2SLS),   k = min_b u'u / u'Mu, u = y - b d (LIML),   k_LIML - 1/(n - K)

The first-order condition is d'(I - k M)(y - b d) = 0, whose residual is the certificate.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import stats

from epicycle.causal.designs._anderson_rubin import AndersonRubin
from epicycle.causal.designs._confidence_set import ConfidenceSet
from epicycle.causal.designs._design import Design
from epicycle.causal.designs._hypothesis_test import HypothesisTest
from epicycle.causal.designs._inputs import (
    LARGEST,
    codes,
    column,
    columns,
    correction,
    grouped,
    residuals_after,
    row_weights,
    solved,
    unit_of,
)
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Real, check_parameters
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, labels_clear, styled
from epicycle.core.estimator import in_catalogue, stores_arguments
from epicycle.stats._summary import Summary, central_quantile, wald_summary

Array = np.ndarray


@in_catalogue("causal", "H1", certificate="stationarity")
class InstrumentalVariables(Design):
    r"""Effect of a treatment by instruments: two-stage least squares, LIML or Fuller's estimator.

    .. math:: y = \beta d + W \gamma + u, \qquad d = Z \pi + W \delta + v, \qquad \mathrm{E}[Z'u] = 0

    d may depend on u; Z acts on y through d alone and moves d. With one instrument for everybody whose treatment
    it changes in one direction, :math:`\beta` is the mean effect on those it moves.

    Parameters
    ----------
    method : {"2sls", "liml", "fuller"}, default="2sls"
        LIML and Fuller's (1977) correction of it are less biased where instruments are weak or many.
    covariance : {"robust", "classical"}, default="robust"
        Standard errors for noise of any variance, or for noise of one variance. With `groups` they are clustered.
    confidence : float, default=0.95
        Level of intervals and sets.

    Attributes
    ----------
    effect_ : float
        :math:`\beta`.
    standard_error_ : float
        Its standard error.
    interval_ : array (2,)
        Student's interval. With weak instruments it is not to be trusted; `anderson_rubin` is.
    kappa_ : float
        k of the k-class.
    first_stage_ : array (l,)
        :math:`\pi`.
    first_stage_F_ : HypothesisTest
        Whether the instruments move the treatment, with the chosen covariance.
    effective_F_ : float
        Montiel Olea and Pflueger's (2013) F.
    effective_F_critical_ : float
        What it has to exceed for a bias above 10% of the worst case to be rejected at 5%.
    overidentification_ : HypothesisTest or None
        Sargan's test with classical covariance, otherwise Hansen's J of two-step GMM; None with one instrument.
    endogeneity_ : HypothesisTest
        Wu and Hausman's test by the residuals of the first stage.
    certificate_ : Certificate
        Residual of the first-order condition relative to its terms.
    history_ : History
        One row.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import InstrumentalVariables
    >>> rng = np.random.default_rng(0)
    >>> z, u = rng.normal(size=(2, 2000))
    >>> d = z + u + rng.normal(size=2000)
    >>> y = 2 * d + 3 * u + rng.normal(size=2000)
    >>> model = InstrumentalVariables().fit(None, y, treatment=d, instruments=z)
    >>> round(float(np.cov(d, y)[0, 1] / np.var(d)), 1), round(model.effect_, 1)  # least squares is confounded
    (3.0, 1.9)
    """

    _parameters: ClassVar = {
        "method": Choice("2sls", "liml", "fuller"),
        "covariance": Choice("robust", "classical"),
        "confidence": Real(0, 1, inclusive=False),
    }

    standard_error_: float
    interval_: Array

    @stores_arguments
    def __init__(self, method: str = "2sls", *, covariance: str = "robust", confidence: float = 0.95) -> None: ...

    def fit(
        self, X: Any, y: Any, *, treatment: Any, instruments: Any, groups: Any = None, sample_weight: Any = None
    ) -> InstrumentalVariables:
        """Estimate the effect.

        Parameters
        ----------
        X : table (n, k) or None
            Controls, without an intercept; it is added.
        y : array (n,)
            Outcome.
        treatment : array (n,)
            Treatment d, of any kind of numbers.
        instruments : table (n, l) or array (n,)
            Instruments Z.
        groups : array (n,), optional
            Labels of groups within which the noise may depend; the standard errors are then clustered.
        sample_weight : array (n,), optional
            Weights of rows; a row of weight 2 is the same as two rows.

        Returns
        -------
        InstrumentalVariables
        """
        check_parameters(self, self._parameters)
        y = column("y", y)
        n = len(y)
        d = column("treatment", treatment, n)
        W, names = columns("X", X, n, "InstrumentalVariables")
        Z, instrument_names = columns("instruments", instruments, n, "InstrumentalVariables")
        group = None if groups is None else codes("groups", groups, n)[0]
        weight = row_weights(sample_weight, n)
        if weight is not None:
            kept = weight > 0
            y, d, W, Z, weight = y[kept], d[kept], W[kept], Z[kept], weight[kept]
            group = None if group is None else np.unique(group[kept], return_inverse=True)[1]
        rows = _Rows(y, d, W, Z, group, weight)
        self._names_, self.instrument_names_ = names, instrument_names
        self.n_obs_, self._k_, self._unit_ = len(y), W.shape[1] + 1, rows.unit
        self._estimate(rows)
        self._first_stage(rows)
        self._tests(rows)
        self._anderson_rubin_ = self._weak_robust(rows)
        return self

    def _robust(self, rows: _Rows) -> bool:
        return self.covariance == "robust" or rows.group is not None

    def _estimate(self, rows: _Rows) -> None:
        y, d, Z, n, k = rows.y, rows.d, rows.Z, rows.size, self._k_
        l = Z.shape[1]  # noqa: E741
        both = np.column_stack([y, d])
        inside = both - Z @ (Z.T @ both)
        kappa = 1.0
        if self.method != "2sls" and l > 1:
            whole, left = both.T @ both, inside.T @ inside
            lengths = np.sqrt(np.diag(left))
            if (lengths == 0).any() or not np.linalg.cond(left / np.outer(lengths, lengths)) < 1e14:
                raise DataError(
                    f"y: what the instruments leave of it is a multiple of the treatment; method={self.method!r} "
                    "needs noise in both"
                )
            L = np.linalg.cholesky(left)
            kappa = float(np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, whole).T)).min())
        if self.method == "fuller":
            kappa -= 1 / (n - k - l)
        fitted = d - kappa * inside[:, 1]
        scale = float(fitted @ d)
        b = float(fitted @ y) / scale
        residual = y - b * d
        factor, df = correction(n, k + 1, rows.group)
        if self._robust(rows):
            scores = rows.scores((fitted * residual)[:, None])
            variance = factor * float(np.sum(scores**2)) / scale**2
        else:
            variance = float(residual @ residual) / (n - k - 1) / scale
        self.kappa_, self._df_, self._effect_ = kappa, df, b
        self.effect_ = b * self._unit_
        self.standard_error_ = float(np.sqrt(variance)) * self._unit_
        if not abs(self.effect_) + self.standard_error_ <= LARGEST:
            raise DataError(
                f"y: the effect is {self.effect_:.1e} with standard error {self.standard_error_:.1e}, whose squares "
                "are no numbers; divide y, or multiply the treatment, by a constant"
            )
        half = central_quantile(self.confidence, df) * self.standard_error_
        self.interval_ = np.array([self.effect_ - half, self.effect_ + half])
        size = float(np.linalg.norm(fitted)) * float(np.linalg.norm(y) + abs(b) * np.linalg.norm(d))
        error = abs(float(fitted @ residual)) / max(size, np.finfo(float).tiny)
        meaning = "the effect solves the estimating equation; that the instruments are valid is an assumption"
        self.certificate_ = Certificate("stationarity", error, 1e-10, meaning)
        with np.errstate(over="ignore"):
            self.history_ = History(objective=[float(np.sum((residual * rows.unit_of_y) ** 2))])

    def _first_stage(self, rows: _Rows) -> None:
        d, Z, n, k = rows.d, rows.Z, rows.size, self._k_
        l = Z.shape[1]  # noqa: E741
        pi = Z.T @ d
        v = d - Z @ pi
        factor, df = correction(n, k + l, rows.group)
        if self._robust(rows):
            scores = rows.scores(Z * v[:, None])
            V = factor * scores.T @ scores
        else:
            V = float(v @ v) / (n - k - l) * np.eye(l)
        F = float(pi @ solved(V, pi, *self._few(rows, l))) / l
        p = float(stats.f.sf(F, l, df))
        with np.errstate(over="ignore"):
            self.first_stage_ = np.linalg.solve(rows.R, pi) * rows.unit_of_d / rows.unit_of_Z
        self.first_stage_F_ = HypothesisTest("first-stage F", F, p, "the instruments do not move the treatment")
        trace, x = float(np.trace(V)), 10.0  # x = 1 / 10%
        self.effective_F_ = float(pi @ pi) / trace
        top = float(np.linalg.eigvalsh(V).max())
        df_effective = trace**2 * (1 + 2 * x) / (float(np.sum(V * V)) + 2 * x * trace * top)
        self.effective_F_critical_ = float(stats.ncx2.ppf(0.95, df_effective, x * df_effective)) / df_effective

    def _tests(self, rows: _Rows) -> None:
        y, d, Z, n, k = rows.y, rows.d, rows.Z, rows.size, self._k_
        l = Z.shape[1]  # noqa: E741
        residual = y - self._effect_ * d
        self.overidentification_ = None
        if l > 1:
            if self._robust(rows):
                J, name = _hansen(rows, residual, self._few(rows, l)), "Hansen's J"
            else:
                J, name = n * float(np.sum((Z.T @ residual) ** 2)) / float(residual @ residual), "Sargan's test"
            p = float(stats.chi2.sf(J, l - 1))
            self.overidentification_ = HypothesisTest(name, J, p, "all instruments are valid, if one of them is")
        v = d - Z @ (Z.T @ d)
        # In units of their own, as one may be far smaller than the other.
        D = np.column_stack([v / np.linalg.norm(v), d / np.linalg.norm(d)])
        inverse = np.linalg.pinv(D.T @ D, hermitian=True)
        coef = inverse @ (D.T @ y)
        e = y - D @ coef
        factor, df = correction(n, k + 2, rows.group)
        if self._robust(rows):
            scores = rows.scores(D * e[:, None]) @ inverse
            V = factor * scores.T @ scores
        else:
            V = float(e @ e) / (n - k - 2) * inverse
        F = float(coef[0] ** 2 / V[0, 0]) if V[0, 0] > 0 else np.inf
        hypothesis = "the treatment is not confounded, given X"
        self.endogeneity_ = HypothesisTest("Wu-Hausman", F, float(stats.f.sf(F, 1, df)), hypothesis)

    def _few(self, rows: _Rows, l: int) -> tuple[str, str]:  # noqa: E741
        """Words for a singular covariance of the moments of the instruments."""
        if rows.group is not None:
            return "groups", f"{int(rows.group.max()) + 1} do not determine the covariance of {l} instruments"
        return "instruments", f"too few rows have noise for the covariance of {l} of them; expected more rows or fewer"

    def _weak_robust(self, rows: _Rows) -> AndersonRubin:
        y, d, Z, n, k = rows.y, rows.d, rows.Z, rows.size, self._k_
        l = Z.shape[1]  # noqa: E741
        g = (Z.T @ y, Z.T @ d)
        factor, df = correction(n, k + l, rows.group)
        if self._robust(rows):
            # The noise at b is what the instruments leave of y - b d, as for a regression of it on Z.
            a, c = (rows.scores(Z * (t - Z @ s)[:, None]) for t, s in zip((y, d), g, strict=True))
            S = (factor * a.T @ a, factor * (a.T @ c + c.T @ a), factor * c.T @ c)
        else:
            one = np.eye(l) / (n - k - l)
            yy, yd, dd = (float(s @ t - (Z.T @ s) @ (Z.T @ t)) for s, t in ((y, y), (y, d), (d, d)))
            S = (yy * one, 2 * yd * one, dd * one)
        return AndersonRubin(g, S, (l, df), self._unit_)

    # ------------------------------------------------------------------------------------------------ what it says

    def anderson_rubin(self, confidence: float | None = None) -> ConfidenceSet:
        """Effects that the Anderson-Rubin test does not reject: valid with instruments of any strength.

        Parameters
        ----------
        confidence : float, optional
            Level; by default that of the constructor.
        """
        self._check()
        return self._anderson_rubin_.set(self.confidence if confidence is None else confidence)

    def summary(self) -> Summary:
        """The effect with its tests as a table."""
        self._check()
        weak = self.effective_F_ < self.effective_F_critical_
        facts = {
            "rows": self.n_obs_,
            "first-stage F": self.first_stage_F_.statistic,
            "effective F": self.effective_F_,
            "its 5% critical value": self.effective_F_critical_,
            "Wu-Hausman p": self.endogeneity_.p_value,
        }
        if self.overidentification_ is not None:
            facts[f"{self.overidentification_.name} p"] = self.overidentification_.p_value
        words = f"instruments {'are weak' if weak else 'are not weak'}; Anderson-Rubin set {self.anderson_rubin()}"
        return wald_summary(
            ["treatment"],
            np.array([self.effect_]),
            None,
            np.array([[self.standard_error_**2]]),
            confidence=self.confidence,
            title=f"Instrumental variables ({self.method}, {', '.join(self.instrument_names_)})",
            facts=facts,
            degrees_of_freedom=self._df_,
            note=words,
        )

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the p-value of every effect by Anderson and Rubin's test, and Student's interval."""
        self._check()
        ax = axes_of(ax)
        reach = 6 * self.standard_error_
        b = np.linspace(self.effect_ - reach, self.effect_ + reach, 400)
        ax.plot(b, [self._anderson_rubin_.p_value(x) for x in b], color=COLOURS["blue"], label="Anderson-Rubin")
        level = 1 - self.confidence
        ax.axhline(level, color=ink(ax, 0.6), lw=1, ls="--")
        height = 2 * stats.norm.sf(np.abs(b - self.effect_) / self.standard_error_)
        ax.plot(b, height, color=COLOURS["orange"], ls="-.", label="normal approximation")
        ax.set(xlabel="effect", ylabel="p-value", ylim=(0, 1.02))
        return labels_clear(ax)


class _Rows:
    """Outcome, treatment and instruments with the controls taken off, in units of their own and times sqrt(weight).

    The instruments are orthonormal, Z = Q R.
    """

    def __init__(self, y: Array, d: Array, W: Array, Z: Array, group: Array | None, weight: Array | None) -> None:
        self.size = float(len(y)) if weight is None else float(weight.sum())
        self.group, self.root = group, None if weight is None else np.sqrt(weight)
        k, l = W.shape[1] + 1, Z.shape[1]  # noqa: E741
        if l == 0:
            raise DataError("instruments: expected at least one column, got none")
        if self.size <= k + l + 1:
            raise DataError(f"y: has {self.size:g} rows; expected more than {k + l + 1}, the number of coefficients")
        self.unit_of_y, self.unit_of_d = unit_of(y), unit_of(d)
        self.unit_of_Z = np.array([unit_of(z) for z in Z.T])
        y, d, Z = y / self.unit_of_y, d / self.unit_of_d, Z / self.unit_of_Z
        controls = np.column_stack([np.ones(len(y)), W / np.array([unit_of(x) for x in W.T])])
        if self.root is not None:
            y, d, Z, controls = (a * (self.root if a.ndim == 1 else self.root[:, None]) for a in (y, d, Z, controls))
        before = float(d @ d)
        self.y, self.d, Z = residuals_after(controls, y, d, Z)
        self.Z, self.R = np.linalg.qr(Z)
        if (np.abs(np.diag(self.R)) <= 1e-10 * np.abs(self.R).max()).any():
            raise DataError("instruments: a column is constant or a combination of the others and X; leave it out")
        if self.d @ self.d <= 1e-20 * before:
            raise DataError("treatment: is constant given X; expected one that varies")
        v = self.d - self.Z @ (self.Z.T @ self.d)
        if v @ v <= 1e-20 * (self.d @ self.d):
            raise DataError("treatment: is a combination of the instruments and X, so that nothing confounds it")
        both = np.column_stack([self.d, v])
        left = self.y - both @ np.linalg.lstsq(both, self.y, rcond=None)[0]
        if left @ left <= 1e-20 * (self.y @ self.y) or not self.y.any():
            raise DataError("y: is a combination of treatment, instruments and X without noise; errors are not known")

    @property
    def unit(self) -> float:
        """That of the effect."""
        return self.unit_of_y / self.unit_of_d

    def scores(self, products: Array) -> Array:
        """Terms whose squares a robust covariance sums: products of rows, or their sums in groups."""
        return grouped(products, self.group, self.root)


def _hansen(rows: _Rows, residual: Array, few: tuple[str, str]) -> float:
    """J of two-step GMM: moments weighted by their covariance at the first step."""
    scores = rows.scores(rows.Z * residual[:, None])
    S = scores.T @ scores
    zy, zd = rows.Z.T @ rows.y, rows.Z.T @ rows.d
    weighted = solved(S, zd, *few)
    b = float(weighted @ zy) / float(weighted @ zd)
    g = zy - b * zd
    return float(g @ solved(S, g, *few))
