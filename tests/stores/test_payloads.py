from __future__ import annotations

import json
from typing import Any

import pytest

from app.stores import sql
from app.stores.payloads import DEEPEST, is_deep, json_shown, payload_text, result_text


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"a": "\x00"}, r"^payload\.a: holds a NUL character"),
        ({"a": [{"b": "x\ud800"}]}, r"^payload\.a\[0\]\.b: holds half of a surrogate pair"),
        ({"a": {"\x00": 1}}, r"^payload\.a: has the key '\\x00'"),
        ({"a": {"\udfff": 1}}, r"^payload\.a: has the key '\\udfff'"),
        ({"a": {1: 1}}, r"^payload\.a: has the key 1, which is not a text"),
        ({"a": float("nan")}, r"^payload\.a: is not a finite number"),
        ({"a": {1, 2}}, r"^payload\.a: is of the type set"),
        (nested(5000), "^payload: is nested too deeply"),
        (nested(200), "^payload: is nested too deeply; it may have fewer than 200 levels"),
        ({"a": 1, "b": json.loads("[" * 199 + "1" + "]" * 199)}, "^payload: is nested too deeply"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_path(payload: dict[str, Any], told: str):
    with pytest.raises(ValueError, match=told):
        payload_text(payload)


def test_it_is_the_depth_from_which_a_claim_hands_nothing_out():
    assert f"'$.**{{{DEEPEST}}}'" in str(sql.load("jobs")["turn"])
    assert not is_deep(nested(DEEPEST - 1))
    assert json.loads(payload_text(nested(DEEPEST - 1))) == nested(DEEPEST - 1)


def test_what_holds_itself_is_too_deep():
    around: list[Any] = []
    around += [around, around]

    with pytest.raises(ValueError, match=r"^payload: is nested too deeply"):
        payload_text({"a": around})


@pytest.mark.parametrize("depth", [200, 500, 900, 100_000])
def test_what_is_too_deep_is_shown_as_words(depth: int):
    assert json_shown("[" * depth + "1" + "]" * depth) == "nested too deeply to be read"
    assert json_shown("[" * 199 + "]" * 199) != "nested too deeply to be read"


def test_any_other_payload_comes_back_as_it_was():
    payload: dict[str, Any] = {"text": "ไทย 😀 \\u0000", "list": [1, 2.5, None, True, {"a": []}], "": "empty key"}

    assert json.loads(payload_text(payload)) == payload


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        (None, None),
        (3, 3),
        ({"a": "x\x00y\ud800"}, {"a": "xy?"}),
        ([1, ("a",)], [1, ["a"]]),
        ({1: {2}}, {"1": "{2}"}),
        (float("inf"), "inf"),
        (nested(5000), "nested too deeply to be kept"),
    ],
)
def test_any_result_can_be_kept(result: Any, kept: Any):
    told = result_text(result)

    assert (None if told is None else json.loads(told)) == kept


@pytest.mark.parametrize("result", ["x" * 5000, ["x"] * 5000])
def test_a_large_result_is_cut(result: Any):
    told = result_text(result)

    assert told is not None
    assert len(json.loads(told)) <= 2000
