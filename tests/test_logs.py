from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app import logs, tick
from app.context import Context
from app.domain.masking import Mask
from tests.fakes import loggers
from tests.fakes.batches import a_service, runnable

log = logging.getLogger("app.somewhere")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


class Lines(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    @property
    def written(self) -> list[str]:
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(self.encoding).splitlines()


@pytest.fixture
def told() -> Callable[..., dict[str, Any]]:
    """The one line that this leaves."""

    def of(say: Callable[[], None], encoding: str = "utf-8") -> dict[str, Any]:
        stream = Lines(encoding)
        logs.configure(style="json", level="INFO", stream=stream)
        say()
        [line] = stream.written
        found: dict[str, Any] = json.loads(line)
        return found

    return of


Told = Callable[..., dict[str, Any]]


def test_a_line_is_one_object_with_its_fields(told: Told):
    line = told(lambda: log.info("tick ended", extra={"tick": 7, "summary": {"status": "ok"}}))

    at = line.pop("at")
    assert at.endswith("Z")
    assert len(at) == len("2026-11-30T09:07:02.123Z")
    assert line == {
        "level": "info",
        "logger": "app.somewhere",
        "message": "tick ended",
        "tick": 7,
        "summary": {"status": "ok"},
    }


def test_a_traceback_stays_on_the_line(told: Told):
    line = told(lambda: log.error("job attempt crashed", exc_info=KeyError("a\nbug"), extra={"job": 1}))

    assert line["level"] == "error"
    assert line["traceback"].startswith("KeyError")


def test_arguments_are_put_into_the_words(told: Told):
    assert told(lambda: log.warning("%s of %d", "one", 2))["message"] == "one of 2"


def circular() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"\xff", {("a", "b"): 1}, circular(), ValueError("x"), float("inf"), "\ud800"]
)
def test_no_value_keeps_a_line_from_being_written(told: Told, value: object):
    line = told(lambda: log.info("odd", extra={"value": value}))

    assert line["message"] == "odd"
    assert "value" in line


def test_a_field_does_not_hide_what_the_line_is(told: Told):
    assert told(lambda: log.info("words", extra={"level": "none", "at": "never"}))["level"] == "info"


def test_every_script_is_written_as_it_is(told: Told):
    assert told(lambda: log.info("งานใหม่ မြန်မာ"))["message"] == "งานใหม่ မြန်မာ"


def test_a_terminal_that_cannot_show_a_letter_shows_its_number(told: Told):
    assert told(lambda: log.info("งาน"), "ascii")["message"] == "งาน"


def test_what_libraries_say_of_each_request_is_not_written():
    stream = Lines()
    logs.configure(style="json", level="DEBUG", stream=stream)

    for name in ("httpx", "httpcore.connection", "sqlalchemy.engine", "uvicorn.access", "asyncio"):
        logging.getLogger(name).info("GET https://hooks.example/s3cr3t")
        logging.getLogger(name).debug("s3cr3t")
    logging.getLogger("httpx").warning("a warning")
    log.debug("ours")

    assert [json.loads(line)["message"] for line in stream.written] == ["a warning", "ours"]


def test_a_level_above_warning_holds_for_libraries_too():
    stream = Lines()
    logs.configure(style="json", level="ERROR", stream=stream)

    logging.getLogger("httpx").warning("a warning")
    log.info("ours")

    assert stream.written == []


def test_the_console_shows_words_then_fields_then_the_traceback():
    stream = Lines()
    logs.configure(style="console", level="INFO", stream=stream)

    log.info("tick ended", extra={"tick": 7})
    log.info("plain")
    log.error("crashed", exc_info=KeyError("bug"))

    first, second, third, *traceback = stream.written
    assert first.endswith("info    tick ended  tick=7")
    assert second.endswith("info    plain")
    assert third.endswith("error   crashed")
    assert traceback == ["KeyError: 'bug'"]


def test_logs_go_to_stdout(capsys: pytest.CaptureFixture[str]):
    logs.configure(style="json", level="INFO")
    log.info("here")

    captured = capsys.readouterr()
    assert json.loads(captured.out)["message"] == "here"
    assert captured.err == ""
    assert sys.stdout.errors == "backslashreplace"


