from __future__ import annotations

import base64

import pytest

from app.domain.calls import Place
from tests.settings.conftest import Load, Problems

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
ENVIRON = {"SECRET": SECRET, "NEXT": "whsec_" + base64.b64encode(bytes(24)).decode(), "TOKEN": "Bearer hidden-token"}


def test_without_a_section_nothing_is_called(load_text: Load):
    assert load_text("").calls is None


def test_hosts_a_secret_and_headers_are_read(load_text: Load):
    calls = load_text(
        """
        [call_url]
        hosts = ["API.example.com", "*.example.org", "münchen.example:8443"]
        private_hosts = ["localhost:3000", "[0:0:0:0:0:0:0:1]:80"]
        secret = ["env:NEXT", "env:SECRET"]

        [call_url.headers]
        "api.example.com" = { Authorization = "env:TOKEN" }
        "localhost:3000" = { X-Key = "a-key" }
        """,
        ENVIRON,
    ).calls

    assert calls is not None
    assert calls.places == (
        Place(host="api.example.com", port=None),
        Place(host="*.example.org", port=None),
        Place(host="xn--mnchen-3ya.example", port=8443),
        Place(host="localhost", port=3000, private=True),
        Place(host="::1", port=80, private=True),
    )
    assert calls.keys == (bytes(24), bytes(range(32)))
    assert calls.headers_of("api.example.com", None, tls=True) == {"authorization": "Bearer hidden-token"}
    assert calls.headers_of("localhost", 3000, tls=False) == {"x-key": "a-key"}
    assert calls.headers_of("api.example.com", 8443, tls=True) == {}
    assert "hidden" not in repr(calls)


HOSTS = 'hosts = ["api.example.com"]\n'
GOOD = HOSTS + 'secret = "env:SECRET"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "call_url.hosts: is missing; write the hosts that may be called"),
        ("hosts = []", "call_url.hosts: is empty, so that nothing could be called"),
        (HOSTS, 'call_url.secret: is missing; write secret = "env:CALL_URL_SECRET", and make one with: printf'),
        (HOSTS + "secret = []", "call_url.secret: must be one text, or a list"),
        (HOSTS + 'secret = "word"', "call_url.secret: must be whsec_ followed by base64; write another"),
        (HOSTS + 'secret = "env:NONE"', "the environment variable NONE is not set"),
        ('hosts = ["https://api.example.com/v1"]', "must be a host such as api.example.com"),
        ('hosts = ["api.example.com/v1"]', 'not "api.example.com/v1"; write it so'),
        ('hosts = ["a b"]', "must be a host such as"),
        ('hosts = ["user@api.example.com"]', "must be a host such as"),
        ('hosts = ["*"]', "must be a host such as"),
        ('hosts = ["*.*.example.com"]', "must be a host such as"),
        ('hosts = ["api.example.com."]', "must be a host such as"),
        ('hosts = ["api.example.com:99999"]', "must be a host such as"),
        ('hosts = ["api.example.com:0"]', "must be a host such as"),
        ('hosts = ["api.example.com#"]', "must be a host such as"),
        ('hosts = ["api.example.com?"]', "must be a host such as"),
        ('hosts = ["@api.example.com"]', "must be a host such as"),
        (GOOD + '[call_url.headers]\n"api.example.com" = { Host = "b" }', "is set by the call itself; remove it"),
        (GOOD + '[call_url.headers]\n"api.example.com" = { Content-Length = "1" }', "is set by the call itself"),
        (
            GOOD + '[call_url.headers]\n"api.example.com" = { Transfer-Encoding = "chunked" }',
            "is set by the call itself",
        ),
        ('hosts = ["*.com"]', "would be half of the internet"),
        ('private_hosts = ["*.internal.example"]', "must be a host such as localhost:3000 or 10.0.0.5, without a *"),
        ("hosts = 'api.example.com'", "call_url.hosts: must be a list of texts"),
        (GOOD + 'host = "a"', 'call_url.host: there is no such key; did you mean "hosts"?'),
        (GOOD + '[call_url.headers]\n"b.example.com" = { A = "b" }', "is none of the hosts that may be called"),
        (GOOD + '[call_url.headers]\n"*.example.com" = { A = "b" }', "must be one host as it stands in hosts"),
        (GOOD + '[call_url.headers]\n"api.example.com" = { "A b" = "c" }', "is no name of a header"),
        (GOOD + '[call_url.headers]\n"api.example.com" = { A = "ไทย" }', "holds characters that a header cannot have"),
        (GOOD + '[call_url.headers]\n"api.example.com" = "b"', "must be a table"),
    ],
)
def test_what_is_wrong_is_told_by_its_key(problems_of: Problems, text: str, told: str):
    found = problems_of(f"[call_url]\n{text}", ENVIRON)

    assert any(told in problem for problem in found), found


def test_what_is_no_section_is_told(problems_of: Problems):
    assert "must be a table" in problems_of('call_url = "all"')[0]
