"""Decision processes from files: three forms of one process, and errors that name what is wrong where."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle.control import policy_iteration, read_mdp, worlds
from epicycle.exceptions import DataFileError, ParameterError

MACHINE = [
    ["new", "use", "worn", 0.3, 10],
    ["new", "use", "new", 0.7, 10],
    ["worn", "use", "broken", 0.5, 7],
    ["worn", "use", "worn", 0.5, 7],
    ["worn", "repair", "new", 1.0, -5],
    ["broken", "repair", "new", 1.0, -30],
    ["broken", "sell", "gone"],
]


def written(tmp_path, content, name="model.json"):
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_lists_objects_and_nested_arrays_are_one_process(tmp_path):
    lists = read_mdp(written(tmp_path, {"transitions": MACHINE, "terminal": {"gone": 2}, "discount": 0.9}))
    keys = ("state", "action", "next", "probability", "reward")
    objects = [dict(zip(keys, entry, strict=False)) for entry in MACHINE]
    named = read_mdp(written(tmp_path, {"transitions": objects, "terminal": {"gone": 2}, "discount": 0.9}))
    P = np.zeros((4, 3, 4))
    P[0, 0, :2], P[1, 0, 1:3], P[1, 1, 0], P[2, 1, 0], P[2, 2, 3] = (0.7, 0.3), (0.5, 0.5), 1, 1, 1
    R = [[10, 0, 0], [7, -5, 0], [0, -30, 0.9 * 2], [0, 0, 0]]  # the value of the end, one step later
    nested = {"transitions": P.tolist(), "rewards": R, "terminal": ["gone"], "discount": 0.9}
    nested |= {"states": ["new", "worn", "broken", "gone"], "actions": ["use", "repair", "sell"]}
    arrays = policy_iteration(read_mdp(written(tmp_path, nested)))
    for mdp in (lists, named):
        solution = policy_iteration(mdp)
        assert_allclose(solution.values[:3], arrays.values[:3], rtol=1e-12)
        assert solution.policy[:3].tolist() == arrays.policy[:3].tolist() == ["use", "repair", "repair"]
        assert solution.values[3] == 2


def test_rewards_of_states_are_added(tmp_path):
    steps = [["a", "go", "b", 1, 3], ["b", "go", "a", 1, 0]]
    mdp = read_mdp(written(tmp_path, {"transitions": steps, "rewards": {"b": 5}, "criterion": "average"}))
    assert_allclose(mdp.rewards_, [3, 5])


def test_a_map_with_settings_is_the_grid(tmp_path):
    drawn = "step_reward: -0.04\nslip: 0.3\ndiscount: 0.9\nG: 10\n\n...G\n.#.-\n  ..\n"
    mdp = read_mdp(written(tmp_path, drawn, "grid.txt"))
    same = worlds.grid_world("...G\n.#.-\n  ..", step_reward=-0.04, slip=0.3, discount=0.9, rewards={"G": 10.0})
    assert mdp.states.tolist() == same.states.tolist()
    assert_allclose(policy_iteration(mdp).values, policy_iteration(same).values)
    assert read_mdp(tmp_path / "grid.txt", discount=0.5).discount == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1, column 2.*expected JSON"),
        ("[1, 2]", "expected an object with the key 'transitions'"),
        ({"transitions": []}, "expected a list that is not empty"),
        ({"transitions": MACHINE, "gamma": 1}, "key 'gamma'"),
        (
            {"transitions": [["a", "go", "b", 0.6], ["a", "go", "a", 0.3]], "terminal": ["b"]},
            r"state 'a', action 'go' add up to 0\.9; expected 1",
        ),
        (
            {"transitions": [["a", "go", "b", -0.5], ["a", "go", "a", 1.5]]},
            r"transitions\[0\], probability: got -0\.5 for state 'a', action 'go'",
        ),
        ({"transitions": [["a", "go", "b", 1.0, None]]}, r"transitions\[0\], reward: got null"),
        ('{"transitions": [["a", "go", "b", 1.0, NaN]], "terminal": ["b"]}', r"transitions\[0\], reward: got NaN"),
        ({"transitions": [["a", "go"]]}, r"transitions\[0\]: got .*expected state, action, next"),
        ({"transitions": [{"state": "a", "action": "go", "to": "b"}]}, r"transitions\[0\]: unknown key 'to'"),
        ({"transitions": [{"state": "a", "action": "go"}]}, r"transitions\[0\]: no key 'next'"),
        ({"transitions": [["a", "go", "b"]]}, "state 'b' has no action"),
        ({"transitions": [["a", "go", "a"]], "terminal": ["c"]}, "terminal: 'c' is none of the states"),
        ({"transitions": [["a", "go", "a"]], "discount": 1}, "no terminal state can be reached from state 'a'"),
        ({"transitions": [["a", "go", "a"]], "discount": "half"}, 'discount: got "half"'),
        ({"transitions": [["a", "go", "a"]], "criterion": "best"}, "criterion: got 'best'"),
        ({"transitions": [[[1.0]]]}, "rewards: missing"),
        ({"transitions": [[[0.5]]], "rewards": [0]}, r"state 0, action 0 add up to 0\.5"),
        ({"transitions": [[[1.0], [1.0, 2.0]]], "rewards": [0]}, "transitions: expected nested lists"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, content, message):
    with pytest.raises(DataFileError, match=r"model\.json: .*" + message):
        read_mdp(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no map of a grid"),
        ("slip: 0.1\n", "no map of a grid"),
        ("slip: much\n..+", "line 1: got 'much' for 'slip'"),
        ("speed: 2\n..+", "line 1: got 'speed'; expected discount, slip, step_reward"),
        ("..+\n.X.", r"line 2, column 2: 'X'; .*'X: 1'"),
        ("slip: 2\n..+", "slip"),
    ],
)
def test_what_is_wrong_in_a_map_is_named(tmp_path, content, message):
    with pytest.raises(DataFileError, match=message):
        read_mdp(written(tmp_path, content, "grid.txt"))


def test_other_files(tmp_path):
    with pytest.raises(DataFileError, match="No such file"):
        read_mdp(tmp_path / "nothing.json")
    (tmp_path / "model.json").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataFileError, match="other bytes"):
        read_mdp(tmp_path / "model.json")
    with pytest.raises((ParameterError, DataFileError), match="discount"):
        read_mdp(written(tmp_path, {"transitions": MACHINE, "terminal": ["gone"]}), discount=2.0)
