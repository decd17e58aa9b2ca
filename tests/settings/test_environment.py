"""What the environment says, and what is said of it where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.domain.errors import ConfigError
from app.settings import DatabaseAddress, from_process, load_database
from tests.settings.conftest import CRON_SECRET, Load, Problems

MAKE = "openssl rand -hex 32"

SECRETS = [
    ({}, "CRON_SECRET: is not set"),
    ({"CRON_SECRET": ""}, "CRON_SECRET: is empty"),
    ({"CRON_SECRET": " \t\n "}, "CRON_SECRET: is empty"),
    ({"CRON_SECRET": "fifteen-letters"}, "CRON_SECRET: is shorter than 16 characters"),
    ({"CRON_SECRET": "   fifteen-letters   "}, "CRON_SECRET: is shorter than 16 characters"),
    ({"CRON_SECRET": "None"}, "CRON_SECRET: holds a placeholder"),
    ({"CRON_SECRET": "undefined"}, "CRON_SECRET: holds a placeholder"),
    ({"CRON_SECRET": "null"}, "CRON_SECRET: holds a placeholder"),
    ({"CRON_SECRET": "two lines in a\nvariable"}, "CRON_SECRET: holds a line end"),
    ({"CRON_SECRET": CRON_SECRET, "CRON_SECRET_PREVIOUS": "short"}, "CRON_SECRET_PREVIOUS: is shorter than 16"),
    ({"CRON_SECRET": CRON_SECRET, "CRON_SECRET_PREVIOUS": "undefined"}, "CRON_SECRET_PREVIOUS: holds a placeholder"),
    ({"CRON_SECRET": CRON_SECRET, "API_TOKEN": "short"}, "API_TOKEN: is shorter than 16 characters"),
    ({"CRON_SECRET": CRON_SECRET, "API_TOKEN": f" {CRON_SECRET}"}, "API_TOKEN: is the same as the cron secret"),
]

OTHERS = [
    ({"PORT": "0"}, "PORT: must be a whole number from 1 to 65535"),
    ({"PORT": "65536"}, "PORT: must be"),
    ({"PORT": "80.5"}, "PORT: must be"),
    ({"PORT": "+80"}, "PORT: must be"),
    ({"PORT": "8_080"}, "PORT: must be"),
    ({"PORT": "٨٠"}, "PORT: must be"),
    ({"PORT": "9" * 5000}, "PORT: must be"),
    ({"AUTO_MIGRATE": "2"}, "AUTO_MIGRATE: must be one of 1, true, yes, on, 0, false, no, off, not"),
    ({"LOG_LEVEL": "loud"}, "LOG_LEVEL: must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL"),
    ({"LOG_FORMAT": "xml"}, 'LOG_FORMAT: must be one of json, console, not "xml"'),
    ({"PUBLIC_URL": "wakebell.example"}, "PUBLIC_URL: must be an http or https address"),
    ({"PUBLIC_URL": "ftp://wakebell.example"}, "PUBLIC_URL: must be"),
    ({"PUBLIC_URL": "https://"}, "PUBLIC_URL: must be"),
    ({"PUBLIC_URL": "https://a.example:port"}, "PUBLIC_URL: must be"),
    ({"PUBLIC_URL": "https://[::1"}, "PUBLIC_URL: must be"),
    ({"HEARTBEAT_URL": "hc.example/key-of-the-switch"}, "HEARTBEAT_URL: must be"),
]


@pytest.mark.parametrize(("environ", "sentence"), SECRETS)
def test_a_service_never_runs_open(environ: dict[str, str], sentence: str, problems_of: Problems):
    told = problems_of("", environ, need={"CRON_SECRET"})

    assert len(told) == 1
    assert told[0].startswith(sentence)
    assert MAKE in told[0]


@pytest.mark.parametrize(("environ", "sentence"), OTHERS)
def test_a_wrong_variable_is_named(environ: dict[str, str], sentence: str, problems_of: Problems):
    told = problems_of("", environ)

    assert len(told) == 1
    assert told[0].startswith(sentence)
    assert "key-of-the-switch" not in told[0]


def test_a_caller_that_does_not_serve_needs_no_secret(load_text: Load):
    environment = load_text("").environment

    assert environment.cron_secrets == ()
    assert environment.api_token is None


def test_secrets_lose_the_whitespace_at_their_ends_and_may_be_of_any_script(load_text: Load):
    environ = {"CRON_SECRET": " ความลับของระฆังปลุก\n", "API_TOKEN": "sixteen-letters!\r\n"}

    environment = load_text("", environ, need={"CRON_SECRET"}).environment

    assert environment.cron_secrets == ("ความลับของระฆังปลุก".encode(),)
    assert environment.api_token == b"sixteen-letters!"


def test_secrets_that_are_not_utf8_keep_their_bytes(load_text: Load):
    environ = {"CRON_SECRET": "latin-caf\udce9-secret-value"}

    assert load_text("", environ).environment.cron_secrets == (b"latin-caf\xe9-secret-value",)


def test_a_previous_secret_that_is_the_current_one_counts_once(load_text: Load):
    environ = {"CRON_SECRET": CRON_SECRET, "CRON_SECRET_PREVIOUS": CRON_SECRET}

    assert load_text("", environ).environment.cron_secrets == (CRON_SECRET.encode(),)


def test_empty_variables_are_not_set(load_text: Load):
    names = ["PORT", "HOST", "PUBLIC_URL", "LOG_LEVEL", "LOG_FORMAT", "HEARTBEAT_URL", "DATABASE_URL", "API_TOKEN"]

    environment = load_text("", dict.fromkeys([*names, "WAKEBELL_CONFIG"], "")).environment

    assert (environment.port, environment.host) == (8080, "0.0.0.0")
    assert (environment.log_level, environment.log_format) == ("INFO", "json")
    assert environment.database_url is environment.public_url is environment.heartbeat_url is None


def test_variables_are_read_in_any_case_where_case_means_nothing(load_text: Load):
    environ = {"LOG_LEVEL": "debug", "LOG_FORMAT": "Console", "PORT": " 9000 ", "PUBLIC_URL": "https://a.example/"}

    environment = load_text("", environ).environment

    assert (environment.log_level, environment.log_format, environment.port) == ("DEBUG", "console", 9000)
    assert environment.public_url == "https://a.example"


@pytest.mark.parametrize(
    "written", ["postgres://db/app", " postgres://db/app\n", '"postgres://db/app"', "'postgres://db/app'"]
)
def test_an_address_of_a_database_may_have_been_pasted_with_its_quotes(written: str):
    address = load_database({"DATABASE_URL": written})

    assert address == DatabaseAddress(url="postgres://db/app", migration_url=None)


def test_migrations_need_nothing_but_the_database_s_settings():
    address = load_database({"DATABASE_URL": "postgres://u:hidden@db/app", "MIGRATION_DATABASE_URL": "postgres://x/y"})

    assert address.migration_url == "postgres://x/y"
    assert "hidden" not in repr(address)


@pytest.mark.parametrize(
    ("written", "on"), [("1", True), ("TRUE", True), (" on ", True), ("", False), ("0", False), ("no", False)]
)
def test_whoever_finds_the_schema_behind_may_be_told_to_bring_it_up(load_text: Load, written: str, on: bool):  # noqa: FBT001
    environ = {"AUTO_MIGRATE": written}

    assert load_text("", environ).environment.auto_migrate == on
    assert load_database(environ).auto_migrate == on


def test_the_process_s_own_variables_win_over_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / ".env").write_text("WAKEBELL_TEST_A=file\nWAKEBELL_TEST_B=file\n")
    monkeypatch.setenv("WAKEBELL_TEST_A", "process")

    environ = from_process()

    assert (environ["WAKEBELL_TEST_A"], environ["WAKEBELL_TEST_B"]) == ("process", "file")


def test_a_file_that_cannot_be_read_stops_the_start(folder: Path):
    (folder / ".env").write_text("A=1\nthis is not a line\n")

    with pytest.raises(ConfigError, match=r"\.env: line 2: is not KEY=value"):
        from_process()
