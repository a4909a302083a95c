r"""Hidden Markov models:  p(x, z) = q(z_1) p(x_1 | z_1) prod_t A(z_{t-1}, z_t) p(x_t | z_t),  with z not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import DensityMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.em._run_em import fit_by_em
from epicycle.hmm._chain_model import ChainModel, require_possible
from epicycle.hmm._emissions import Categorical, Emission, Poisson
from epicycle.hmm._gaussian import Gaussian
from epicycle.hmm._sequences import Sequences, as_sequences, joined
from epicycle.hmm._starts import moves, rough_states
from epicycle.stats._markov import Smoothed, draw_chain, most_probable_path, stationary_distribution


class HiddenMarkovModel(DensityMixin, Estimator):  # type: ignore[misc]  # untyped
    r"""Sequences whose rows depend on states that move as a Markov chain and are not seen.

    .. math:: p(x_{1:T}) = \sum_{z_{1:T}} q(z_1)\, p(x_1 \mid z_1) \prod_{t=2}^T A(z_{t-1}, z_t)\, p(x_t \mid z_t)

    fitted by Baum and Welch's expectation maximisation, whose log-likelihood never falls. Rows of X are the time steps
    of one sequence; several sequences are given by `lengths`, by a label of each row (`groups`), or as a list of
    tables. NaN is a missing observation: a row of NaN says nothing, and of a row with some of them the marginal density
    of the others is taken. Weights belong to sequences (`sequence_weight`), because rows of a chain have none: a row
    that is repeated is another time step.

    Parameters
    ----------
    n_states : int, default=1
        K.
    emission : {"gaussian", "mixture", "categorical", "poisson"}, default="gaussian"
        What a state emits: a normal row; a mixture of `n_mix` normals; codes 0, 1, ... of categories; counts. Columns
        of categories and of counts are independent given the state.
    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Structure of the covariances of normals. With "tied" all states share one, and with emission="mixture" the
        components of each state do.
    n_mix : int, default=1
        Components of a state with emission="mixture".
    n_categories : int or array-like of shape (n_features,), optional
        Categories of the columns with emission="categorical"; by default as many as X shows.
    startprob_prior, transmat_prior, emissionprob_prior : float, default=1.0
        Parameters, at least 1, of symmetric Dirichlet priors: prior - 1 is added to every expected count.
    covars_prior : float, default=1e-2
        Added to sums of squares: maximises the log-likelihood less covars_prior / 2 trace(C^-1) for every covariance C,
        which therefore never becomes singular. It is in the units of X squared: choose a smaller one for columns
        with a small scale.
    startprob_init : array-like of shape (n_states,), optional
        First start probabilities; zeros stay zeros.
    transmat_init : array-like of shape (n_states, n_states), optional
        First transition probabilities; zeros stay zeros, so that a triangular one is a model from left to right.
    emission_init : mapping, optional
        First parameters of the emissions by name: means, covars, weights, lambdas, emissionprob, with the shapes of the
        attributes. What is not given starts from k-means.
    algorithm : {"viterbi", "map"}, default="viterbi"
        What `predict` returns: the most probable path, or the most probable state of every row.
    tol : float, default=1e-6
        Ends when two steps in a row raise the mean log-likelihood of a row by at most `tol` each.
    accelerate : bool, default=False
        Whether to extrapolate steps by SQUAREM; the likelihood never falls here either.

    Attributes
    ----------
    startprob_ : ndarray of shape (n_states,)
    transmat_ : ndarray of shape (n_states, n_states)
        A: row i are the probabilities of the state after i.
    means_ : ndarray of shape (n_states, n_features) or (n_states, n_mix, n_features)
    covars_ : ndarray
        Shape (n_states,) if spherical, (n_states, n_features) if diagonal, (n_states, n_features, n_features) if full,
        (n_features, n_features) if tied; for mixtures with n_mix after n_states, or (n_states, n_features, n_features)
        if tied.
    weights_ : ndarray of shape (n_states, n_mix)
        Of the components of mixtures.
    lambdas_ : ndarray of shape (n_states, n_features)
        Mean counts.
    emissionprob_ : ndarray of shape (n_states, sum of categories)
        Probabilities of categories, those of each column side by side.
    n_categories_ : ndarray of shape (n_features,)
    log_likelihood_ : float
        Of all sequences, with the logarithms of the priors.
    n_parameters_ : int
        Number of free parameters, for `aic` and `bic`; structural zeros of the start do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import HiddenMarkovModel
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat([0, 1, 0, 1], 50)
    >>> X = np.where(states, 5.0, 0.0)[:, None] + rng.normal(size=(200, 1))
    >>> model = HiddenMarkovModel(2, random_state=0).fit(X)
    >>> print(np.sort(model.means_.ravel()).round(1))
    [0.1 5. ]
    >>> path = model.predict(X)
    >>> bool((path == states).all() or (path == 1 - states).all())
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_states": Integer(minimum=1),
        "emission": Choice("gaussian", "mixture", "categorical", "poisson"),
        "covariance_type": Choice("diag", "full", "spherical", "tied"),
        "n_mix": Integer(minimum=1),
        "n_categories": NoneOr(AnyOf(Integer(minimum=1), ArrayLike())),
        "startprob_prior": Real(minimum=1),
        "transmat_prior": Real(minimum=1),
        "emissionprob_prior": Real(minimum=1),
        "covars_prior": Real(minimum=0),
        "startprob_init": NoneOr(ArrayLike()),
        "transmat_init": NoneOr(ArrayLike()),
        "emission_init": NoneOr(InstanceOf(Mapping)),
        "algorithm": Choice("viterbi", "map"),
        "tol": Real(minimum=0),
        "accelerate": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="hmm", catalogue=("G7",), engines=("memory",), certificate="stationarity"
    )

    _docs: ClassVar[dict[str, str]] = {
        "X": "X : array or data frame of shape (n_samples, n_features), or list of them\n    Sequences, as for `fit`.",
        "lengths": "lengths, groups : array-like, optional\n    Which rows are a sequence, as for `fit`.",
    }

    startprob_: np.ndarray
    transmat_: np.ndarray
    means_: np.ndarray
    covars_: np.ndarray
    weights_: np.ndarray
    lambdas_: np.ndarray
    emissionprob_: np.ndarray
    n_categories_: np.ndarray
    log_likelihood_: float
    n_parameters_: int
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    @stores_arguments(max_iter=1000, tol=1e-6, n_jobs=None, random_state=None, verbose=0)
    def __init__(
        self,
        n_states: int = 1,
        *,
        emission: str = "gaussian",
        covariance_type: str = "diag",
        n_mix: int = 1,
        n_categories: Any = None,
        startprob_prior: float = 1.0,
        transmat_prior: float = 1.0,
        emissionprob_prior: float = 1.0,
        covars_prior: float = 1e-2,
        startprob_init: Any = None,
        transmat_init: Any = None,
        emission_init: Mapping[str, Any] | None = None,
        algorithm: str = "viterbi",
        n_init: int = 1,
        accelerate: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(
        self, X: Any, y: Any = None, *, lengths: Any = None, groups: Any = None, sequence_weight: Any = None
    ) -> Self:
        """Learn chain and emissions from sequences.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or list of them
            Rows of one sequence, of several one after the other, or a list of sequences.
        lengths : array-like of int, optional
            Rows of each sequence; by default all rows are one.
        groups : array-like of shape (n_samples,), optional
            A label for each row; rows of the same label are a sequence, in their order.
        sequence_weight : array-like of shape (n_sequences,), optional
            A sequence of weight v counts as v sequences.
        """
        X, lengths = joined(X, lengths)
        data = self._fit_data(X, None, None, target="none", check_finite=False, missing=True)
        sequences = as_sequences(self._observations(data), lengths, groups, sequence_weight)
        _refuse_lengths_as_y(y, len(sequences.X))
        self._require_memory(*sequences.X.shape)
        emission = self._emission(sequences.X)
        model = ChainModel(emission, float(self.startprob_prior), float(self.transmat_prior))
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        given = self._given(emission, sequences.X)

        def begin(i: int) -> dict[str, np.ndarray]:
            return self._begin(emission, sequences, given, stream(seed, "hmm", i))

        like = begin(0)

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return self._attributes(emission, model.from_vector(x, like))

        rows: Any = sequences  # the model makes its own passes
        solution = fit_by_em(self, model, rows, int(self.n_init), begin, attributes, seed=seed, state=state)
        for name, value in self._attributes(emission, solution.parameters).items():
            setattr(self, name, value)
        self.log_likelihood_ = solution.log_likelihood
        free = sum(np.count_nonzero(row) - 1 for row in (like["startprob"], *like["transmat"]))
        self.n_parameters_ = int(free) + emission.n_parameters(sequences.X.shape[1])
        self._conclude(solution)
        return self

    def _observations(self, data: Data) -> np.ndarray:
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: {type(self).__name__} needs its sequences in memory, got {type(data).__name__}")
        X = np.asarray(data.X, dtype=np.float64)
        if np.isinf(X).any():
            raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
        largest = np.nanmax(np.abs(X), initial=0.0)
        if largest > 1e150:
            raise DataError(f"X: {largest:g} is so large that squares overflow; scale the columns down")
        return X

    def _require_memory(self, n: int, p: int) -> None:
        k = float(self.n_states)
        parts = k * (float(self.n_mix) if self.emission == "mixture" else 1.0)
        each = p * p if self.covariance_type == "full" and self.emission in ("gaussian", "mixture") else p
        needed = 8 * (2 * k * k + n * (k + parts) + parts * each)
        require_memory(needed, f"{type(self).__name__} of {self.n_states} states", "fewer states or components")

    def _emission(self, X: np.ndarray | None = None) -> Emission:
        """The emission, for rows X, or as it was fitted."""
        k = int(self.n_states)
        if self.emission == "categorical":
            prior = float(self.emissionprob_prior)
            if X is None:
                return Categorical(k, self.n_categories_, prior)
            return Categorical.of(k, X, self.n_categories, prior)
        if self.emission == "poisson":
            emission: Emission = Poisson(k)
        else:
            mixture = int(self.n_mix) if self.emission == "mixture" else None
            emission = Gaussian(k, self.covariance_type, float(self.covars_prior), mixture)
        if X is not None:
            emission.check(X)
        return emission

    def _given(self, emission: Emission, X: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters to start from that the user gave."""
        given = emission.checked_start(self.emission_init or {}, X)
        k = int(self.n_states)
        for name, shape in (("startprob", (k,)), ("transmat", (k, k))):
            value = getattr(self, f"{name}_init")
            if value is None:
                continue
            array = np.array(value, dtype=np.float64)
            fits = array.shape == shape and (array >= 0).all() and np.allclose(array.sum(axis=-1), 1.0, atol=1e-6)
            if not fits:
                raise ParameterError(f"{name}_init: expected probabilities of shape {shape}, with sum 1 in every row")
            given[name] = array / array.sum(axis=-1, keepdims=True)
        return given

    def _begin(
        self, emission: Emission, sequences: Sequences, given: Mapping[str, np.ndarray], rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        names = ("startprob", "transmat", *emission.names)
        if set(names) <= set(given):
            return {name: given[name] for name in names}
        k = int(self.n_states)
        label = rough_states(sequences.X, k, rng)
        first, transition = moves(label, sequences.offsets, k)
        found = {"startprob": first, "transmat": transition, **emission.start(sequences.X, label, rng), **given}
        return {name: found[name] for name in names}

    def _attributes(self, emission: Emission, parameters: Mapping[str, np.ndarray]) -> dict[str, Any]:
        found: dict[str, Any] = {f"{name}_": value for name, value in parameters.items()}
        if isinstance(emission, Categorical):
            found["n_categories_"] = emission.n_categories
        return found

    # ------------------------------------------------------------------------------------------- use of a fit

    def _read(
        self, X: Any, lengths: Any, groups: Any
    ) -> tuple[ChainModel, Sequences, dict[str, np.ndarray], np.ndarray]:
        """(model, sequences, parameters, log-densities) of new rows."""
        self._check_fitted()
        X, lengths = joined(X, lengths)
        sequences = as_sequences(self._observations(self._predict_data(X, missing=True)), lengths, groups)
        emission, parameters = self._fitted()
        emission.check(sequences.X)
        model = ChainModel(emission)
        return model, sequences, parameters, model.log_densities(sequences.X, parameters, self.n_jobs)[0]

    def _fitted(self) -> tuple[Emission, dict[str, np.ndarray]]:
        emission = self._emission()
        names = ("startprob", "transmat", *emission.names)
        return emission, {name: getattr(self, f"{name}_") for name in names}

    def _smoothed(self, X: Any, lengths: Any, groups: Any, **wanted: bool) -> tuple[Sequences, Smoothed]:
        model, sequences, parameters, log_e = self._read(X, lengths, groups)
        return sequences, model.smoothed(sequences, log_e, parameters, self.n_jobs, **wanted)

    def predict(self, X: Any, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """The state of every row, by `algorithm`."""
        if self.algorithm == "map":
            return np.asarray(self.predict_proba(X, lengths, groups).argmax(axis=1))
        return self.decode(X, lengths, groups)[1]

    def decode(self, X: Any, lengths: Any = None, groups: Any = None) -> tuple[float, np.ndarray]:
        """The most probable path of states, by Viterbi's algorithm.

        Returns
        -------
        log_probability : float
            Of paths and rows together, added up over the sequences.
        states : ndarray of shape (n_samples,)
        """
        _, sequences, parameters, log_e = self._read(X, lengths, groups)
        chain = parameters["startprob"], parameters["transmat"]
        value, states = most_probable_path(*chain, log_e, sequences.offsets, n_jobs=self.n_jobs)
        require_possible(value)
        return float(value.sum()), sequences.as_given(states)

    def predict_proba(self, X: Any, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """P(state | whole sequence) of every row.

        Returns
        -------
        ndarray of shape (n_samples, n_states)
        """
        sequences, found = self._smoothed(X, lengths, groups)
        require_possible(found.log_likelihood)
        return sequences.as_given(found.posterior)

    def score_samples(self, X: Any, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """log p(x_t | the rows of its sequence before it) of every row; their sum is the score."""
        sequences, found = self._smoothed(X, lengths, groups, posteriors=False, by_step=True)
        return sequences.as_given(found.by_step)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None, groups: Any = None) -> float:
        """The log-likelihood of all sequences."""
        sequences, found = self._smoothed(X, lengths, groups, posteriors=False)
        _refuse_lengths_as_y(y, len(sequences.X))
        return float(found.log_likelihood.sum())

    def aic(self, X: Any, lengths: Any = None, groups: Any = None) -> float:
        """Akaike's criterion, twice the number of parameters less twice the log-likelihood; smaller is better."""
        return 2.0 * self.n_parameters_ - 2.0 * self.score(X, lengths=lengths, groups=groups)

    def bic(self, X: Any, lengths: Any = None, groups: Any = None) -> float:
        """The Bayesian criterion, with log n for the first two of `aic`, where n rows are not all missing."""
        sequences, found = self._smoothed(X, lengths, groups, posteriors=False)
        n = int((~np.isnan(sequences.X)).any(axis=1).sum())
        return float(self.n_parameters_ * np.log(max(n, 1)) - 2.0 * found.log_likelihood.sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """One sequence of the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of time steps.
        random_state : None, int, Generator or RandomState
            Seed; None takes that of the model.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        states : ndarray of shape (n_samples,)
        """
        self._check_fitted()
        rng = stream(self.random_state if random_state is None else random_state, "sample")
        emission, parameters = self._fitted()
        states = draw_chain(parameters["startprob"], parameters["transmat"], int(n_samples), rng)
        return emission.draw(parameters, states, rng), states

    def get_stationary_distribution(self) -> np.ndarray:
        """The shares of time that a long sequence spends in the states: q with q = q A."""
        self._check_fitted()
        return stationary_distribution(self.transmat_)


def _refuse_lengths_as_y(y: Any, n: int) -> None:
    """Lengths in the place of y would be ignored, and all rows taken as one sequence."""
    if y is not None and np.ndim(y) == 1 and len(y) != n:
        raise DataError(
            f"y: {len(y)} entries for {n} rows; y plays no part, lengths of sequences are given as lengths="
        )
