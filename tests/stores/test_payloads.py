from __future__ import annotations

import json
from typing import Any

import pytest

from app.stores.payloads import payload_text, result_text


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
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_path(payload: dict[str, Any], told: str):
    with pytest.raises(ValueError, match=told):
        payload_text(payload)


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
