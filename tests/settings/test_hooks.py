from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

import pytest

from app.settings import HookSettings
from tests.settings.conftest import Load, Problems

WHSEC = "whsec_" + base64.b64encode(bytes(range(32))).decode()
ENVIRON = {"SECRET": WHSEC, "OLD": "whsec_" + base64.b64encode(bytes(24)).decode(), "WORD": "sixteen-letters-."}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real kinds: there are few, and what each says of a secret is its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_hook_is_read(load_text: Load):
    [hook] = load_text(
        """
        [hooks.shop]
        kind = "stripe"
        secret = "env:WORD"
        job = "invoice_paid"
        tolerance_seconds = 60
        events = ["invoice.paid"]
        queue = "money"
        """,
        ENVIRON,
    ).hooks.values()

    assert hook == HookSettings(
        name="shop",
        kind="stripe",
        job="invoice_paid",
        keys=(b"sixteen-letters-.",),
        tolerance=timedelta(seconds=60),
        events=frozenset({"invoice.paid"}),
        queue="money",
    )
    assert hook.path == "/api/hooks/shop"
    assert "letters" not in repr(hook)


def test_the_least_is_a_kind_a_secret_and_a_job(load_text: Load):
    [hook] = load_text('[hooks.in]\nkind = "standard"\nsecret = "env:SECRET"\njob = "told"', ENVIRON).hooks.values()

    assert (hook.keys, hook.tolerance, hook.events, hook.queue) == (
        (bytes(range(32)),),
        timedelta(minutes=5),
        None,
        "default",
    )


def test_while_a_secret_is_changed_there_are_two(load_text: Load):
    text = '[hooks.in]\nkind = "standard"\nsecret = ["env:SECRET", "env:OLD"]\njob = "told"'

    assert load_text(text, ENVIRON).hooks["in"].keys == (bytes(range(32)), bytes(24))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("", "hooks.in.kind: is missing; write one of the kinds there are: github, standard, stripe"),
        ('kind = "stripes"', 'there is no kind "stripes"; did you mean "stripe"?'),
        ('kind = "standard"\nsecret = 7', "hooks.in.secret: must be a text in quotes, not 7"),
        (
            'kind = "stripe"\njob = "a"',
            'hooks.in.secret: is missing; write "env:NAME", and into that variable the signing secret of the endpoint',
        ),
        ('kind = "standard"\nsecret = "env:WORD"', "hooks.in.secret: must be whsec_ followed by base64; write"),
        ('kind = "github"\nsecret = "short"', "hooks.in.secret: must have at least 16 characters; write what you have"),
        ('kind = "github"\nsecret = []', "hooks.in.secret: must be one text, or a list of 1 to 5"),
        ('kind = "github"\nsecret = "env:NONE"', "the environment variable NONE is not set"),
        ('job = "Told!"', 'a job type holds lower-case letters, digits and _, not "Told!"'),
        ('job = "send_message"', 'hooks.in.job: "send_message" is one of the service\'s own; write a handler'),
        ('job = "call_url"', 'hooks.in.job: "call_url" takes no events; write a handler of yours'),
        ('kind = "standard"', "hooks.in.job: is missing; write the type of the job"),
        ("tolerance_seconds = 0", "hooks.in.tolerance_seconds: must be a number from 1 to 3600, not 0"),
        ('kind = "github"\ntolerance_seconds = 9', "does not go with this kind, which signs no time; remove it"),
        ("events = []", "hooks.in.events: is empty, so that nothing would become a job"),
        ("events = 'a'", "hooks.in.events: must be a list of texts"),
        ('queue = "wakebell.send"', "names that begin with wakebell. are the service's own"),
        ("evnts = ['a']", 'there is no such key; did you mean "events"?'),
    ],
)
def test_what_is_wrong_is_told_by_its_key_and_without_a_secret(problems_of: Problems, change: str, told: str):
    found = problems_of(f"[hooks.in]\n{change}", ENVIRON)

    assert any(told in problem for problem in found), found
    assert not any("sixteen-letters" in problem or WHSEC in problem for problem in found)


def test_a_name_is_that_of_an_address(problems_of: Problems):
    [problem] = problems_of('[hooks."My shop"]\nkind = "standard"\nsecret = "env:SECRET"\njob = "told"', ENVIRON)

    assert "rename it, for example my-shop" in problem
