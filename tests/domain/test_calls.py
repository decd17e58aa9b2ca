from __future__ import annotations

import json
from typing import Any

import pytest

from app.domain import calls
from app.domain.calls import Calls, Place

CALLS = Calls(
    places=(
        Place(host="api.example.com", port=None),
        Place(host="*.example.org", port=None),
        Place(host="api.example.net", port=8443),
        Place(host="localhost", port=3000, private=True),
        Place(host="10.0.0.5", port=None, private=True),
    ),
    keys=(),
)


@pytest.mark.parametrize(
    ("host", "port", "tls", "may"),
    [
        ("api.example.com", None, True, True),
        ("api.example.com", 443, True, True),
        ("api.example.com", 8443, True, False),
        ("api.example.com", None, False, False),
        ("api.example.com", 443, False, False),
        ("www.example.com", None, True, False),
        ("api.example.com.evil.example", None, True, False),
        ("a.example.org", None, True, True),
        ("a.b.example.org", None, True, True),
        ("example.org", None, True, False),
        (".example.org", None, True, False),
        ("notexample.org", None, True, False),
        ("api.example.net", 8443, True, True),
        ("api.example.net", None, True, False),
        ("localhost", 3000, False, True),
        ("localhost", 3000, True, True),
        ("localhost", None, False, False),
        ("10.0.0.5", None, False, True),
        ("10.0.0.5", 80, False, True),
        ("10.0.0.5", 443, False, False),
        ("", None, True, False),
        ("api.example.com", 0, True, False),
    ],
)
def test_a_call_goes_where_the_list_says_and_nowhere_else(host: str, port: int | None, *, tls: bool, may: bool):
    assert (CALLS.place(host, port, tls=tls) is not None) is may


def test_a_host_on_both_lists_is_public_with_tls():
    both = Calls(places=(Place(host="a", port=None, private=True), Place(host="a", port=None)), keys=())

    assert both.place("a", None, tls=True) == Place(host="a", port=None)
    assert both.place("a", None, tls=False) == Place(host="a", port=None, private=True)


def test_secrets_are_struck_out_of_what_an_answer_repeats():
    configured = Calls(
        places=(), keys=(), headers=((Place(host="a", port=None), {"authorization": "Bearer tokentoken"}),)
    )
    answer = '{"Authorization": "Bearer tokentoken", "token": "tokentoken", "a": "abc"}'

    shown = calls.struck(answer, [*configured.secrets, "abc"])

    assert shown == '{"Authorization": "…", "token": "…", "a": "abc"}'


def test_what_basic_hides_is_struck_out_too():
    configured = Calls(
        places=(), keys=(), headers=((Place(host="a", port=None), {"authorization": "Basic c29tZW9uZTpwYSRzdw"}),)
    )

    assert calls.struck("c29tZW9uZTpwYSRzdw someone:pa$sw someone or pa$sw", configured.secrets) == "… … … or …"


@pytest.mark.parametrize(
    ("host", "same"), [("0:0:0:0:0:0:0:1", "::1"), ("::1", "::1"), ("a.example", "a.example"), (":", ":")]
)
def test_a_number_is_one_however_it_is_written(host: str, same: str):
    assert calls.canonical(host) == same


@pytest.mark.parametrize("letter", ["x", "ไ", "😀", '"', "\\"])
def test_an_excerpt_fits_into_a_result(letter: str):
    short = calls.excerpt(letter * 3000)

    assert len(json.dumps({"status": 200, "body": short})) < 2000
    assert short.endswith("…")
    assert calls.excerpt(letter) == letter


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (
            {"url": "u", "headers": {"authorization": "x", "A": "b"}},
            {"url": "u", "headers": {"authorization": "…", "A": "b"}},
        ),
        ({"url": "u"}, {"url": "u"}),
        ({"url": "https://user:word@a/b@c"}, {"url": "https://…@a/b@c"}),
        ({"url": "https://a/b@c"}, {"url": "https://a/b@c"}),
        ({"url": "//word@a", "headers": {"Private-Token": "x"}}, {"url": "//…@a", "headers": {"Private-Token": "…"}}),
        ({"headers": 7}, {"headers": 7}),
        ([1], [1]),
        (None, None),
    ],
)
def test_what_is_listed_of_a_payload_holds_no_credential(payload: Any, shown: Any):
    assert calls.shown(payload) == shown
