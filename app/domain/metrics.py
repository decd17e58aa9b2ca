"""Numbers in Prometheus's text format.

Source: prometheus.io/docs/instrumenting/exposition_formats (text-based format, 0.0.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_COUNTED = 10_000
"""Rows of one sort: more are told as so many."""

MOST_QUEUES = 20
"""With work, by name; others are left out."""

MOST_TICKS = 100

LABEL_LENGTH = 200
"""Characters. Anybody who writes to the table names queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What the database says. Lists are rows, in the order of the labels and the values below."""

    now: float | None
    jobs: Sequence[Sequence[Any]]
    oldest_due: Sequence[Sequence[Any]]
    ended: Sequence[Sequence[Any]]
    messages: Sequence[Sequence[Any]]
    ticks: Sequence[Sequence[Any]]
    alerts: Sequence[Sequence[Any]]
    channels: Sequence[Sequence[Any]]
    sources: Sequence[Sequence[Any]]
    estimates: Sequence[Sequence[Any]]
    last_tick: float | None
    last_success: float | None
    last_status: str | None
    last_summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: a gauge, since whatever is told here may also fall."""

    name: str
    help: str
    labels: tuple[str, ...] = ()

    samples: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    """Values of the labels, and the number. One without a number is left out."""

    def add(self, number: float | None, *labels: str) -> Family:
        """One more sample."""
        if number is not None:
            self.samples.append((labels, number))
        return self


def exposed(families: Iterable[Family]) -> str:
    """The text. A family without samples is left out with its heading."""
    return "".join(_family(family) for family in families if family.samples)


def _family(family: Family) -> str:
    lines = [f"# HELP {family.name} {_escaped(family.help)}", f"# TYPE {family.name} gauge"]
    for values, number in family.samples:
        pairs = ",".join(f'{label}="{_quoted(value)}"' for label, value in zip(family.labels, values, strict=True))
        lines.append(f"{family.name}{f'{{{pairs}}}' if pairs else ''} {_number(number)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(value: str) -> str:
    return _escaped(value[:LABEL_LENGTH]).replace('"', '\\"')


def _number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def families(numbers: Numbers, *, version: str, expected_every: timedelta) -> list[Family]:
    """All that is told of a service. Label values are bounded: names of the configuration, and a few queues."""
    counted = f"counted to {MOST_COUNTED}"
    return [
        Family("wakebell_info", "The release that answers.", ("version",)).add(1, version),
        *_ticks(numbers, expected_every),
        _listed(
            "wakebell_jobs",
            f"Jobs by queue and state, {counted} each; of the first {MOST_QUEUES} queues.",
            ("queue", "state"),
            numbers.jobs,
        ),
        _listed(
            "wakebell_jobs_ended_last_hour", f"Jobs that ended in the last hour, {counted}.", ("status",), numbers.ended
        ),
        _listed(
            "wakebell_queue_oldest_due_age_seconds",
            "How long the first job of a queue has been due.",
            ("queue",),
            numbers.oldest_due,
        ),
        *_sources(numbers, counted),
        _listed(
            "wakebell_messages",
            f"Messages that are under way, or have ended in the last day, {counted} each.",
            ("channel", "status"),
            numbers.messages,
        ),
        *_channels(numbers),
        _listed("wakebell_alerts_open", "Open alerts.", ("kind",), numbers.alerts),
        _listed(
            "wakebell_table_rows_estimate",
            "Rows of a table as the database last estimated them; it does so when it vacuums.",
            ("table",),
            numbers.estimates,
        ),
    ]


def _ticks(numbers: Numbers, expected_every: timedelta) -> list[Family]:
    took = numbers.last_summary.get("duration_ms")
    last = Family("wakebell_tick_last", "Counters of the last tick that has ended, as in its summary.", ("counter",))
    for section, counters in numbers.last_summary.items():
        if isinstance(counters, dict):
            for name, count in counters.items():
                last.add(count, f"{section}.{name}")
    status = Family("wakebell_tick_last_status", "How the last tick ended.", ("status",))
    return [
        Family("wakebell_tick_expected_every_seconds", "How often somebody is to ring.").add(
            expected_every.total_seconds()
        ),
        Family("wakebell_tick_last_start_timestamp_seconds", "When the last tick began.").add(numbers.last_tick),
        Family("wakebell_tick_last_success_timestamp_seconds", "When the last tick ended that did not fail.").add(
            numbers.last_success
        ),
        Family("wakebell_tick_last_duration_seconds", "How long the last tick took that has ended.").add(
            None if took is None else took / 1000
        ),
        status if numbers.last_status is None else status.add(1, numbers.last_status),
        _listed("wakebell_ticks", f"The latest {MOST_TICKS} ticks by how they ended.", ("status",), numbers.ticks),
        last,
    ]


def _sources(numbers: Numbers, counted: str) -> list[Family]:
    state = Family("wakebell_source_state", "How a source is; always 1.", ("source", "state"))
    failures = Family("wakebell_source_failures", "Rounds of a source in a row that failed.", ("source",))
    success = Family("wakebell_source_last_success_timestamp_seconds", "When a source was last read well.", ("source",))
    news = Family("wakebell_source_last_news_timestamp_seconds", "When a source last had something new.", ("source",))
    items = Family("wakebell_items", f"Items that are known of a source, {counted} each.", ("source",))
    for name, standing, failed, succeeded_at, news_at, known in numbers.sources:
        state.add(1, name, standing)
        failures.add(failed, name)
        success.add(succeeded_at, name)
        news.add(news_at, name)
        items.add(known, name)
    return [state, failures, success, news, items]


def _channels(numbers: Numbers) -> list[Family]:
    used = Family("wakebell_quota_used", "Messages of a channel that are used up this month.", ("channel",))
    limit = Family("wakebell_quota_limit", "Messages of a channel for this month.", ("channel",))
    parked = Family("wakebell_channel_parked", "Whether a channel takes nothing now.", ("channel",))
    for name, quota_used, quota_limit, is_parked in numbers.channels:
        used.add(quota_used, name)
        limit.add(quota_limit, name)
        parked.add(1 if is_parked else 0, name)
    return [used, limit, parked]


def _listed(name: str, help_: str, labels: tuple[str, ...], found: Sequence[Sequence[Any]]) -> Family:
    family = Family(name, help_, labels)
    for *values, number in found:
        family.add(number, *values)
    return family
