"""What README.md shows works as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from app import handlers, settings
from app.api.jobs import JobsQuery
from app.api.messages import MessagesQuery

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")

BUDGET = timedelta(seconds=25)


def shown(language: str) -> list[str]:
    """The blocks of a language, without the indent of a list around them."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", README, re.MULTILINE | re.DOTALL)
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def test_its_handler_loads(tmp_path: Path):
    [snippet] = shown("python")
    (tmp_path / "send_receipt.py").write_text(snippet)

    [runnable] = handlers.users(tmp_path, budget=BUDGET).values()

    assert (runnable.type, runnable.timeout, len(runnable.delays or ())) == ("send_receipt", timedelta(seconds=10), 2)


@pytest.mark.parametrize("command", [("ruff", "check"), ("ruff", "format", "--check")])
def test_its_handler_is_left_alone_by_the_checks(tmp_path: Path, command: tuple[str, ...]):
    pytest.importorskip("ruff", reason="needs the development packages")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"))
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "send_receipt.py").write_text(shown("python")[0] + "import  os\n")

    done = subprocess.run(
        [sys.executable, "-m", *command, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


def test_the_checks_still_look_at_the_service(tmp_path: Path):
    pytest.importorskip("ruff", reason="needs the development packages")

    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--show-files", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert str(ROOT / "app" / "handlers" / "__init__.py") in done.stdout.splitlines()


def test_its_configuration_is_taken(tmp_path: Path):
    (tmp_path / "wakebell.toml").write_text("\n".join(shown("toml")).replace("min = {", "# min = {"))
    environ = {
        "STRIPE_SIGNING_SECRET": "whsec_of-stripe-are-any-text-of-so-many",
        "CALL_URL_SECRET": "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg=",
        "WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml"),
        "LINE_CHANNEL_ACCESS_TOKEN": "a-token",
        "LINE_USER_ID": "U" + "0" * 32,
        "FEED_TOKEN": "Bearer a-token",
        "GIG_TOKEN": "Bearer another",
    }

    configured = settings.load(environ)

    assert list(configured.sources) == ["remote_jobs", "gig_api", "board"]
    assert configured.alerts == ("me",)


def test_its_defaults_are_the_defaults(tmp_path: Path):
    (tmp_path / "wakebell.toml").write_text("")
    empty = settings.load({"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")})
    [defaults] = [block for block in shown("toml") if "[retention]" in block]
    (tmp_path / "wakebell.toml").write_text(defaults)

    assert settings.load({"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")}) == empty


def test_the_sample_configuration_holds_what_the_steps_for_line_show():
    written = (ROOT / "wakebell.toml").read_text("utf-8")
    uncommented = re.sub(r"^# ?(?=[\[a-z]+[\]a-z_.]* ?=|\[)", "", written, flags=re.MULTILINE)

    step, sample = (
        tomllib.loads(text) for text in (next(b for b in shown("toml") if "channels.line" in b), uncommented)
    )

    assert sample["channels"] == step["channels"]
    assert sample["subscriptions"]["python_gigs"] == step["subscriptions"]["python_gigs"]
    assert sample["alerts"] == step["alerts"]
    assert sample["recipients"]["me"].items() <= step["recipients"]["me"].items()


def test_its_json_is_json():
    for block in shown("json"):
        for document in re.split(r"\n(?=\{)", block):
            assert json.loads(document)


@pytest.mark.parametrize("query", [JobsQuery, MessagesQuery])
def test_the_parameters_of_listings_are_named(query: type[JobsQuery | MessagesQuery]):
    assert [name for name in query.model_fields if f"`{name}" not in README] == []
