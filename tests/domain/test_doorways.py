from __future__ import annotations

import pytest

from app.domain import doorways
from app.domain.findings import Status

OURS = "https://bell.test/api/webhooks/line"
HOW = "tell it"


@pytest.mark.parametrize(
    ("told", "ours", "status", "words"),
    [
        (OURS, OURS, "ok", f"delivers to {OURS}"),
        (None, OURS, "fail", "has no address to deliver to"),
        ("", OURS, "fail", "has no address to deliver to"),
        ("https://old.test/hook/secret-word", OURS, "fail", "delivers to another host, old.test"),
        ("https://bell.test/api/webhooks/secret-word", OURS, "fail", "to another path of it"),
        (f"{OURS}/", OURS, "fail", "to another path of it"),
        ("https://bell.test/secret-word", None, "warn", "delivers to bell.test, and without PUBLIC_URL nobody knows"),
        ("https://[bell/secret-word", OURS, "fail", "an address that cannot be read"),
    ],
)
def test_where_a_provider_delivers_to_is_told_by_its_host_alone(
    told: str | None, ours: str | None, status: Status, words: str
):
    found = doorways.registered(told, ours, how=HOW)

    assert found.status == status
    assert words in found.found
    assert "secret-word" not in found.sentence
    assert status == "ok" or HOW in found.change or "PUBLIC_URL" in found.change


@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        (["messages", "postbacks", "echoes"], "ok", "all that is of use"),
        (["messages"], "warn", "does not deliver postbacks and echoes"),
        (["postbacks"], "fail", "does not deliver messages"),
    ],
)
def test_what_a_provider_does_not_deliver_is_named(given: list[str], status: Status, words: str):
    found = doorways.subscribed(given, needed=["messages"], useful=["postbacks", "echoes"], how=HOW)

    assert (found.status, words in found.found) == (status, True)
    assert found.change == ("" if status == "ok" else HOW)


@pytest.mark.parametrize(
    ("waiting", "error", "status", "words"),
    [
        (0, "", "ok", "none waits, and none has failed"),
        (0, "Connection timed out", "ok", "the last one that failed did so for this: Connection timed out"),
        (1, "", "warn", "1 event waits"),
        (7, "401 Unauthorized", "fail", "7 events wait, and the last delivery failed: 401 Unauthorized"),
    ],
)
def test_what_waits_after_a_failed_delivery_is_a_fault(waiting: int, error: str, status: Status, words: str):
    found = doorways.delivered(waiting, error, change=HOW)

    assert (found.status, words in found.found) == (status, True)
    assert (found.change == HOW) == (status == "fail")
