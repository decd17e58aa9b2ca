from __future__ import annotations

import pytest

from app.domain.findings import Finding, Status, clock, fail, ok, skipped, warn, worst


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([], "ok"),
        ([ok("a"), skipped("b")], "ok"),
        ([ok("a"), warn("b"), skipped("c")], "warn"),
        ([warn("a"), fail("b"), ok("c")], "fail"),
    ],
)
def test_the_worst_decides_and_what_was_skipped_harms_nothing(findings: list[Finding], status: Status):
    assert worst(findings) == status


def test_a_finding_is_one_sentence_that_ends_with_what_to_change():
    assert warn("the disk is full", "empty it").sentence == "the disk is full; empty it"
    assert ok("all is well").sentence == "all is well"


def test_a_part_is_named_after_what_it_is_a_part_of():
    assert ok("none", name="tls").under("database").name == "database tls"
    assert ok("none").under("database").name == "database"


@pytest.mark.parametrize(
    ("ahead", "doubt", "status", "words"),
    [
        (0.4, 0.0, "ok", "less than 2 s apart"),
        (-1.9, 0.0, "ok", "less than 2 s apart"),
        (2.4, 0.0, "warn", "2.4 s ahead of this machine's"),
        (-90.0, 0.0, "warn", "90.0 s behind this machine's"),
        (2.4, 0.5, "ok", "less than 2 s apart"),
    ],
)
def test_clocks_more_than_two_seconds_apart_are_told(ahead: float, doubt: float, status: Status, words: str):
    found = clock(ahead, doubt_seconds=doubt)

    assert found.status == status
    assert words in found.found
