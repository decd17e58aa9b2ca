from __future__ import annotations

import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import qstash
from app.domain.errors import SignatureError
from tests.fakes.qstash import CURRENT, NEXT, claims, encoded, token

URL = "https://bell.example/api/cron/tick"
KEYS = (CURRENT.encode(), NEXT.encode())
NOW = 1_790_000_000.0

# The example of QStash's documentation, over its body.
DOCUMENTED: dict[str, Any] = {
    "iss": "Upstash",
    "sub": "https://qstash-remote.requestcatcher.com/test",
    "exp": 1656580612,
    "nbf": 1656580312,
    "iat": 1656580312,
    "jti": "jwt_67kxXD6UBAk7DqU6hzuHMDdXFXfP",
    "body": "qK78N0k3pNKI8zN62Fq2Gm-_LtWkJk1z9ykio3zZvY4=",
}

NO_TIMES: tuple[Any, ...] = (None, "1790000000", True, [], 10**15, 1e999)


def look(signed: str, *, url: str = URL, body: bytes = b"", now: float = NOW) -> None:
    """As the door does."""
    found = qstash.signed_claims(signed.encode(), KEYS)
    qstash.refuse_others(found, url=url, now=now)
    qstash.refuse_other_body(found, body)


@pytest.mark.parametrize("key", [CURRENT, NEXT])
@pytest.mark.parametrize("body", [b"", b"{}", b'{"hello": "world"}', b"\xff\x00\n"])
def test_a_request_that_either_key_has_signed_is_one_of_qstash(key: str, body: bytes):
    look(token(claims(URL, body, at=NOW), key), body=body)


def test_what_the_documentation_shows_is_read():
    found = qstash.signed_claims(token(DOCUMENTED).encode(), KEYS)

    qstash.refuse_others(found, url=DOCUMENTED["sub"], now=1656580400)
    assert found == DOCUMENTED


def test_a_digest_of_the_body_may_have_its_padding_or_not():
    said = claims(URL, b"{}", at=NOW)
    assert said["body"].endswith("=")

    look(token(said), body=b"{}")
    look(token({**said, "body": said["body"].rstrip("=")}), body=b"{}")


@pytest.mark.parametrize(
    "signed",
    [
        token(claims(URL, at=NOW), "another-key-of-sixteen-letters"),
        token(claims(URL, at=NOW), hashed="sha512", alg="HS512"),
        token(claims(URL, at=NOW), ""),
        token(claims(URL, at=NOW)).rpartition(".")[0] + ".",
        token(claims(URL, at=NOW)).rpartition(".")[0],
        token(claims(URL, at=NOW)) + "A",
        token(claims(URL, at=NOW)) + "=",
        token(claims(URL, at=NOW)).upper(),
        "",
        ".",
        "..",
        "eyJhbGciOiJub25lIn0." + encoded(b"{}") + ".",
        "a" * 5000,
        "[" * 3000 + "." + "[" * 900 + ".x",
    ],
)
def test_what_no_key_has_signed_is_nobodys(signed: str):
    with pytest.raises(SignatureError) as caught:
        qstash.signed_claims(signed.encode(), KEYS)

    assert not isinstance(caught.value, qstash.Refused)
    assert "sig_" not in str(caught.value)


@pytest.mark.parametrize("keys", [(), (b"",)])
def test_an_empty_key_signs_nothing(keys: tuple[bytes, ...]):
    with pytest.raises(SignatureError):
        qstash.signed_claims(token(claims(URL, at=NOW), "").encode(), keys)


@pytest.mark.parametrize("alg", ["none", "None", "", "HS512", "RS256", "hs256", None])
def test_a_token_does_not_choose_its_algorithm(alg: Any):
    with pytest.raises(qstash.Refused, match="HS256"):
        qstash.signed_claims(token(claims(URL, at=NOW), alg=alg).encode(), KEYS)


@pytest.mark.parametrize("parts", ["!!.!!", "", "a", encoded(b"[]") + ".e30", encoded(b'{"alg":"HS256"}') + ".bm8"])
def test_a_signature_under_something_else_is_refused(parts: str):
    signed = f"{parts}.{encoded(hmac.digest(KEYS[0], parts.encode(), 'sha256'))}"

    with pytest.raises(qstash.Refused):
        qstash.signed_claims(signed.encode(), KEYS)


def test_a_long_token_is_not_looked_at():
    with pytest.raises(SignatureError, match="4096"):
        qstash.signed_claims(token(claims(URL, at=NOW, more="x" * 4096)).encode(), KEYS)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"iss": "upstash"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"sub": "https://bell.example/api/cron/drain"}, "another address than https://bell.example/api/cron/tick"),
        ({"sub": "https://bell.example/api/cron/tick?budget=20"}, "another address"),
        ({"sub": "http://bell.example/api/cron/tick"}, "another address"),
        ({"sub": "https://bell.example/api/cron/tick/"}, "another address"),
        ({"sub": [URL]}, "another address"),
        ({"exp": NOW - 61}, "expired"),
        ({"exp": NOW - 60}, "expired"),
        ({"nbf": NOW + 61}, "not valid yet"),
        *(({name: value}, name) for name in ("exp", "nbf") for value in NO_TIMES),
        ({"exp": float("nan")}, "exp"),
        ({"body": None}, "another body"),
        ({"body": ""}, "another body"),
        ({"body": 1}, "another body"),
    ],
)
def test_a_token_for_another_request_is_refused_and_says_why(other: dict[str, Any], told: str):
    with pytest.raises(qstash.Refused, match=told.replace("?", r"\?")):
        look(token(claims(URL, at=NOW, **other)))


@pytest.mark.parametrize("claim", ["iss", "sub", "exp", "nbf", "body"])
def test_no_claim_may_be_missing(claim: str):
    said = claims(URL, at=NOW)
    del said[claim]

    with pytest.raises(qstash.Refused):
        look(token(said))


@pytest.mark.parametrize("other", [{"exp": NOW - 59}, {"nbf": NOW + 60}, {"exp": NOW + 0.5}])
def test_clocks_may_differ_by_a_minute(other: dict[str, Any]):
    look(token(claims(URL, at=NOW, **other)))


@given(st.binary(max_size=300))
def test_no_bytes_of_a_stranger_are_a_bug(raw: bytes):
    with pytest.raises(SignatureError):
        qstash.signed_claims(raw, KEYS)
