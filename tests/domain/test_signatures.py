from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from app.domain import signatures

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


def test_the_library_of_the_standard_takes_what_is_signed():
    body, now = '{"text":"ไทย"}', str(int(datetime.now(UTC).timestamp()))

    made = signatures.signature(KEY, message_id=b"msg_1", timestamp=now.encode(), body=body.encode())

    headers = {"webhook-id": "msg_1", "webhook-timestamp": now, "webhook-signature": made.decode()}
    assert Webhook(SECRET).verify(body, headers) == {"text": "ไทย"}


def test_what_the_library_signs_is_signed_here_the_same():
    at = datetime(2026, 11, 30, 9, tzinfo=UTC)

    theirs = Webhook(SECRET).sign("msg_1", at, "{}")

    timestamp = str(int(at.timestamp())).encode()
    ours = signatures.signature(KEY, message_id=b"msg_1", timestamp=timestamp, body=b"{}")
    assert ours.decode() == theirs


def test_a_secret_stands_for_its_key():
    assert signatures.key_of(SECRET) == KEY


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("", "must be whsec_ followed by base64"),
        (base64.b64encode(KEY).decode(), "must be whsec_ followed by base64"),
        ("whsec_***", "must have base64 with its padding"),
        ("whsec_YWJj", "holds 3 bytes and must hold 24 to 64"),
        ("whsec_" + base64.b64encode(bytes(65)).decode(), "holds 65 bytes"),
    ],
)
def test_what_is_no_secret_is_told_without_it(secret: str, told: str):
    with pytest.raises(ValueError, match="must") as caught:
        signatures.key_of(secret)

    assert told in str(caught.value)
    assert not secret.removeprefix("whsec_") or secret.removeprefix("whsec_") not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "right", "equal"),
    [
        ([b"a"], [b"a"], True),
        ([b"x", b"b"], [b"a", b"b"], True),
        ([b"x"], [b"a"], False),
        ([], [b"a"], False),
        ([b"a"], [], False),
        ([b"\xff\x00"], [b"a"], False),
        ([b"x"] * 20 + [b"a"], [b"a"], False),
    ],
)
def test_one_of_several_is_enough(given: list[bytes], right: list[bytes], *, equal: bool):
    assert signatures.any_equal(given, right) is equal
