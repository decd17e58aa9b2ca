from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app import logs
from tests.fakes import loggers

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
