"""epicycle play: a game against the engine, from standard input."""

import io
import sys

import pytest

from epicycle.cli import main


def play(monkeypatch, capsys, text, *arguments):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    status = main(["play", *arguments])
    return status, capsys.readouterr()


def test_a_game_to_its_end(monkeypatch, capsys):
    """Always the first column, then others: the engine wins, and says so before."""
    status, out = play(monkeypatch, capsys, "1\n1\n1\n7\n7\n7\n" + "2\n6\n" * 20, "connect-four", "--level", "medium")
    assert status == 0
    assert "You have lost." in out.out
    assert "it wins with best play" in out.out
    assert "1 2 3 4 5 6 7" in out.out


@pytest.mark.parametrize("engine", ["mcts", "minimax"])
def test_what_is_no_move_is_asked_again(monkeypatch, capsys, engine):
    moves = "9\nx\nu\nh\n5\nu\nb2\nq\n"
    status, out = play(monkeypatch, capsys, moves, "tic-tac-toe", "--engine", engine, "--level", "easy")
    assert status == 0
    assert "'9' is no legal move" in out.out
    assert "no move of yours to take back" in out.out
    assert "The game was given up." in out.out


def test_a_learner_from_a_file_is_an_engine(monkeypatch, capsys, tmp_path):
    pytest.importorskip("torch")
    from epicycle.search import AlphaZero, TicTacToe

    file = tmp_path / "learner.epi"
    AlphaZero(TicTacToe(), channels=4, blocks=0, simulations=10, games=4, steps=4, random_state=0).learn(1).save(file)
    moves = "a1\nb1\nc1\na2\nb2\nc2\na3\nb3\nc3\n" * 2
    status, out = play(monkeypatch, capsys, moves, "tic-tac-toe", "--engine", str(file), "--level", "medium")
    assert status == 0
    assert "the AlphaZero(TicTacToe(), 1 iterations) is O" in out.out
    assert "O plays" in out.out
    assert "You have lost." in out.out or "A draw." in out.out
    status, out = play(monkeypatch, capsys, moves, "othello", "--engine", str(file))
    assert status == 2
    assert "has learnt TicTacToe(); expected Othello()" in out.err


def test_the_engine_may_begin(monkeypatch, capsys):
    status, out = play(monkeypatch, capsys, "", "othello", "--second", "--level", "easy")  # input ends at once
    assert status == 0
    assert "you are O" in out.out
    assert "X plays" in out.out


@pytest.mark.parametrize("arguments", [["chess"], ["go", "--engine", "alpha"], ["go", "--level", "best"]])
def test_bad_arguments(monkeypatch, capsys, arguments):
    status, out = play(monkeypatch, capsys, "", *arguments)
    assert status == 2
    assert "expected" in out.err


def test_ctrl_c_leaves_the_game(monkeypatch, capsys):
    class Interrupted(io.StringIO):
        def readline(self, *_):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert main(["play", "connect-four", "--level", "easy"]) == 130
    assert "Traceback" not in capsys.readouterr().err
