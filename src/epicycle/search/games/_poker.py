"""Small games of poker, in which cards are hidden: Kuhn's with three cards, Leduc hold'em with six."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from epicycle.search.games._game import CHANCE, Game

PASS, BET = 0, 1
FOLD, CALL, RAISE = 0, 1, 2


class KuhnState(NamedTuple):
    """Cards that were dealt, and what was done since: 0 for a pass, 1 for a bet."""

    cards: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()


class KuhnPoker(Game):
    """Kuhn's poker: one of three cards each, an ante of 1, one bet of 1 that may be called.

    The value for the first player is -1/18 (H. Kuhn, 1950).

    Examples
    --------
    >>> from epicycle.search import SelfPlay, KuhnPoker
    >>> learner = SelfPlay("cfr+").learn(KuhnPoker(), 1000)
    >>> round(learner.value_ * 18, 2)
    -1.0
    """

    n_actions = 3  # chance deals one of three cards; players pass or bet
    _ENDS = ((0, 0), (0, 1, 0), (0, 1, 1), (1, 0), (1, 1))

    def initial_state(self) -> KuhnState:
        return KuhnState()

    def player(self, state: KuhnState) -> int:
        return CHANCE if len(state.cards) < 2 else len(state.actions) % 2

    def legal_moves(self, state: KuhnState) -> list[int]:
        if len(state.cards) < 2:
            return [card for card in range(3) if card not in state.cards]
        return [] if self.is_over(state) else [PASS, BET]

    def chance(self, state: KuhnState) -> list[float]:
        left = 3 - len(state.cards)
        return [1 / left] * left

    def apply(self, state: KuhnState, move: int) -> KuhnState:
        if len(state.cards) < 2:
            return KuhnState((*state.cards, move), ())
        return KuhnState(state.cards, (*state.actions, move))

    def is_over(self, state: KuhnState) -> bool:
        return state.actions in self._ENDS

    def result(self, state: KuhnState) -> float:
        if state.actions == (1, 0):
            return 1.0
        if state.actions == (0, 1, 0):
            return -1.0
        stake = 1.0 if state.actions == (0, 0) else 2.0
        return stake if state.cards[0] > state.cards[1] else -stake

    def information_set(self, state: KuhnState) -> Hashable:
        return (state.cards[self.player(state)], state.actions)

    def text(self, state: KuhnState) -> str:
        cards = " ".join("JQK"[card] for card in state.cards)
        return f"{cards} {''.join('pb'[a] for a in state.actions)}".strip()


class LeducState(NamedTuple):
    """Cards of the players and on the table, and the actions of the two rounds."""

    cards: tuple[int, ...] = ()
    rounds: tuple[tuple[int, ...], ...] = ((),)


class LeducPoker(Game):
    """Leduc hold'em: six cards of three ranks, one in each hand and one on the table, two rounds of bets.

    Each player puts in 1; raises are of 2 in the first round and of 4 in the second, two in a round at most. A pair
    with the card on the table wins, then the higher rank (Southey et al., 2005).

    Examples
    --------
    >>> from epicycle.search import LeducPoker
    >>> game = LeducPoker()
    >>> game.legal_moves(game.apply(game.apply(game.initial_state(), 0), 5))
    [1, 2]
    """

    n_actions = 6  # chance deals one of six cards; players fold, call (or check) or raise
    _RAISES = 2

    def initial_state(self) -> LeducState:
        return LeducState()

    def _deals(self, state: LeducState) -> bool:
        return len(state.cards) < 2 or (len(state.rounds) == 2 and len(state.cards) == 2)

    def player(self, state: LeducState) -> int:
        return CHANCE if self._deals(state) else len(state.rounds[-1]) % 2

    def legal_moves(self, state: LeducState) -> list[int]:
        if self.is_over(state):
            return []
        if self._deals(state):
            return [card for card in range(6) if card not in state.cards]
        actions = state.rounds[-1]
        facing = bool(actions) and actions[-1] == RAISE
        may_raise = actions.count(RAISE) < self._RAISES
        return [FOLD] * facing + [CALL] + [RAISE] * may_raise

    def chance(self, state: LeducState) -> list[float]:
        left = 6 - len(state.cards)
        return [1 / left] * left

    def apply(self, state: LeducState, move: int) -> LeducState:
        if self._deals(state):
            return LeducState((*state.cards, move), state.rounds)
        actions = (*state.rounds[-1], move)
        rounds = (*state.rounds[:-1], actions)
        if len(rounds) == 1 and _is_settled(actions):
            rounds = (actions, ())
        return LeducState(state.cards, rounds)

    def is_over(self, state: LeducState) -> bool:
        last = state.rounds[-1]
        return last[-1:] == (FOLD,) or (len(state.rounds) == 2 and _is_settled(last))

    def result(self, state: LeducState) -> float:
        paid = self._paid(state)
        last = state.rounds[-1]
        if last[-1:] == (FOLD,):
            folds = (len(last) - 1) % 2
            return float(-paid[0] if folds == 0 else paid[1])
        first, second, table = (card // 2 for card in state.cards)
        if first == second:
            return 0.0
        wins = first == table or (second != table and first > second)
        return float(paid[1] if wins else -paid[0])

    def _paid(self, state: LeducState) -> list[int]:
        paid = [1, 1]
        for number, actions in enumerate(state.rounds):
            for i, action in enumerate(actions):
                if action != FOLD:
                    paid[i % 2] = paid[1 - i % 2] + (0 if action == CALL else 2 * (number + 1))
        return paid

    def information_set(self, state: LeducState) -> Hashable:
        table = state.cards[2] // 2 if len(state.cards) > 2 else None
        return (state.cards[self.player(state)] // 2, table, state.rounds)

    def text(self, state: LeducState) -> str:
        cards = " ".join("JQK"[card // 2] for card in state.cards)
        return f"{cards} {' '.join(''.join('fcr'[a] for a in actions) for actions in state.rounds)}".strip()


def _is_settled(actions: tuple[int, ...]) -> bool:
    """Whether both have had their say: two calls, or a call of a raise."""
    return len(actions) >= 2 and actions[-1] == CALL
