"""Shared by the multi-layer perceptrons: their arguments, their rows, their layers as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import ParameterError
from epicycle.core._history import History
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.data import Data
from epicycle.nets._base import NetEstimator
from epicycle.nets.training._options import OPTIMIZERS, SIZES, NetArguments, TrainingOptions, parts_of, sizes_of
from epicycle.optim import solve

ACTIVATIONS = ("identity", "logistic", "sigmoid", "tanh", "relu", "gelu")

MLP_PARAMETERS: Mapping[str, Domain] = {
    "hidden_layer_sizes": SIZES,
    "activation": Choice(*ACTIVATIONS),
    "solver": Choice("lbfgs", "backprop", *OPTIMIZERS),
    "max_fun": Integer(1),
    "alpha": Real(0),
    "batch_size": AnyOf(Choice("auto"), Integer(1)),
    "power_t": Real(0),
    "shuffle": Boolean(),
    "momentum": Real(0, 1),
    "nesterovs_momentum": Boolean(),
    "beta_1": Real(0, 1, inclusive=(True, False)),
    "beta_2": Real(0, 1, inclusive=(True, False)),
    "epsilon": Real(0, inclusive=False),
    "dropout": Real(0, 1, inclusive=(True, False)),
    "residual": Boolean(),
}

MLP_DOCS: Mapping[str, str] = {
    "hidden_layer_sizes": "hidden_layer_sizes : int or sequence of int, default={default}\n"
    "    Units of each hidden layer.",
    "activation": "activation : {'identity', 'logistic', 'sigmoid', 'tanh', 'relu', 'gelu'}, default={default}\n"
    "    What follows each hidden layer; 'sigmoid' is another name of 'logistic'.",
    "alpha": "alpha : float, default={default}\n"
    "    Strength of the penalty alpha / (2 n) |W|^2 on the mean loss of a batch of n rows, as in scikit-learn; with\n"
    "    'adamw' the decay of the weights.",
    "batch_size": "batch_size : int or 'auto', default={default}\n"
    "    Rows for each step; 'auto' is 200, or all where there are fewer.",
    "power_t": "power_t : float, default={default}\n    The exponent of learning_rate='invscaling'.",
    "shuffle": "shuffle : bool, default={default}\n    Whether each epoch visits the rows in another order.",
    "momentum": "momentum : float, default={default}\n    Of solver='sgd': the share of the last step in the next.",
    "nesterovs_momentum": "nesterovs_momentum : bool, default={default}\n"
    "    Of solver='sgd': whether the gradient is taken after the momentum.",
    "coefs_": "coefs_ : list of ndarray of shape (inputs, outputs)\n    Weights of each layer.",
    "intercepts_": "intercepts_ : list of ndarray\n    Intercepts of each layer.",
    "loss_": "loss_ : float\n    The mean loss of the last epoch, with the penalty.",
    "best_loss_": "best_loss_ : float or None\n    The smallest mean loss of an epoch; None with early stopping.",
    "loss_curve_": "loss_curve_ : list of float\n    The mean loss of each epoch, with the penalty.",
    "validation_scores_": "validation_scores_ : list of float or None\n"
    "    The score on the rows held out after each epoch; None without early stopping.",
    "best_validation_score_": "best_validation_score_ : float or None\n"
    "    The greatest of them, whose weights are kept; None without early stopping.",
    "n_layers_": "n_layers_ : int\n    Layers, those of the inputs and of the outputs among them.",
    "n_outputs_": "n_outputs_ : int",
    "out_activation_": "out_activation_ : str\n    What follows the last layer: 'identity', 'logistic' or 'softmax'.",
    "beta_1": "beta_1 : float, default={default}\n    Decay of the mean gradient, for 'adam' and 'adamw'.",
    "beta_2": "beta_2 : float, default={default}\n    Decay of the mean squared gradient, for 'adam' and 'adamw'.",
    "epsilon": "epsilon : float, default={default}\n    Added to the root of it, for 'adam' and 'adamw'.",
    "solver": "solver : {'adam', 'adamw', 'sgd', 'momentum', 'adagrad', 'adadelta', 'rmsprop', 'backprop', 'lbfgs'}, "
    "default={default}\n"
    "    The rule by which a gradient becomes a step. 'backprop' is 'sgd' with the gradients written out in NumPy;\n"
    "    'lbfgs' looks at all rows for each step, and ends when no derivative exceeds `tol`.",
    "max_fun": "max_fun : int, default={default}\n    Passes over the rows that solver='lbfgs' makes at most.",
    "dropout": "dropout : float, default={default}\n"
    "    Probability with which the output of a hidden unit is set to zero in a training step.",
    "residual": "residual : bool, default={default}\n"
    "    Whether a hidden layer with as many units as the one before is added to it: z + a(W z + b) follows z.",
}


class MLPArguments(NetArguments, total=False):
    """Arguments of both perceptrons beyond those that all networks have."""

    alpha: float
    power_t: float
    shuffle: bool
    momentum: float
    nesterovs_momentum: bool
    beta_1: float
    beta_2: float
    epsilon: float
    max_fun: int
    dropout: float
    residual: bool


#: In scikit-learn's order, then ours.
MLP_DEFAULTS: Mapping[str, Any] = {
    "solver": "adam",
    "alpha": 0.0001,
    "batch_size": "auto",
    "learning_rate": "constant",
    "learning_rate_init": 0.001,
    "power_t": 0.5,
    "max_iter": 200,
    "shuffle": True,
    "random_state": None,
    "tol": 1e-4,
    "verbose": 0,
    "warm_start": False,
    "momentum": 0.9,
    "nesterovs_momentum": True,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-8,
    "n_iter_no_change": 10,
    "max_fun": 15000,
    "dropout": 0.0,
    "residual": False,
    "warmup": 0.0,
    "clip_norm": None,
    "accumulate": 1,
    "average": None,
    "precision": "full",
    "compile": False,
    "device": "cpu",
    "deterministic": False,
}


def is_stochastic(model: Any) -> bool:
    """Whether the solver learns from a stream."""
    if model.solver == "lbfgs":
        raise AttributeError("partial_fit is only available for stochastic solvers; 'lbfgs' looks at all rows")
    return True


class _LimitedMonitor(Monitor):
    """A monitor that asks to stop after a number of passes over the rows."""

    def __init__(self, monitor: Monitor, calls: Callable[[], int], limit: int, run: Any) -> None:
        self.monitor, self.calls, self.limit, self.fit = monitor, calls, limit, run

    def __call__(self, iteration: int, x: np.ndarray, *, objective: float, state: Any = None, **columns: float) -> bool:
        asked = self.monitor(iteration, x, objective=objective, state=state, **columns)
        if self.calls() < self.limit:
            return asked
        self.fit.stop_message, self.fit.ended_early = f"max_fun={self.limit} passes over the rows are made", True
        return True

    def history(self) -> History:
        """Everything recorded so far."""
        return self.monitor.history()


class MultiLayerPerceptron(NetEstimator):
    """Base of `MLPClassifier` and `MLPRegressor`."""

    _parameters: ClassVar[Mapping[str, Domain]] = MLP_PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = MLP_DOCS
    _module_name = "epicycle.nets.mlp._module.multi_layer_perceptron"
    _documented_attributes: ClassVar[tuple[str, ...]] = (
        "coefs_",
        "intercepts_",
        "loss_",
        "best_loss_",
        "loss_curve_",
        "validation_scores_",
        "best_validation_score_",
        "n_layers_",
        "n_outputs_",
        "out_activation_",
    )
    _takes_sparse = True

    hidden_layer_sizes: Any
    activation: str
    solver: str
    alpha: float
    batch_size: Any
    power_t: float
    momentum: float
    nesterovs_momentum: bool
    beta_1: float
    beta_2: float
    epsilon: float
    dropout: float
    residual: bool

    n_outputs_: int
    out_activation_: str
    tol: float | None
    accumulate: int
    precision: str
    max_fun: int
    max_iter: int

    def _table_rows(self, data: Data, target: Any = None) -> Any:
        from epicycle.nets.training._batches import table_rows

        return table_rows(data, target)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {
            "layers": self._architecture_sizes(),
            "activation": {"sigmoid": "logistic"}.get(self.activation, self.activation),
            "dropout": float(self.dropout),
            "residual": bool(self.residual),
            "dtype": str(rows.dtype),
        }

    def _training_options(self, rows: Any) -> TrainingOptions:
        options = super()._training_options(rows)
        size = min(200, rows.n_rows) if self.batch_size == "auto" else min(int(self.batch_size), rows.n_rows)
        return replace(
            options,
            parts=self._parts(size),
            solver="sgd" if self.solver == "backprop" else options.solver,
            batch_size=size,
            nesterov=bool(self.nesterovs_momentum),
            betas=(float(self.beta_1), float(self.beta_2)),
            eps=float(self.epsilon),
            alpha=0.0 if self.solver == "adamw" else float(self.alpha),
            weight_decay=float(self.alpha) if self.solver == "adamw" else 0.0,
        )

    def _parts(self, batch_rows: int) -> int:
        """Pieces of a batch that are worth computing side by side."""
        sizes = self._architecture_sizes()
        work = 6 * batch_rows * sum(a * b for a, b in pairwise(sizes))  # multiplications and additions
        return parts_of(work, self.accumulate)

    def _architecture_sizes(self) -> list[int]:
        return [self.n_features_in_, *sizes_of(self.hidden_layer_sizes), self.n_outputs_]

    def _own_gradients(self, module: Any, rows: Any) -> Any:
        from epicycle.nets.mlp._backprop import CompiledGradients, HandWrittenGradients
        from epicycle.nets.training._processes import n_processes

        plain = (
            self.dropout == 0
            and not self.residual
            and self.accumulate == 1
            and self.precision == "full"
            and self.device == "cpu"
        )
        given = (module, self.architecture_, self._loss(), rows.mean_weight, getattr(self, "label_smoothing", 0.0))
        if self.solver == "backprop":
            if not plain:
                raise ParameterError(
                    "solver='backprop' is the gradient on a whole batch, written out; expected dropout=0, "
                    "residual=False, accumulate=1, precision='full' and device='cpu'"
                )
            return HandWrittenGradients(*given)
        small = self._training_options(rows).parts == 1 and n_processes() == 1
        known = CompiledGradients.know(self.architecture_["activation"], self._loss())
        return CompiledGradients(*given) if plain and small and known and not self.compile else None

    def _train(self, rows: Any, architecture: dict[str, Any], *, stream: bool = False) -> None:
        if self.solver != "lbfgs":
            super()._train(rows, architecture, stream=stream)
        elif self.early_stopping or self.dropout > 0 or self.device != "cpu" or self.tol is None:
            raise ParameterError(
                "solver='lbfgs' minimises one function of all rows to a tolerance; expected early_stopping=False, "
                "dropout=0, device='cpu' and a tol"
            )
        else:
            self._train_by_lbfgs(rows, architecture)

    def _train_by_lbfgs(self, rows: Any, architecture: dict[str, Any]) -> None:
        """Minimise the mean loss of all rows by `optim.lbfgs`."""
        from epicycle.nets.training._objective import ModuleObjective

        resume = self._resume_state()
        self.architecture_ = architecture
        # A resumed fit takes its weights from the state.
        module = self._first_module(architecture, seed_of(self.random_state) if resume is None else 0)
        objective = ModuleObjective(module, self._row_losses(), rows, float(self.alpha))

        def weights(x: np.ndarray) -> dict[str, Any]:
            objective.set_weights(x)
            arrays = {name: np.array(value.detach().numpy()) for name, value in module.state_dict().items()}
            return {**self._learnt_so_far(), "_weights_": arrays}

        monitor = _LimitedMonitor(
            self._monitor(self.max_iter, weights), lambda: objective.calls, self.max_fun, self._run
        )
        solution = solve(
            "lbfgs",
            objective,
            objective.start(),
            tol=float(self.tol),  # type: ignore[arg-type]
            max_iter=self.max_iter,
            monitor=monitor,
            state=resume,
        )
        objective.set_weights(solution.x)
        self._keep_module(module)
        self._conclude(solution)

    def _module_outputs(self, X: Any) -> Any:
        from epicycle.nets.training._prediction import table_outputs

        data = self._predict_data(X)
        return engine.map(table_outputs, data, self.module_, self.architecture_["dtype"])

    # ------------------------------------------------------------------------------------------- scikit-learn's names

    def _layers(self, kind: str) -> list[np.ndarray]:
        self._check_fitted()
        return [w for name, w in self._weights_.items() if name.endswith(kind)]

    @property
    def coefs_(self) -> list[np.ndarray]:
        """Weights of each layer, of shape (inputs, outputs)."""
        return [w.T for w in self._layers("weight")]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """Intercepts of each layer."""
        return self._layers("bias")

    @property
    def n_layers_(self) -> int:
        """Layers, those of the inputs and of the outputs among them."""
        return len(self.architecture_["layers"])

    @property
    def loss_curve_(self) -> list[float]:
        """The mean loss of each epoch, with the penalty."""
        return [float(value) for value in self.history_["objective"]]

    @property
    def loss_(self) -> float:
        """The mean loss of the last epoch, with the penalty."""
        return self.loss_curve_[-1]

    @property
    def best_loss_(self) -> float | None:
        """The smallest mean loss of an epoch; None with early stopping."""
        return None if self.early_stopping else min(self.loss_curve_)

    @property
    def validation_scores_(self) -> list[float] | None:
        """The score on the rows held out after each epoch; None without early stopping."""
        if "validation_score" not in self.history_:
            return None
        return [float(value) for value in self.history_["validation_score"]]

    @property
    def best_validation_score_(self) -> float | None:
        """The greatest of them, whose weights are kept; None without early stopping."""
        scores = self.validation_scores_
        return None if scores is None else max(scores)
