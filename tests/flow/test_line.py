"""What LINE answers, and what becomes of the message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.line import Answer
from tests.flow.service import Service
from tests.flow.stage import Stage


@pytest.fixture
async def service(stage: Stage) -> Service:
    """Primed, with one new item in its source."""
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()
    return service


async def message(stage: Stage) -> dict[str, Any]:
    return dict(await stage.sql.fetchrow("SELECT * FROM wakebell.messages WHERE kind = 'items'"))


async def test_a_replica_that_does_not_know_the_channel_leaves_the_message_to_one_that_does(
    stage: Stage,
    service: Service,
):
    stage.line.answers.append(500)
    await service.tick()
    await stage.make_due()
    stage.telling = ""
    older = await stage.serve()

    await older.tick()

    assert (await message(stage))["status"] == "retrying"
    await stage.make_due()
    await service.tick()
    assert stage.line.count("Driver") == {"Driver": 1}


@pytest.mark.parametrize("refusal", [500, "rate", 503])
async def test_two_refusals_for_now_and_then_an_answer_tell_it_once_by_one_key(
    stage: Stage,
    service: Service,
    refusal: Answer,
):
    stage.line.answers.extend([refusal, refusal])

    for expected in ("retrying", "retrying", "sent"):
        summary = await service.tick()
        assert summary["messages"][expected] == 1
        await stage.make_due()
    await service.tick()

    assert (await message(stage))["status"] == "sent"
    assert len({push.key for push in stage.line.tries}) == 1
    assert len(stage.line.tries) == 3
    assert stage.line.count("Driver") == {"Driver": 1}
    stage.line.assert_keys_frozen()


async def test_a_rate_limit_that_one_replica_meets_holds_for_the_other(stage: Stage, service: Service):
    other = await stage.serve()
    stage.line.answers.append("rate")

    await service.tick()
    summary = await other.tick()

    assert len(stage.line.tries) == 1
    assert summary["messages"]["sent"] == 0
    row = await message(stage)
    assert (row["status"], row["attempts"], row["first_tried_at"]) == ("queued", 0, None)
    await stage.make_due()
    await other.tick()
    assert stage.line.count("Driver") == {"Driver": 1}


async def test_a_spent_month_parks_the_channel_until_line_shows_room(stage: Stage, service: Service):
    stage.line.allowance, stage.line.spent = 200, 150
    stage.line.answers.append("spent")

    first = await service.tick()
    await stage.make_due()
    second = await service.tick()

    assert len(stage.line.tries) == 1, "nothing is pushed while it is parked"
    assert (await message(stage))["status"] == "queued"
    assert (first["alerts"]["opened"], second["alerts"]["opened"]) == (1, 0)
    [alert] = await stage.alerts()
    assert (alert["recipient"], alert["status"]) == ("inbox", "sent")
    assert alert["text"].splitlines()[1].startswith("Channel line takes nothing for now")
    await stage.an_hour_later()

    await service.tick()

    assert stage.line.count("Driver") == {"Driver": 1}
    assert stage.line.asked == 2


async def test_the_last_messages_of_the_month_are_kept_for_alerts(stage: Stage, service: Service):
    stage.line.allowance, stage.line.spent = 200, 190

    summary = await service.tick()

    assert (summary["messages"]["composed"], summary["messages"]["held"]) == (0, 1)
    assert stage.line.tries == []
    [alert] = await stage.alerts()
    assert "Messages of channel line run low for this month: 190 of 200 messages are used" in alert["text"]
    stage.line.allowance = 5000  # somebody has bought more
    await stage.an_hour_later()
    await service.tick()
    assert stage.line.count("Driver") == {"Driver": 1}


async def test_nobody_there_stops_that_recipient_and_the_fallback_is_told(stage: Stage, service: Service):
    stage.telling += '\n[recipients.other]\nchannel = "line"\nto = "U2"\n[subscriptions.more]\nto = ["me", "other"]\n'
    stage.telling = stage.telling.replace('to = "env:LINE_USER"', 'to = "env:LINE_USER"\nfallback = "inbox"')
    with_fallback = await stage.serve()
    stage.line.answers.append("nobody")
    await service.tick()  # which knows of no fallback
    assert await stage.sql.fetchval("SELECT name FROM wakebell.recipients WHERE blocked_at IS NOT NULL") == "me"
    [alert] = await stage.alerts()
    assert alert["text"].splitlines()[1].startswith("Recipient me is not reached any more")
    assert (await message(stage))["status"] == "failed"
    stage.feeds.feeds["jobs"].add("Painter")
    await stage.make_due()

    await with_fallback.tick()

    told = await stage.sql.fetch(
        "SELECT recipient, text FROM wakebell.messages WHERE kind = 'items' AND status = 'sent'"
    )
    by_name = {row["recipient"]: row["text"] for row in told}
    assert set(by_name) == {"inbox", "other"}
    assert "Driver" in by_name["inbox"]
    assert "Painter" in by_name["inbox"]
    assert [push.to for push in stage.line.tries if push.to == "U2"] == ["U2"]
    assert len(stage.line.tries) == 2


async def test_a_push_whose_answer_was_lost_is_sent_when_line_says_that_it_had_it(stage: Stage, service: Service):
    stage.line.answers.append("drop")
    first = await service.tick()
    await stage.make_due()

    second = await service.tick()

    assert (first["messages"]["retrying"], second["messages"]["sent"]) == (1, 1)
    told = await message(stage)
    [accepted] = stage.line.accepted.values()
    assert (told["status"], told["repeated"], told["provider_id"]) == ("sent", True, accepted.request_id)
    assert len(stage.line.tries) == 2
    stage.line.assert_keys_frozen()


async def test_a_refusal_for_good_fails_that_message_alone(stage: Stage, service: Service):
    stage.line.answers.append(400)
    summary = await service.tick()
    assert summary["messages"]["failed"] == 1
    assert summary["status"] == "partial"
    stage.feeds.feeds["jobs"].add("Painter")
    await stage.make_due()

    await service.tick()

    assert stage.line.count("Driver", "Painter") == {"Driver": 0, "Painter": 1}
    told = await message(stage)
    assert told["status"] == "failed"
    assert "400" in told["last_error"]


async def test_line_that_hangs_keeps_no_tick_longer_than_it_may(stage: Stage, service: Service):
    stage.line.answers.append("hang")

    summary = await service.tick(budget=2)

    assert summary["duration_ms"] < 7000
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'running'") == 0
    await stage.make_due()
    await service.tick()
    assert stage.line.count("Driver") == {"Driver": 1}
    assert (await message(stage))["status"] == "sent"


async def test_an_unanswered_push_of_yesterday_is_uncertain_and_not_sent_again(stage: Stage, service: Service):
    stage.line.answers.append("drop")
    await service.tick()
    await stage.sql.execute("UPDATE wakebell.messages SET first_tried_at = first_tried_at - interval '25 hours'")
    await stage.make_due()

    summary = await service.tick()

    assert summary["messages"]["failed"] == 1
    assert (await message(stage))["status"] == "uncertain"
    await stage.make_due()
    await service.tick()
    assert len(stage.line.tries) == 1


async def test_a_push_of_yesterday_that_was_refused_may_be_sent_again(stage: Stage, service: Service):
    stage.line.answers.append(500)
    await service.tick()
    await stage.sql.execute("UPDATE wakebell.messages SET first_tried_at = first_tried_at - interval '25 hours'")
    await stage.make_due()

    await service.tick()

    assert (await message(stage))["status"] == "sent"
    assert stage.line.count("Driver") == {"Driver": 1}


async def test_a_process_that_died_amid_a_push_of_yesterday_leaves_it_uncertain(stage: Stage, service: Service):
    mortal = await stage.serve(die_at="before the send")
    await mortal.ring_in_vain()
    await mortal.ended()
    await stage.end_leases()
    await stage.sql.execute("UPDATE wakebell.messages SET first_tried_at = first_tried_at - interval '25 hours'")

    await service.tick()

    assert (await message(stage))["status"] == "uncertain"
    assert stage.line.tries == []


async def test_a_message_that_is_refused_for_a_day_is_given_up(stage: Stage, service: Service):
    stage.line.answers.extend([500] * 2)
    await service.tick()
    await stage.sql.execute(
        "UPDATE wakebell.messages SET first_tried_at = first_tried_at - interval '22 hours 50 minutes'"
    )
    await stage.sql.execute("UPDATE wakebell.jobs SET attempts = 5 WHERE type = 'send_message'")
    await stage.make_due()

    summary = await service.tick()

    assert summary["messages"]["failed"] == 1
    assert (await message(stage))["status"] == "failed"


async def test_a_digest_too_long_for_one_push_is_told_whole_in_order_and_once(stage: Stage, service: Service):
    titles = [f"Job {number} {'x' * 290}" for number in range(120)]
    stage.feeds.feeds["jobs"].add(*titles)

    summary = await service.tick()

    assert summary["messages"]["sent"] == len(stage.line.accepted) > 1
    assert stage.line.count("Driver", *titles) == dict.fromkeys(["Driver", *titles], 1)
