"""The training loop of every network.

One step:  batch -> gradient of its mean loss -> clip -> update rule at the scheduled rate -> average of the weights.
One iteration (an epoch, unless `steps_per_iteration` is given) ends with a row of the history, the validation scores,
the rule that says stop, and callbacks, which may write a checkpoint.

A checkpoint holds weights, optimiser, the best weights so far, and the numbers of the step, the epoch and the batch in
it. The order of the rows and everything that is drawn follow from the seed and these numbers, so a resumed run ends in
the same bits as an undisturbed one (on a CPU, for any number of threads).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch

from epicycle.core._history import History
from epicycle.core._monitor import Monitor
from epicycle.nets.training._batches import MiniBatch, Rows
from epicycle.nets.training._gradients import Gradients, RowLosses
from epicycle.nets.training._optimizers import make_optimizer, optimizer_state, restore_optimizer, set_rates
from epicycle.nets.training._options import TrainingOptions
from epicycle.nets.training._randomness import drawing_from
from epicycle.nets.training._schedules import LARGEST_SHRINKAGE, learning_rate
from epicycle.nets.training._torch import device_named
from epicycle.nets.training._weights import Weights, load_weights, weights_of

#: A loss that is no number is noticed within so many steps.
_CHECK_EVERY = 32
#: Of rates and decays, beyond which torch has errors of its own; such a step leads to weights that are not finite.
_LARGEST = torch.finfo(torch.float32).max

#: (module) -> columns of the history, among them "validation_score" (greater is better) where one is held out.
Validation = Callable[[torch.nn.Module], Mapping[str, float]]


@dataclass
class Outcome:
    """The end of a run: with `weights` in the module, for `reason`, after `n_iter` iterations and `n_steps` steps."""

    weights: Weights
    objective: float
    history: History
    n_iter: int
    n_steps: int
    reason: str
    state: Mapping[str, Any]


@dataclass
class _Progress:
    """State of a run; all of it is in a checkpoint."""

    iteration: int = 0
    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of the epoch that are done
    shrinkage: float = 1.0
    best: float = math.inf  # smallest loss, or negative score, so far
    waited: int = 0  # iterations since the best one
    best_weights: Weights = field(default_factory=dict)
    average: Weights = field(default_factory=dict)


class TrainingRun:
    """One run of the loop over one module.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place. Buffers that are the state of a process, such as Markov chains, it names in `states`: they
        are not averaged with the weights.
    row_losses : callable
        (module, batch) -> the loss of every row, of shape (n_rows,).
    rows : Rows
        What is learnt from.
    options : TrainingOptions
    seed : int
        Of the order of the rows and of what the module draws.
    monitor : Monitor
    validation : callable, optional
        Scores of the module on rows that are held out, after every iteration.
    resume : mapping, optional
        The `state` of an earlier run of the same kind.
    gradients : callable, optional
        (batch, step) -> loss, having set the gradients; by default torch's. Where it has a method ``columns()``, that
        gives further numbers for the row of the history after each iteration; where `in_place` is true, the gradients
        are in the same arrays in every step. What it draws with the generator of
        `training._randomness` follows from the seed and the step.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        row_losses: RowLosses,
        rows: Rows,
        options: TrainingOptions,
        *,
        seed: int,
        monitor: Monitor,
        validation: Validation | None = None,
        resume: Mapping[str, Any] | None = None,
        gradients: Callable[[MiniBatch, int], torch.Tensor] | None = None,
    ) -> None:
        self.options, self.rows, self.seed, self.monitor, self.validation = options, rows, seed, monitor, validation
        self.device = device_named(options.device)
        self.module = module.to(self.device)
        self.scaler = None
        if gradients is None:
            gradients = Gradients(
                self.module, row_losses, options, mean_weight=rows.mean_weight, seed=seed, device=self.device
            )
            self.scaler = gradients.scaler
        self.gradients = gradients
        rows.send_to(self.device)
        self.trained = [p for p in module.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self.module, options, in_place=getattr(gradients, "in_place", False))
        self.at = _Progress()
        if resume:
            self._restore(resume)
        elif options.average is not None:
            self.at.average = {name: value.clone() for name, value in weights_of(self.module).items()}
        self.steps_per_epoch = rows.n_batches(options.batch_size)
        self.steps_per_iteration = options.steps_per_iteration or self.steps_per_epoch
        self.total_steps = options.max_iter * self.steps_per_iteration

    # ------------------------------------------------------------------------------------------- the loop

    def run(self) -> Outcome:
        """Train until a rule or a callback says stop, or all iterations are done."""
        at, reason, loss = self.at, "max_iter", math.nan
        good = self.kept()  # the weights after the last iteration whose loss was a number
        try:
            while at.iteration < self.options.max_iter:
                self.module.train()
                loss, columns = self._iteration()
                if not math.isfinite(loss):
                    reason = "diverged"
                    load_weights(self.module, good)
                    break
                at.iteration += 1
                self.module.eval()
                good = self.kept()
                columns |= self._validate(good)
                stop = self._no_longer_improves(loss, columns.get("validation_score"))
                # The monitor comes first: what it writes has to hold the decision of the rule.
                asked = self.monitor(at.iteration, np.zeros(1), objective=loss, state=self.state, **columns)
                if stop or asked:
                    reason = "converged" if stop else "stopped"
                    break
        finally:
            self.module.eval()
        # What a resumed fit goes on from is where training stands, and not the best weights or their average.
        state = {} if reason == "diverged" else self.state()
        final = at.best_weights if self.options.early_stopping and at.best_weights else good
        load_weights(self.module, final)
        history = self.monitor.history()
        if not math.isfinite(loss) and history.n_iter:
            loss = float(history.objective[-1])
        return Outcome(final, loss, history, at.iteration, at.step, reason, state)

    def _iteration(self) -> tuple[float, dict[str, float]]:
        """Some steps; gives the mean loss of their batches, and columns of the history."""
        at, options = self.at, self.options
        total, rows, rate = torch.zeros((), dtype=torch.float64, device=self.device), 0, math.nan
        for k, batch in enumerate(self._batches(self.steps_per_iteration)):
            rate = learning_rate(options, at.step, self.total_steps, at.epoch, at.shrinkage)
            total.add_(self._step(batch, rate), alpha=batch.n_rows)
            rows += batch.n_rows
            if k % _CHECK_EVERY == 0 and not math.isfinite(float(total)):
                return math.nan, {}
        norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in self.trained if p.grad is not None))
        loss = float(total) / rows + self._penalty(min(options.batch_size, self.rows.n_rows))
        if not math.isfinite(norm) or not _finite(self.trained):
            return math.nan, {}
        further: dict[str, float] = getattr(self.gradients, "columns", dict)()
        return loss, {"gradient_norm": norm, "learning_rate": rate, **further}

    def _step(self, batch: MiniBatch, rate: float) -> torch.Tensor:
        """One step along the gradient of a batch; gives its mean loss."""
        at, options = self.at, self.options
        decay = options.weight_decay + options.alpha / (batch.n_rows * self.rows.mean_weight)
        set_rates(self.optimizer, min(rate, _LARGEST), min(decay, _LARGEST))
        # What an estimator's own gradients draw; ours name a stream for each part of the batch.
        own = not isinstance(self.gradients, Gradients)
        with drawing_from(self.seed, at.step, 0, self.device) if own else nullcontext():
            loss = self.gradients(batch, at.step)
        if options.clip_norm is not None:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.trained, options.clip_norm)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        at.step += 1
        if at.average:
            self._update_average()
        return loss

    def _batches(self, n: int) -> Any:
        """The next n batches, over the end of an epoch if need be."""
        at, options = self.at, self.options
        while n > 0:
            epoch = self.rows.epoch(options.batch_size, at.epoch, self.seed, shuffle=options.shuffle)
            for batch in islice(epoch, at.position, at.position + n):
                at.position += 1
                n -= 1
                yield batch
            if at.position >= self.steps_per_epoch:
                at.epoch, at.position = at.epoch + 1, 0

    # ------------------------------------------------------------------------------------------- its parts

    def _penalty(self, batch_rows: int) -> float:
        """The penalty of the objective, as each batch has it."""
        o = self.options
        strength = (0.0 if o.solver == "adamw" else o.weight_decay) + o.alpha / (batch_rows * self.rows.mean_weight)
        if strength == 0 or o.solver == "adamw":
            return 0.0
        return strength / 2 * sum(float(p.detach().double().square().sum()) for p in self.trained if p.ndim > 1)

    def kept(self) -> Weights:
        """A copy of the weights that would be given back now: the last ones, or their average."""
        return {name: value.clone() for name, value in (self.at.average or weights_of(self.module)).items()}

    def _update_average(self) -> None:
        assert self.options.average is not None
        states = getattr(self.module, "states", ())
        d = min(self.options.average, (1 + self.at.step) / (10 + self.at.step))  # the start is forgotten sooner
        for name, value in self.module.state_dict().items():
            mean = self.at.average[name]
            if mean.is_floating_point() and name not in states:
                mean.lerp_(value, 1 - d)
            else:
                mean.copy_(value)

    def _validate(self, kept: Weights) -> dict[str, float]:
        """The scores on the rows that are held out, of the weights that would be given back now."""
        if self.validation is None:
            return {}
        if not self.at.average:
            return dict(self.validation(self.module))
        last = {name: value.clone() for name, value in weights_of(self.module).items()}
        load_weights(self.module, kept)
        scores = dict(self.validation(self.module))
        load_weights(self.module, last)
        return scores

    def _no_longer_improves(self, loss: float, score: float | None) -> bool:
        """scikit-learn's rule: no improvement by `tol` in more than `n_iter_no_change` iterations."""
        at, options = self.at, self.options
        value = -score if options.early_stopping and score is not None else loss
        tol = 0.0 if options.tol is None else options.tol
        at.waited = at.waited + 1 if value > at.best - tol else 0
        if value < at.best:
            at.best = value
            if options.early_stopping:
                at.best_weights = self.kept()
        if (options.tol is None and not options.early_stopping) or at.waited <= options.n_iter_no_change:
            return False
        if options.learning_rate == "adaptive" and at.shrinkage * options.learning_rate_init > LARGEST_SHRINKAGE:
            at.shrinkage, at.waited = at.shrinkage / 5, 0
            return False
        return True

    # ------------------------------------------------------------------------------------------- checkpoints

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on, copied: arrays, numbers and dictionaries of them."""
        at = self.at
        numbers = ("iteration", "step", "epoch", "position", "shrinkage", "best", "waited")
        sets = {"weights": weights_of(self.module), "average": at.average, "best_weights": at.best_weights}
        scaler = {} if self.scaler is None else {k: v for k, v in self.scaler.state_dict().items() if v is not None}
        return {
            "seed": self.seed,
            **{name: getattr(at, name) for name in numbers},
            **{name: as_arrays(weights) for name, weights in sets.items()},
            "optimizer": optimizer_state(self.optimizer),
            "scaler": scaler,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        at = self.at
        for name in ("iteration", "step", "epoch", "position", "waited"):
            setattr(at, name, int(state[name]))
        at.shrinkage, at.best = float(state["shrinkage"]), float(state["best"])
        for name in ("average", "best_weights"):
            setattr(at, name, as_tensors(state[name], self.device))
        load_weights(self.module, as_tensors(state["weights"], self.device))
        restore_optimizer(self.optimizer, state["optimizer"])
        if self.scaler is not None and state["scaler"]:
            self.scaler.load_state_dict(dict(state["scaler"]))


def _finite(weights: list[torch.Tensor]) -> bool:
    """Whether all weights are numbers."""
    return bool(torch.stack([torch.isfinite(w.detach()).all() for w in weights]).all())


def as_arrays(weights: Weights) -> dict[str, np.ndarray]:
    """Copies of tensors as arrays."""
    return {name: np.array(value.detach().cpu().numpy()) for name, value in weights.items()}


def as_tensors(arrays: Mapping[str, Any], device: torch.device) -> Weights:
    """Copies of arrays as tensors."""
    return {name: torch.from_numpy(np.array(value)).to(device) for name, value in arrays.items()}
