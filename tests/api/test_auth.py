from __future__ import annotations

import pytest

from app.api.auth import accepted

TOKEN = b"a-token-of-sixteen-bytes"
OTHER = "อีกอันหนึ่ง-another".encode()


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer a-token-of-sixteen-bytes",
        b"bearer a-token-of-sixteen-bytes",
        b"BEARER   a-token-of-sixteen-bytes ",
        b"Bearer " + OTHER,
    ],
)
def test_the_right_token_is_accepted(header: bytes):
    assert accepted(header, [TOKEN, OTHER])


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        b"a-token-of-sixteen-bytes",
        b"Basic a-token-of-sixteen-bytes",
        b"Bearer a-token-of-sixteen-byte",
        b"Bearer a-token-of-sixteen-bytes2",
        b"Bearer A-TOKEN-OF-SIXTEEN-BYTES",
        b"Bearer a-token-of sixteen-bytes",
        b"Bearer a-token-of-sixteen-bytes, Bearer x",
        b"Bearer \xff\xfe",
    ],
)
def test_nothing_else_is(header: bytes | None):
    assert not accepted(header, [TOKEN, OTHER])


@pytest.mark.parametrize("header", [None, b"", b"Bearer", b"Bearer "])
def test_no_token_is_never_the_right_one(header: bytes | None):
    assert not accepted(header, [])
    assert not accepted(header, [b""])
