from __future__ import annotations

import pytest

from app.domain.heartbeats import address

PLAIN = [
    "https://hc-ping.com/5f0c1e7a-0000-4000-8000-000000000000",
    "https://hc-ping.com/key/my-slug?create=1",
    "https://uptime.betterstack.com/api/v1/heartbeat/abc",
    "https://beats.example/api/cron/nightly",  # not Sentry's: there is no project's number in it
    "https://beats.example",
]


@pytest.mark.parametrize("url", PLAIN)
def test_a_success_goes_to_the_address_as_it_stands(url: str):
    assert address(url, failed=False) == url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (PLAIN[0], f"{PLAIN[0]}/fail"),
        (f"{PLAIN[0]}/", f"{PLAIN[0]}/fail"),
        (PLAIN[1], "https://hc-ping.com/key/my-slug/fail?create=1"),
        (PLAIN[2], f"{PLAIN[2]}/fail"),
        (PLAIN[3], f"{PLAIN[3]}/fail"),
        (PLAIN[4], f"{PLAIN[4]}/fail"),
    ],
)
def test_a_failure_goes_to_fail_at_the_end_of_the_path(url: str, expected: str):
    assert address(url, failed=True) == expected


@pytest.mark.parametrize("query", ["", "?status=up&msg=OK&ping=", "?ping="])
def test_uptime_kuma_takes_it_as_a_parameter(query: str):
    url = f"https://kuma.example/sub/api/push/Tok3n{query}"

    kept = "ping=&" if "ping" in query else ""
    assert address(url, failed=False) == f"https://kuma.example/sub/api/push/Tok3n?{kept}status=up&msg=OK"
    assert address(url, failed=True) == f"https://kuma.example/sub/api/push/Tok3n?{kept}status=down&msg=tick+failed"


def test_sentry_takes_it_as_a_parameter():
    url = "https://o1.ingest.us.sentry.io/api/4507/cron/my-monitor/0123abcd/"

    assert address(url, failed=False) == f"{url}?status=ok"
    assert address(f"{url}?environment=prod&status=ok", failed=True) == f"{url}?environment=prod&status=error"
