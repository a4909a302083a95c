"""Games as files keep them: by name, with their options."""

from __future__ import annotations

from typing import Any

from epicycle.core._exceptions import ParameterError
from epicycle.search.games._board_games import NATIVE_GAMES, Go
from epicycle.search.games._game import Game
from epicycle.search.games._poker import KuhnPoker, LeducPoker

#: Games by the name that a file has; rules of one's own are code, which files do not hold.
_GAMES: dict[str, type[Game]] = {**NATIVE_GAMES, "kuhn-poker": KuhnPoker, "leduc-poker": LeducPoker}


def saved_game(owner: str, game: Game) -> dict[str, Any]:
    """The name of a game with its options."""
    name = next((key for key, cls in _GAMES.items() if type(game) is cls), None)
    if name is None:
        raise ParameterError(
            f"{owner}.save: the rules of {type(game).__name__} are code, which files do not hold; expected "
            f"one of {', '.join(cls.__name__ for cls in _GAMES.values())}"
        )
    return {"name": name, **({"size": game.size, "komi": game.komi} if isinstance(game, Go) else {})}


def restored_game(state: dict[str, Any]) -> Game:
    """The game that a file names."""
    options = dict(state)
    return _GAMES[options.pop("name")](**options)


def same_rules(one: Game | None, other: Game) -> bool:
    """Whether two games are the same, as far as can be known."""
    if one is other:
        return True
    return type(one) is type(other) and type(other) in _GAMES.values() and vars(one) == vars(other)