def test_configured_twice_a_line_is_written_once(told: Told):
    logs.configure(style="json", level="INFO", stream=Lines())

    assert told(lambda: log.info("once"))["message"] == "once"


def test_no_secret_gets_into_a_line_wherever_it_stands():
    stream = Lines()
    mask = Mask(["s3cr3t-token", "123456"])
    logs.configure(style="json", level="INFO", stream=stream, mask=mask)
    holding = {
        "summary": {"errors": ["at s3cr3t-token"]},
        "args_": ("s3cr3t-token",),
        "job": 123456,
        "url": HasSecret(),
    }
    try:
        int("s3cr3t-token")
    except ValueError:
        log.exception("answered s3cr3t-token", extra=holding)

    [written] = stream.written
    line = json.loads(written)
    assert "s3cr3t" not in written
    assert line["message"] == "answered [secret]"
    assert line["summary"] == {"errors": ["at [secret]"]}
    assert line["job"] == 123456, "a number is none"


def test_no_secret_gets_onto_a_console():
    stream = Lines()
    logs.configure(style="console", level="INFO", stream=stream, mask=Mask(["s3cr3t-token"]))
    log.info("answered", extra={"reason": "s3cr3t-token"})

    assert stream.written[0].endswith("answered  reason=[secret]")


class HasSecret:
    def __str__(self) -> str:
        return "https://x.example/s3cr3t-token"


async def test_each_line_says_which_tick_and_which_job_it_is_about(database_url: str, tmp_path: Path):
    stream = Lines()
    logs.configure(style="json", level="INFO", stream=stream)
    handlers_log = logging.getLogger("handlers.greet")

    async def handle(payload: Any, ctx: Context) -> None:
        handlers_log.info("greeted at once", extra={"name_": payload.name})
        if payload.waits:
            await asyncio.sleep(0.01)
            await asyncio.gather(asyncio.to_thread(handlers_log.info, "greeted from a thread"), asyncio.sleep(0))
            handlers_log.info("greeted later", extra={"name_": payload.name})

    service = a_service(database_url, tmp_path)
    service = dataclasses.replace(service, handlers={"greet": runnable("greet", handle)})
    ids = {
        str(number): (
            await service.stores.jobs.enqueue(type="greet", payload={"name": str(number), "waits": number % 2})
        ).id
        for number in range(12)
    }
    summaries = [await tick.run(service, budget=timedelta(seconds=25), max_jobs=6, trigger="test") for _ in range(2)]
    log.info("between ticks")

    lines = [json.loads(line) for line in stream.written]
    greetings = [line for line in lines if line["logger"] == "handlers.greet"]
    assert len(greetings) == 24
    assert all(line["job"] == ids[line["name_"]] for line in greetings if "name_" in line)
    assert {line["tick"] for line in greetings} == {summary["tick"] for summary in summaries}
    assert {line["type"] for line in greetings} == {"greet"}
    assert [line["tick"] for line in lines if line["message"] == "tick ended"] == [s["tick"] for s in summaries]
    assert "tick" not in lines[-1]
    assert "job" not in lines[-1]


def test_a_fetch_names_its_source_and_a_send_its_message(told: Told):
    def say(kind: str, payload: dict[str, Any]) -> Callable[[], None]:
        def saying() -> None:
            logs.JOB.set(a_job(kind, payload))
            log.info("something", extra={"job": "its own word"})

        return lambda: contextvars.copy_context().run(saying)

    fetch = told(say("fetch_source", {"source": "board"}))
    send = told(say("send_message", {"message": 77}))
    users = told(say("greet", {"source": "private", "message": "private"}))

    assert (fetch["source"], fetch["job"]) == ("board", "its own word")
    assert send["message_id"] == 77
    assert "private" not in str(users)


@pytest.mark.parametrize("payload", [None, "words"])
@pytest.mark.parametrize("kind", ["greet", "fetch_source"])
def test_a_job_whose_payload_cannot_be_read_has_its_lines(told: Told, kind: str, payload: Any):
    def saying() -> None:
        logs.JOB.set(a_job(kind, payload))
        log.info("something")

    line = told(lambda: contextvars.copy_context().run(saying))

    assert (line["job"], line["type"]) == (1, kind)


def a_job(kind: str, payload: dict[str, Any]) -> Any:
    return SimpleNamespace(id=1, type=kind, payload=payload)
