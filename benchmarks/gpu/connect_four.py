"""AlphaZero on Connect Four against Monte-Carlo search with ten times its simulations.

``python -m benchmarks.gpu.connect_four --out DIR --minutes 6`` learns for so many minutes by self-play, writes the
learner to DIR/connect_four.epi every few minutes, and plays 200 games at the end, 100 as the first player: a move of
the learner is a search of 100 simulations without noise, a move of the opponent one of 1,000 with random playouts.
DIR/connect_four.json has wins, draws and losses, the score with its interval, and Elo relative to that opponent over
the time of learning, from games in between. ``--quick`` is a small run on the CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.gpu._report import Figures
from epicycle import load
from epicycle.search import MCTS, AlphaZero, ConnectFour

FACTOR = 10


def main() -> None:
    given = _arguments()
    figures = Figures(given.out, "connect_four")
    file, began = given.out / "connect_four.epi", perf_counter()
    learner = _learner(given)
    opponent = MCTS(ConnectFour(), simulations=FACTOR * given.simulations)
    report: dict[str, Any] = {"simulations": given.simulations, "opponent": opponent.simulations, "curve": []}
    written = judged = began
    while perf_counter() - began < 60 * given.minutes:
        learner.learn(1)
        now = perf_counter()
        if now - judged > 60 * given.minutes / 12:
            between = learner.arena(opponent, given.games // 4, simulations=given.simulations)
            report["curve"].append(_row(learner, between, now - began))
            judged = perf_counter()
            figures.add(**report)
        if now - written > 120:
            learner.save(file)
            written = perf_counter()
    learner.save(file)
    seconds = perf_counter() - began
    match = learner.arena(opponent, given.games, simulations=given.simulations)
    report["final"] = _row(learner, match, seconds)
    report["history"] = {name: getattr(learner.history_, name).tolist() for name in learner.history_.columns}
    report["match_seconds"] = perf_counter() - began - seconds
    figures.add(**report)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of what is written")
    parser.add_argument("--minutes", type=float, default=6.0, help="time to learn")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--simulations", type=int, default=100, help="of each search in the match; MCTS has ten times")
    parser.add_argument("--games", type=int, default=200, help="of the match at the end")
    parser.add_argument("--resume", type=Path, help="a file of an earlier run to go on from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a small run, to see that it works")
    given = parser.parse_args()
    if given.quick:
        given.minutes, given.games, given.simulations = min(given.minutes, 0.5), min(given.games, 20), 20
    return given


def _learner(given: argparse.Namespace) -> AlphaZero:
    if given.resume is not None:
        found: AlphaZero = load(given.resume)
        return found
    quick = {"channels": 16, "blocks": 1, "simulations": 16, "games": 32, "steps": 20, "batch_size": 128}
    whole = {
        "channels": 64,
        "blocks": 4,
        "simulations": 80,
        "games": 1024,
        "steps": 120,
        "batch_size": 1024,
        "buffer_size": 200_000,
        "temperature_moves": 10,
        "learning_rate": 1e-3,
    }
    options: dict[str, Any] = quick if given.quick else whole
    return AlphaZero(ConnectFour(), **options, device=given.device, random_state=given.seed)


def _row(learner: AlphaZero, match: Any, seconds: float) -> dict[str, float]:
    row = {
        "seconds": seconds,
        "iterations": learner.n_iter_,
        "positions": float(learner.history_.positions[-1]),
        "wins": match.wins,
        "draws": match.draws,
        "losses": match.losses,
        "score": match.score,
        "interval": list(match.interval),
        "elo": match.elo,
    }
    print(f"{seconds:6.0f} s: {row['iterations']} iterations, {match.wins}-{match.draws}-{match.losses}", flush=True)
    return row


if __name__ == "__main__":
    main()
