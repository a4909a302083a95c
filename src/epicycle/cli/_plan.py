"""``epicycle plan``: solve a decision process, print policy and values with the certificate, write the report."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from epicycle import control
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder, write_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder
from epicycle.control import MDP, PlanningSolution
from epicycle.core._exceptions import ParameterError
from epicycle.report._plain import plain, shown
from epicycle.report.decisions._planning import ARROWS

METHODS = ("policy_iteration", "value_iteration", "modified_policy_iteration", "linear_program")
_EXACT = 5000  # states up to which policy iteration is a matter of seconds whatever the process
_SHOWN, _WIDE = 40, 12  # states that are printed, and columns of a grid


def run_plan(
    model: str,
    *,
    method: str,
    discount: float | None,
    tol: float,
    out: Path | None,
    as_json: bool,
    n_jobs: int | None,
) -> None:
    """Solve, write the folder, print the result."""
    if method != "auto" and method not in METHODS:
        raise ParameterError(f"--method {method}: expected auto, {', '.join(METHODS)}")
    folder = check_folder(out if out is not None else f"{default_folder(model)}-plan")
    mdp = control.read_mdp(model, discount=discount)
    name = chosen_method(mdp) if method == "auto" else method
    options = {} if name == "linear_program" else {"n_jobs": n_jobs}
    solution: PlanningSolution = getattr(control, name)(mdp, tol=tol, **options)
    record = record_of(solution, name, Path(model).name)
    write_folder(folder, {**files_of(record), "policy.csv": _policy_file(record["planning"]["policy"])})
    if as_json:
        print(json.dumps({**plain(record["planning"]), "folder": os.fspath(folder)}, indent=2))
    else:
        print_plan(solution, record, folder)


def chosen_method(mdp: MDP) -> str:
    """Policy iteration for what is small, modified policy iteration for what is large."""
    if mdp.criterion == "average":
        return "value_iteration"
    return "policy_iteration" if mdp.n_states <= _EXACT else "modified_policy_iteration"


def record_of(solution: PlanningSolution, method: str, source: str) -> dict[str, Any]:
    """Record of a report about a plan."""
    mdp, certificate = solution.mdp, solution.certificate
    labels, ends, chosen = [_name(s) for s in mdp.states.tolist()], mdp.is_terminal, solution.policy
    rows = [
        {
            "state": labels[i],
            "action": None if ends[i] else str(chosen[i]),
            "value": float(solution.values[i]),
            "lower": None if solution.lower is None else float(solution.lower[i]),
            "upper": None if solution.upper is None else float(solution.upper[i]),
            "terminal": bool(ends[i]),
        }
        for i in range(mdp.n_states)
    ]
    cells = mdp.states.tolist() if _is_grid(mdp) else []
    return {
        "title": f"Plan of {source}",
        "planning": {
            "method": method.replace("_", " "),
            "states": mdp.n_states,
            "actions": mdp.n_actions,
            "pairs": mdp.n_pairs,
            "terminal": int(ends.sum()),
            "criterion": mdp.criterion,
            "discount": mdp.discount,
            "gain": solution.gain,
            "policy": rows,
            "cells": [list(cell) for cell in cells],
            "unreachable": [_name(s) for s in mdp.unreachable_states().tolist()],
            "history": {"residual": solution.history["residual"].tolist()},
            "certificate": plain(certificate),
        },
    }


def _name(state: Any) -> str:
    return f"{state[0]},{state[1]}" if isinstance(state, tuple) else str(state)


def _is_grid(mdp: MDP) -> bool:
    return all(isinstance(s, tuple) and len(s) == 2 for s in mdp.states.tolist())


def _policy_file(rows: list[dict[str, Any]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["state", "action", "value", "lower", "upper"])
            for row in rows:
                numbers = ["" if row[key] is None else repr(row[key]) for key in ("value", "lower", "upper")]
                writer.writerow([row["state"], row["action"] or "", *numbers])

    return write


def print_plan(solution: PlanningSolution, record: dict[str, Any], folder: Path) -> None:
    """Print the policy, the values and the certificate."""
    mdp, found, width = solution.mdp, record["planning"], terminal_width(sys.stdout)
    print(wrapped(f"{mdp!r} solved by {found['method']} in {solution.n_iter} iterations", width))
    if _is_grid(mdp) and np.array(mdp.states.tolist())[:, 1].max() < _WIDE:
        print(_drawn(solution))
    else:
        for row in found["policy"][:_SHOWN]:
            print(f"  {row['state']}: {row['action'] or 'end'}, {shown(row['value'], 6)}")
        if mdp.n_states > _SHOWN:
            print(f"  and {mdp.n_states - _SHOWN:,} more states, in policy.csv")
    if solution.gain is not None:
        print(f"mean reward of a step: {solution.gain:.6g}")
    if found["unreachable"]:
        names = ", ".join(found["unreachable"][:8])
        print(wrapped(f"no action of another state leads to {names}", width))
    print(wrapped(f"certificate: {solution.certificate}; {solution.certificate.meaning}", width))
    print(wrapped(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}", width))


def _drawn(solution: PlanningSolution) -> str:
    """A grid with arrows and values, walls as #."""
    mdp = solution.mdp
    cells = np.array(mdp.states.tolist())
    picture = np.full(cells.max(axis=0) + 1, "#".center(8), dtype=object)
    for (i, j), action, value, ends in zip(cells, solution.policy, solution.values, mdp.is_terminal, strict=True):
        picture[i, j] = f"{'=' if ends else ARROWS.get(str(action), str(action)[:1])} {value:6.3f}"
    return "\n".join("  " + "  ".join(line) for line in picture)
