"""What the guide shows is what the doctor tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from app import plugins
from app.domain.findings import Status
from app.settings import INBOX

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "doctor.md").read_text("utf-8")


def test_each_line_of_its_example_begins_as_a_finding_does():
    [example] = re.findall(r"^```text\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)

    starts = {line.split()[0] for line in example.splitlines()}

    assert starts == set(get_args(Status))


def test_it_says_of_each_kind_of_channel_how_it_is_asked():
    named = set(re.findall(r"`([a-z]+)`", "\n".join(re.findall(r"^\| (`[^|]*) \|", GUIDE, re.MULTILINE))))

    assert set(plugins.kinds("app.channels")) - {INBOX} <= named


def test_it_says_of_each_kind_of_chat_how_it_is_asked():
    assert {kind.lower() for kind in re.findall(r"^\| chats: (\w+)", GUIDE, re.MULTILINE)} == set(
        plugins.kinds("app.chats")
    )
