from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from app.domain.heartbeats import Beat, beat

RUN = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
WORDS = "source board failed"

HEALTHCHECKS = [
    "https://hc-ping.com/5f0c1e7a-0000-4000-8000-000000000000",
    "https://hc-ping.com/key/my-slug?create=1",
    "https://health.example/ping/5f0c1e7a-0000-4000-8000-000000000000",
    "https://beats.example/api/cron/nightly",  # not Sentry's: there is no project's number in it
    "https://beats.example",
]
BETTER_STACK = "https://uptime.betterstack.com/api/v1/heartbeat/abc"
KUMA = "https://kuma.example/sub/api/push/Tok3n"
SENTRY = "https://o1.ingest.us.sentry.io/api/4507/cron/my-monitor/0123abcd/"


def told(found: Beat | None) -> tuple[str, dict[str, str], str | None]:
    """Path, parameters, body."""
    assert found is not None
    parts = urlsplit(found.url)
    return parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), found.body


@pytest.mark.parametrize("url", HEALTHCHECKS)
def test_healthchecks_is_told_the_start_and_the_end_of_a_run(url: str):
    parts = urlsplit(url)
    own = dict(parse_qsl(parts.query))

    assert told(beat(url, "start", run=RUN)) == (f"{parts.path}/start", {**own, "rid": RUN}, None)
    assert told(beat(url, "success", run=RUN)) == (parts.path, {**own, "rid": RUN}, None)
    assert told(beat(url, "success", run=RUN, words=WORDS))[2] == WORDS
    assert told(beat(url, "failure", run=RUN, words=WORDS)) == (f"{parts.path}/fail", {**own, "rid": RUN}, WORDS)


def test_a_slash_at_the_end_is_not_doubled():
    assert told(beat(f"{HEALTHCHECKS[0]}/", "failure", run=RUN))[0].count("//") == 0


def test_better_stack_is_told_no_start_since_that_would_count_as_a_sign_of_life():
    assert beat(BETTER_STACK, "start", run=RUN) is None
    assert beat(BETTER_STACK, "success", run=RUN) == Beat(url=BETTER_STACK)
    assert beat(BETTER_STACK, "failure", run=RUN, words=WORDS) == Beat(url=f"{BETTER_STACK}/fail", body=WORDS)


@pytest.mark.parametrize("query", ["", "?status=up&msg=OK&ping=", "?ping="])
def test_uptime_kuma_takes_it_as_parameters_with_the_time_it_took(query: str):
    url = f"{KUMA}{query}"

    assert beat(url, "start", run=RUN) is None
    up = told(beat(url, "success", run=RUN, took_ms=1840))
    down = told(beat(url, "failure", run=RUN, words=WORDS, took_ms=99_999_999))
    assert up == ("/sub/api/push/Tok3n", {"status": "up", "msg": "OK", "ping": "1840"}, None)
    assert down == ("/sub/api/push/Tok3n", {"status": "down", "msg": WORDS, "ping": "86400000"}, None)


def test_sentry_takes_a_status_and_the_id_of_the_check_in():
    path = urlsplit(SENTRY).path

    statuses = {"start": "in_progress", "success": "ok", "failure": "error"}
    for moment, status in statuses.items():
        found = beat(f"{SENTRY}?environment=prod&status=ok", moment, run=RUN, words=WORDS)  # type: ignore[arg-type]
        assert told(found) == (path, {"environment": "prod", "status": status, "check_in_id": RUN}, None)


def test_words_without_end_are_cut():
    assert len(told(beat(HEALTHCHECKS[0], "failure", run=RUN, words="x" * 99_999))[2] or "") == 2000
    assert len(told(beat(KUMA, "failure", run=RUN, words="x" * 99_999))[1]["msg"]) == 200
