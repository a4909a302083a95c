"""`NetEstimator`, the base of all networks: from data to rows, to a trained module, to the evidence and the file.

A subclass says what its module is (`_module_name`, `_architecture`), how data becomes rows (`_training_rows`) and
what is minimised (`_loss`, or `_row_losses` where that is not enough). torch is imported when a fit or a prediction
needs it.
"""

from __future__ import annotations

import inspect
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from epicycle.core._checks import optional_import
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import Domain
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core.estimator import Estimator, fitting
from epicycle.data import ArrayData
from epicycle.nets._evidence import certificate
from epicycle.nets.training._options import NET_DOCS, NET_PARAMETERS, TrainingOptions
from epicycle.nets.training._torch import (
    deterministic_kernels,
    device_named,
    device_of,
    memory_errors_named,
    one_thread_each,
    require_torch,
    seeded,
)
from epicycle.optim import Loss
from epicycle.stats._binomial import largest_rate

if TYPE_CHECKING:
    from epicycle.nets.training._batches import MiniBatch, Rows

#: Rows on which the gradient at the end of a fit is computed, at most.
_GRADIENT_ROWS = 8192


class NetEstimator(Estimator):
    """Base of the networks.

    What a fit learns is `architecture_`, a dictionary of numbers, texts and lists, and the weights as arrays; both are
    in a model file. The module is built from them when it is first asked for.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = NET_PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = NET_DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = ("architecture_", "module_")
    #: Where the class of the torch module stands, or a function that makes it, from an architecture. Like torch it is
    #: imported when a module is built.
    _module_name: ClassVar[str]
    #: Entries of the architecture that `partial_fit` keeps from its first call, such as the scale of the first rows.
    _kept_in_streams: ClassVar[tuple[str, ...]] = ()

    random_state: Any
    warm_start: bool
    early_stopping: bool
    validation_fraction: float
    device: str

    architecture_: dict[str, Any]
    #: Weights and buffers by name; on the CPU they share their memory with the module.
    _weights_: dict[str, np.ndarray]
    #: The weights that a module was built from, and the module; not in files or copies.
    _built: tuple[Mapping[str, np.ndarray], Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # A class says the domains of its own arguments; those of the others are its bases'.
        tables = [vars(base).get("_parameters", {}) for base in reversed(cls.__mro__)]
        domains = {name: domain for table in tables for name, domain in table.items()}
        arguments = inspect.signature(cls).parameters  # none of an abstract base
        cls._parameters = {name: domains[name] for name in domains if name in arguments or not arguments}
        super().__init_subclass__(**kwargs)

    # ------------------------------------------------------------------------------------------- for subclasses

    @classmethod
    def _build_module(cls, architecture: Mapping[str, Any]) -> Any:
        """The torch module of an architecture, with weights drawn from torch's generator."""
        place, _, name = cls._module_name.rpartition(".")
        return getattr(import_module(place), name)(architecture)

    @abstractmethod
    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """The data of `fit` as rows with targets; sets `n_features_in_`, `classes_` and the like."""

    @abstractmethod
    def _architecture(self, rows: Rows) -> dict[str, Any]:
        """Input of `_build_module`, from the arguments and the data."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of `optim` that is minimised."""

    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        """(module, batch) -> the loss of every row: by default `_loss` of what the module makes of the inputs."""
        from epicycle.nets.training._losses import loss_of_rows

        of_rows = loss_of_rows(self._loss(), getattr(self, "label_smoothing", 0.0))
        return lambda module, batch: of_rows(module(*batch.inputs), batch.target)

    def _training_options(self, rows: Rows) -> TrainingOptions:
        """Options of the training, from the constructor arguments of the fields' names."""
        names = set(TrainingOptions.__dataclass_fields__) & set(vars(self))
        given = {name: vars(self)[name] for name in names}
        return TrainingOptions(**given, step_size=max(1, math.ceil(given["max_iter"] / 3)))

    def _gradient_rows(self) -> int:
        """Rows on which the gradient at the end of a fit is computed, at most."""
        return _GRADIENT_ROWS

    def _own_gradients(self, module: Any, rows: Rows) -> Callable[[MiniBatch, int], Any] | None:
        """(batch, step) -> loss, having set the gradients, where they are not torch's."""
        return None

    def _held_out_scores(self, outputs: np.ndarray, rows: Any) -> dict[str, float]:
        """Columns of the history from the outputs on rows that are held out; "validation_score": greater is better."""
        return {}

    def _held_out_errors(self, outputs: np.ndarray, rows: Any) -> np.ndarray | None:
        """Whether each of them is wrong, for the bound on the error; None where nothing is right or wrong."""
        return None

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the network on rows X with targets y."""
        return self._learn(X, y, sample_weight)

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        require_torch(type(self).__name__)
        rows = self._training_rows(X, y, sample_weight)
        self._train(rows, self._architecture(rows))
        return self

    def _train(self, rows: Rows, architecture: dict[str, Any], *, stream: bool = False) -> None:
        """Train a module of this architecture, keep its weights, and conclude with the evidence.

        With `stream` for one more epoch, from the weights and the memory of the optimiser as they are.
        """
        from epicycle.nets.training._loop import TrainingRun

        resume = vars(self).get("_stream_state_") if stream else self._resume_state()
        seed = int(resume["seed"]) if resume is not None else seed_of(self.random_state)
        options = self._training_options(rows)
        if options.precision == "float16" and device_named(options.device).type == "cpu":
            raise ParameterError("precision='float16' needs a GPU; expected 'full' or 'bfloat16' with device='cpu'")
        if stream:
            options = replace(options, max_iter=1 if resume is None else int(resume["iteration"]) + 1, tol=None)
        held = None
        if options.early_stopping:
            rows, held = self._hold_out(rows, seed)
        if stream and "architecture_" in self._run.earlier:
            earlier = self._run.earlier["architecture_"]
            architecture = {**architecture, **{name: earlier[name] for name in self._kept_in_streams}}
        self.architecture_ = architecture
        with memory_errors_named(type(self).__name__), one_thread_each(), deterministic_kernels(options.deterministic):
            module = self._first_module(architecture, seed, stream=stream)
            run = TrainingRun(
                module,
                self._row_losses(),
                rows,
                options,
                seed=seed,
                monitor=self._monitor(options.max_iter, lambda _x: self._reconstruction(run)),
                validation=None if held is None else lambda m: self._validate(m, held),
                resume=resume,
                gradients=self._own_gradients(module, rows),
            )
            outcome = run.run()
            if outcome.reason == "diverged" and outcome.n_iter == 0:
                raise ConvergenceError(
                    f"{type(self).__name__}: the loss was no longer a number in the first epoch; lower "
                    "learning_rate_init, set clip_norm, or scale the features (StandardScaler, say)"
                )
            gradient = self._last_gradient(module, rows, options, seed)
            if not math.isfinite(gradient):
                raise ConvergenceError(
                    f"{type(self).__name__}: the loss of the trained network is no number; lower learning_rate_init or "
                    "weight_decay, or set clip_norm"
                )
            bound = self._bound(module, held, outcome.n_iter)
        self._keep_module(module)
        proof, reason = certificate(outcome, options, gradient, bound)
        history = outcome.history
        if stream:
            self._stream_state_ = outcome.state
            before = self._run.earlier.get("history_")
            history = history if before is None else _joined(before, history)
        self._conclude(
            Solution(np.zeros(1), outcome.objective, history, proof, outcome.n_iter, reason, state=outcome.state)
        )

    def _first_module(self, architecture: Mapping[str, Any], seed: int, *, stream: bool = False) -> Any:
        """The module that a fit starts from: new, or with `warm_start` or for a stream that of the fit before."""
        with seeded(seed):
            module = self._build_module(architecture)
        earlier = self._run.earlier
        if (stream or getattr(self, "warm_start", False)) and "_weights_" in earlier:
            from epicycle.nets.training._loop import as_tensors
            from epicycle.nets.training._weights import load_weights

            if earlier["architecture_"] != architecture:
                what = "partial_fit" if stream else "warm_start"
                raise DataError(
                    f"{what}: the earlier fit has the architecture {earlier['architecture_']}, this one "
                    f"{architecture}; expected the same layers, features and classes"
                )
            load_weights(module, as_tensors(earlier["_weights_"], device_named("cpu")))
        return module

    def _hold_out(self, rows: Any, seed: int) -> tuple[Rows, Rows]:
        """(rows to learn from, rows to score), at random; of classes in their shares."""
        from sklearn.model_selection import train_test_split

        if not hasattr(rows, "subset"):
            raise ParameterError(
                f"{type(self).__name__}: early_stopping=True holds rows out, which needs data in memory"
            )
        labels = self._strata(rows)
        numbers = np.arange(rows.n_rows)
        try:
            kept, held = train_test_split(
                numbers, test_size=self.validation_fraction, random_state=seed % 2**32, stratify=labels
            )
        except ValueError as error:
            raise DataError(f"validation_fraction={self.validation_fraction:g}: {error}") from None
        if len(held) < 2:
            raise DataError(
                f"validation_fraction={self.validation_fraction:g}: The validation set is too small, {len(held)} of "
                f"{rows.n_rows} rows; expected at least 2"
            )
        return rows.subset(np.sort(kept)), rows.subset(np.sort(held))

    def _strata(self, rows: Any) -> np.ndarray | None:
        """Labels whose shares the rows that are held out keep."""
        return None

    def _validate(self, module: Any, held: Rows) -> dict[str, float]:
        outputs = self._outputs(module, held)
        return {
            "validation_loss": self._mean_loss(module, held),
            **self._held_out_scores(outputs, held),
        }

    def _mean_loss(self, module: Any, rows: Rows) -> float:
        """The weighted mean loss of rows, in the mode of the module."""
        import torch

        losses, total, weight = self._row_losses(), 0.0, 0.0
        with torch.no_grad():
            for batch in rows.in_order(self._prediction_batch()):
                values = losses(module, batch.to(device_of(module))).double().cpu()
                w = torch.ones_like(values) if batch.weight is None else batch.weight.double()
                total, weight = total + float(values @ w), weight + float(w.sum())
        return total / weight

    def _last_gradient(self, module: Any, rows: Rows, options: TrainingOptions, seed: int) -> float:
        """The norm of the gradient of the mean loss on the first rows, without dropout."""
        from epicycle.nets.training._gradients import Gradients

        gradients = Gradients(
            module, self._row_losses(), options, mean_weight=rows.mean_weight, seed=seed, device=device_of(module)
        )
        gradients.scaler = None
        total: Any = None
        n = 0
        for batch in rows.in_order(options.batch_size):
            gradients(batch, 0)
            parts = [p.grad.double() * batch.n_rows for p in gradients.trained if p.grad is not None]
            total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
            n += batch.n_rows
            if n >= self._gradient_rows():
                break
        for weight in gradients.trained:
            weight.grad = None
        return math.sqrt(sum(float(g.square().sum()) for g in total)) / n

    def _bound(self, module: Any, held: Rows | None, n_looks: int) -> tuple[int, int, float] | None:
        """(errors, rows, upper bound on the error rate) on the rows that are held out."""
        if held is None:
            return None
        wrong = self._held_out_errors(self._outputs(module, held), held)
        if wrong is None:
            return None
        # The epoch was chosen by the same rows: a bound for each of them at once.
        return int(wrong.sum()), len(wrong), largest_rate(int(wrong.sum()), len(wrong), 0.05 / max(n_looks, 1))

    def _learn_more(self, rows: Rows) -> None:
        """One more epoch over these rows, for `partial_fit`."""
        if self.early_stopping:
            raise ParameterError("partial_fit does not support early_stopping=True: a stream has no validation set")
        schedule = getattr(self, "learning_rate", "constant")
        if schedule not in ("constant", "invscaling"):
            raise ParameterError(
                f"partial_fit: learning_rate={schedule!r} needs to know the number of steps; expected 'constant' or "
                "'invscaling'"
            )
        self._train(rows, self._architecture(rows), stream=True)

    # ------------------------------------------------------------------------------------------- the module

    def _reconstruction(self, run: Any) -> dict[str, Any]:
        """The attributes that prediction needs, for callbacks while the fit runs."""
        from epicycle.nets.training._loop import as_arrays

        return {**self._learnt_so_far(), "_weights_": as_arrays(run.kept())}

    def _learnt_so_far(self) -> dict[str, Any]:
        """The fitted attributes but for the weights."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[:2] != "__"}

    def _keep_module(self, module: Any) -> None:
        """Make a module the one that predicts."""
        module.eval()
        self._weights_ = {name: value.detach().cpu().numpy() for name, value in module.state_dict().items()}
        self._built = (self._weights_, module)

    @property
    def module_(self) -> Any:
        """The trained torch.nn.Module, in evaluation mode; built from the weights when it is first asked for."""
        self._check_fitted()
        built = vars(self).get("_built")
        if built is not None and built[0] is self._weights_:
            return built[1]
        require_torch(f"{type(self).__name__}.module_")
        from epicycle.nets.training._loop import as_tensors
        from epicycle.nets.training._weights import load_weights

        device = device_named(self.device)
        with seeded(0):
            module = self._build_module(self.architecture_).to(device)
        load_weights(module, as_tensors(self._weights_, device))
        for weight in module.parameters():
            weight.grad = None
        self._keep_module(module)
        return module

    def to_onnx(self, path: str | os.PathLike[str], X: Any) -> None:
        """Write the module as an ONNX file, which other programs run (needs the package onnx).

        Parameters
        ----------
        path : str or path-like
        X : array-like
            A few rows, from which the shapes of the inputs are read; their number may differ when the file is used.
        """
        self._check_fitted()
        require_torch(f"{type(self).__name__}.to_onnx")
        optional_import("onnx", f"{type(self).__name__}.to_onnx")
        import torch

        inputs = self._example_inputs(X)
        names = [f"input_{i}" for i in range(len(inputs))] if len(inputs) > 1 else ["input"]
        torch.onnx.export(
            self.module_.cpu(),
            inputs,
            os.fspath(path),
            input_names=names,
            output_names=["output"],
            dynamic_axes={name: {0: "rows"} for name in [*names, "output"]},
            dynamo=False,
        )

    def _example_inputs(self, X: Any) -> tuple[Any, ...]:
        """A few rows as the tensors that the module is called with."""
        return tuple(x[:2] for x in self._module_inputs(X))

    def _module_inputs(self, X: Any) -> tuple[Any, ...]:
        """Rows in memory as the tensors that the module is called with."""
        import torch

        data = self._predict_data(X)
        rows = data.X if isinstance(data, ArrayData) else data.head().X
        rows = rows.toarray() if sp.issparse(rows) else rows
        return (torch.from_numpy(np.array(rows, dtype=self.architecture_.get("dtype", "float32"))),)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_built", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_weights_" in vars(self)

    # ------------------------------------------------------------------------------------------- prediction

    def _prediction_batch(self) -> int:
        """Rows that go through the module at once in prediction."""
        return 256

    def _outputs(self, module: Any, rows: Rows) -> np.ndarray:
        """Outputs of the module for rows, in order, as one array."""
        from epicycle.nets.training._prediction import outputs

        return outputs(module, rows, self._prediction_batch())


def _joined(first: History, second: History) -> History:
    """The rows of one history after those of another."""
    rows = np.full(first.n_iter, np.nan), np.full(second.n_iter, np.nan)
    names = dict.fromkeys([*first, *second])
    return History(
        **{
            name: np.concatenate([h.get(name, gap) for h, gap in zip((first, second), rows, strict=True)])
            for name in names
        }
    )
