"""`StructuralCausalModel`: equations, interventions on them, and what they say about worlds that did not happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.structural import _abduction as abduction, _learned as learned, _mediation as mediation
from epicycle.causal.structural._causation_probabilities import CausationProbabilities
from epicycle.causal.structural._counterfactual import Counterfactual
from epicycle.causal.structural._effect_size import EffectSize
from epicycle.causal.structural._mechanism import (
    Constant,
    Function,
    Mechanism,
    Modified,
    Stochastic,
    arguments_of,
    named_values,
    single_value,
)
from epicycle.causal.structural._mediation_effects import MediationEffects
from epicycle.causal.structural._noise import Noise, as_noise
from epicycle.core._checks import count
from epicycle.core._exceptions import ParameterError
from epicycle.core._random import Seed
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("causal", "H3", certificate="exact or effective sample size")
class StructuralCausalModel:
    r"""Structural causal model: each variable is a function of its parents and of exogenous noise.

    .. math:: v_i = f_i(\mathrm{pa}_i, u_i), \qquad u \sim P(u)

    An intervention :math:`do(x)` replaces the equation of x. A counterfactual infers the noise from what was seen
    (abduction), replaces equations (action), and computes the consequences (prediction).

    Parameters
    ----------
    equations : dict
        From names of variables to functions, whose arguments are named after other variables and exogenous ones and
        which take and return arrays, or to :class:`AdditiveNoise`.
    exogenous : dict, optional
        From names of exogenous variables to their distributions: of scipy.stats, mappings from values to
        probabilities, or functions of a Generator and a number of draws. One that several equations read is an unseen
        common cause.

    Attributes
    ----------
    equations, exogenous : dict
        As mechanisms and distributions.
    graph : CausalGraph
        The diagram of the equations.

    See Also
    --------
    epicycle.causal.identify : What data alone can say about interventions.

    Examples
    --------
    >>> from scipy import stats
    >>> from epicycle.causal import StructuralCausalModel
    >>> model = StructuralCausalModel(
    ...     {"z": lambda u: u, "x": lambda z, v: z > v, "y": lambda x, z, w: 2 * x + z + w},
    ...     exogenous={name: stats.norm() for name in "uvw"},
    ... )
    >>> model.graph
    CausalGraph('z -> x; x -> y; z -> y')
    >>> seen = model.sample(100_000, random_state=0)
    >>> float((seen["y"][seen["x"]].mean() - seen["y"][~seen["x"]].mean()).round(1))  # association
    3.1
    >>> round(model.effect("x", "y", True, False, random_state=0).value, 6)  # effect
    2.0
    """

    _docs = {  # noqa: RUF012
        "n_samples": "n_samples : int, default={default}\n"
        "    Units that are drawn, unless all noise has finitely many values.",
        "random_state": "random_state : int, Generator or None\n    Seed.",
        "treatment": "treatment, outcome : str\n    Two variables.",
        "treated": "treated, control : object, default=1, 0\n    Values of the treatment that are compared.",
    }

    def __init__(self, equations: Mapping[str, Any], exogenous: Mapping[str, Any] | None = None) -> None:
        self.exogenous = {name: as_noise(name, law) for name, law in (exogenous or {}).items()}
        if both := set(self.exogenous) & set(equations):
            raise ParameterError(f"exogenous: {sorted(both)} also have equations; expected different names")
        self.equations = {name: self._mechanism(name, given) for name, given in equations.items()}
        self._set_graph()

    def _mechanism(self, name: str, given: Any) -> Mechanism:
        if isinstance(given, Mechanism):
            return given
        return Function(given, arguments_of(given, f"equations[{name!r}]"))

    def _set_graph(self) -> None:
        readers: dict[str, list[str]] = {u: [] for u in self.exogenous}
        directed = []
        for name, equation in self.equations.items():
            for v in equation.inputs:
                if v in readers:
                    readers[v].append(name)
                elif v in self.equations:
                    directed.append((v, name))
                else:
                    known = [*self.equations, *self.exogenous]
                    raise ParameterError(f"equations[{name!r}] reads {v!r}; expected arguments among {known}")
        shared = [pair for group in readers.values() for pair in combinations(group, 2)]
        self.graph = CausalGraph.from_parts(self.equations, directed, shared)

    @classmethod
    def _of(cls, equations: dict[str, Mechanism], exogenous: dict[str, Noise]) -> StructuralCausalModel:
        model = cls.__new__(cls)
        model.equations, model.exogenous = equations, exogenous
        model._set_graph()
        return model

    @classmethod
    def from_data(
        cls, data: Any, graph: CausalGraph, models: Any = "linear", *, n_folds: int = 5, random_state: Seed = None
    ) -> StructuralCausalModel:
        """Learn the equations of a diagram.

        Numbers get a regression with additive noise, whose distribution is that of the residuals out of fold; other
        columns, and integers with at most 10 values, a classifier of which a uniform quantile is taken. Nodes without
        parents keep the distribution of their column.

        Parameters
        ----------
        data : data frame or mapping
            A column for each node.
        graph : CausalGraph
            A diagram without bidirected edges and latent nodes.
        models : {"linear", "trees"}, estimator, or dict of estimators by node, default="linear"
            Linear and logistic regression, boosted trees, or any estimators of this package; nodes that a dict leaves
            out are linear.
        n_folds : int, default=5
            Folds for the residuals.
        random_state : int, Generator or None
            Seed of the folds.

        Examples
        --------
        >>> import numpy as np
        >>> from epicycle.causal import CausalGraph, StructuralCausalModel
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=1000)
        >>> data = {"x": x, "y": 2 * x + rng.normal(size=1000)}
        >>> model = StructuralCausalModel.from_data(data, CausalGraph("x -> y"), random_state=0)
        >>> bool(abs(model.effect("x", "y", 1.0, 0.0, random_state=0).value - 2) < 0.1)
        True
        """
        return cls._of(learned.equations(data, graph, models, count("n_folds", n_folds, low=2), random_state), {})

    def __repr__(self) -> str:
        return f"StructuralCausalModel({self.graph!r})"

    # ------------------------------------------------------------------------------------------------ worlds

    def _units(self, n: int, random_state: Seed) -> tuple[dict[str, Array], Array, bool]:
        """Noise of n units with their weights: all values where there are finitely many, else draws."""
        return abduction.units(self.equations, self.exogenous, n, random_state)

    def _world(self, noise: Mapping[str, Array], n: int, fixed: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Values of all variables for given noise; those in `fixed` are set."""
        known: dict[str, Array] = {u: noise[u] for u in self.exogenous}
        for v in self.graph.topological_order:
            if fixed and v in fixed:
                known[v] = np.broadcast_to(np.asarray(fixed[v]), (n,))
            else:
                known[v] = self.equations[v].value(known, noise.get(abduction.own_name(v)), n)
        return {v: known[v] for v in self.equations}

    def sample(self, n: int, random_state: Seed = None) -> dict[str, Array]:
        """Draw units.

        Parameters
        ----------
        n : int
            How many.
        random_state : int, Generator or None
            Seed. The same seed gives the same noise to a model and to its interventions, as long as these add none.

        Returns
        -------
        dict of arrays (n,)
            Ready for ``pandas.DataFrame``.
        """
        count("n", n, low=1)
        return self._world(abduction.draw(self.equations, self.exogenous, n, random_state), n)

    def do(self, action: Mapping[str, Any]) -> StructuralCausalModel:
        """The model after an intervention.

        Parameters
        ----------
        action : dict
            From variables to what replaces their equation: a value; a distribution (stochastic intervention); or a
            function of other variables (a policy). A function that has the variable itself among its arguments changes
            the value that would have come (soft intervention).

        Examples
        --------
        >>> from epicycle.causal import AdditiveNoise, StructuralCausalModel
        >>> model = StructuralCausalModel({"z": AdditiveNoise(lambda: 0), "x": AdditiveNoise(lambda z: z)})
        >>> model.do({"x": 1}).graph.directed, model.do({"x": lambda x: x + 1}).graph.directed
        ((), (('z', 'x'),))
        """
        action = named_values("action", action)
        self.graph.names("action", action)
        equations = dict(self.equations)
        for v, given in action.items():
            equations[v] = self._replaced(v, given)
        return self._of(equations, self.exogenous)

    def _replaced(self, v: str, given: Any) -> Mechanism:
        if isinstance(given, Mechanism):
            return given
        if isinstance(given, Mapping) or (hasattr(given, "rvs") and hasattr(given, "dist")):
            return Stochastic(as_noise(v, given))
        if not callable(given):
            return Constant(given)
        inputs = arguments_of(given, f"action[{v!r}]")
        return Modified(self.equations[v], given, v, inputs) if v in inputs else Function(given, inputs)

    def counterfactual(
        self,
        evidence: Mapping[str, Any],
        action: Mapping[str, Any],
        *,
        n_samples: int = 10_000,
        random_state: Seed = None,
    ) -> Counterfactual:
        """Values under an intervention of units about which something was observed.

        Exact where the evidence determines the noise (every variable is seen and has additive noise) or where all
        noise has finitely many values; otherwise by weighted draws of the noise.

        Parameters
        ----------
        evidence : dict
            What was seen: values by variable, or arrays with one entry for each unit.
        action : dict
            As in `do`.
        n_samples : int, default=10000
            Draws for each unit, where draws are needed.

        Examples
        --------
        >>> from epicycle.causal import StructuralCausalModel
        >>> coin = StructuralCausalModel(
        ...     {"rain": lambda u: u, "umbrella": lambda rain, v: rain & v},
        ...     exogenous={"u": {0: 0.7, 1: 0.3}, "v": {0: 0.2, 1: 0.8}},
        ... )
        >>> float(coin.counterfactual({"umbrella": 0}, {"rain": 1}).probability("umbrella", 1).round(4))
        0.7368
        """
        evidence = named_values("evidence", evidence)
        self.graph.names("evidence", evidence)
        return abduction.counterfactual(
            self, evidence, self.do(action), count("n_samples", n_samples, low=1), random_state
        )

    # ------------------------------------------------------------------------------------------------ effects

    def effect(
        self,
        treatment: str,
        outcome: str,
        treated: Any = 1,
        control: Any = 0,
        *,
        along: Iterable[Any] | None = None,
        n_samples: int = 100_000,
        random_state: Seed = None,
    ) -> EffectSize:
        """Average effect of a treatment, in all or along some paths.

        Parameters
        ----------
        along : iterable of paths, optional
            Causal paths, each as a sequence of nodes or as text ``"x -> m -> y"``. Along these the treatment is felt as
            treated, along all others as control.

        Returns
        -------
        EffectSize
            The mean difference with its standard error from the draws.
        """
        self.graph.names("treatment", [treatment])
        self.graph.names("outcome", [outcome])
        single_value("treated", treated), single_value("control", control)
        return mediation.path_effect(self, treatment, outcome, treated, control, along, n_samples, random_state)

    def mediation(
        self,
        treatment: str,
        outcome: str,
        mediators: str | Iterable[str],
        treated: Any = 1,
        control: Any = 0,
        *,
        levels: Mapping[str, Any] | None = None,
        n_samples: int = 100_000,
        random_state: Seed = None,
    ) -> MediationEffects:
        r"""Total, natural direct, natural indirect and controlled direct effect.

        With M(x) the mediators under do(x): NDE :math:`= E[Y(1, M(0)) - Y(0)]`, NIE :math:`= E[Y(0, M(1)) - Y(0)]`,
        CDE(m) :math:`= E[Y(1, m) - Y(0, m)]`. The total effect is NDE less the indirect effect of the reverse change.

        Parameters
        ----------
        mediators : str or iterable of str
            Variables between them.
        levels : dict, optional
            Values of the mediators for the controlled direct effect.
        """
        between = self.graph.names("mediators", mediators)
        self.graph.names("treatment and outcome", [treatment, outcome])
        single_value("treated", treated), single_value("control", control)
        return mediation.effects(self, treatment, outcome, between, treated, control, levels, n_samples, random_state)

    def causation(
        self,
        cause: str,
        effect: str,
        *,
        present: Any = 1,
        absent: Any = 0,
        outcome: Any = 1,
        n_samples: int = 100_000,
        random_state: Seed = None,
    ) -> CausationProbabilities:
        """Probabilities that a cause was necessary, sufficient, or both.

        Parameters
        ----------
        cause, effect : str
            Two variables.
        present, absent : object, default=1, 0
            Values of the cause.
        outcome : object, default=1
            The value of the effect that is in question.

        Returns
        -------
        CausationProbabilities
            ``necessity`` P(no outcome without the cause | cause and outcome), ``sufficiency`` P(outcome with the
            cause | neither), and ``both`` P(outcome with and not without it).
        """
        self.graph.names("cause and effect", [cause, effect])
        for name, value in (("present", present), ("absent", absent), ("outcome", outcome)):
            single_value(name, value)
        noise, weight, exact = self._units(count("n_samples", n_samples, low=1), random_state)
        n = len(weight)
        seen = self._world(noise, n)
        with_it, without = (self._world(noise, n, {cause: v})[effect] == outcome for v in (present, absent))
        return CausationProbabilities.of(
            seen[cause] == present, seen[cause] == absent, seen[effect] == outcome, with_it, without, weight, exact
        )
