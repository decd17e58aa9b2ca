from __future__ import annotations

import pytest

from tests.settings.conftest import Load


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ("inbox",)), ("[alerts]", ("inbox",)), ('[alerts]\nto = ["me", "inbox"]', ("me", "inbox"))],
)
def test_who_is_told_of_alerts_is_read_and_is_the_inbox_where_nobody_is_named(
    load_text: Load, text: str, expected: tuple[str, ...]
):
    settings = load_text(f'[recipients.me]\nchannel = "inbox"\n{text}')

    assert settings.alerts == expected
