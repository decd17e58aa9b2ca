from __future__ import annotations

import json
from datetime import timedelta

import pytest

from app.domain.metrics import Family, Numbers, exposed, families
from tests.fakes.exposition import parsed

ODD = ['a "b"', "back\\slash", "two\nlines", "งานส่งจดหมาย", '{curly="}', "\\n", "tab\tand\rreturn", "x" * 500]

EMPTY = Numbers(
    now=1_790_000_000.5,
    jobs=[],
    oldest_due=[],
    ended=[],
    messages=[],
    ticks=[],
    alerts=[],
    channels=[],
    sources=[],
    estimates=[],
    last_tick=None,
    last_success=None,
    last_status=None,
    last_summary={},
)


@pytest.mark.parametrize("name", ODD)
def test_names_of_any_kind_come_back_as_they_were(name: str):
    text = exposed([Family("wakebell_jobs", "Jobs.", ("queue", "state")).add(3, name, "due")])

    [found] = parsed(text).values()
    assert found.samples == {(("queue", name[:200]), ("state", "due")): 3.0}
    assert len(text.splitlines()) == 3 + text.count("\r")


def test_a_family_says_what_it_is_once_before_its_samples():
    family = Family("a_b", 'Two\nlines, a \\ and a "quote".', ("kind",)).add(1, "x").add(0.25, "y").add(None, "z")

    assert exposed([family, Family("empty", "Left out.")]) == (
        '# HELP a_b Two\\nlines, a \\\\ and a "quote".\n# TYPE a_b gauge\na_b{kind="x"} 1\na_b{kind="y"} 0.25\n'
    )


@pytest.mark.parametrize(
    ("number", "written"), [(1_790_000_000.125, "1790000000.125"), (5, "5"), (2.0, "2"), (-1, "-1")]
)
def test_numbers_are_written_whole_and_exact(number: float, written: str):
    assert exposed([Family("a", "A.").add(number)]).splitlines()[-1] == f"a {written}"


def test_an_empty_service_tells_what_it_is():
    found = parsed(exposed(families(EMPTY, version="1.2.3", expected_every=timedelta(minutes=15))))

    assert {name: family.samples for name, family in found.items()} == {
        "wakebell_info": {(("version", "1.2.3"),): 1.0},
        "wakebell_tick_expected_every_seconds": {(): 900.0},
    }


def test_a_last_summary_is_told_counter_by_counter():
    summary = {"tick": 7, "status": "ok", "duration_ms": 1840, "jobs": {"done": 8}, "alerts": {"open": 1}, "errors": []}
    numbers = Numbers(
        **{**{f: getattr(EMPTY, f) for f in EMPTY.__slots__}, "last_summary": json.loads(json.dumps(summary))}
    )

    found = parsed(exposed(families(numbers, version="1", expected_every=timedelta(minutes=15))))

    assert found["wakebell_tick_last"].samples == {(("counter", "jobs.done"),): 8.0, (("counter", "alerts.open"),): 1.0}
    assert found["wakebell_tick_last_duration_seconds"].samples == {(): 1.84}
