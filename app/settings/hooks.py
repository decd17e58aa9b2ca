"""`[hooks.x]`: other services' events, each of which becomes a job."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import plugins
from app.domain.jobs import BUILT_IN, OWN_PREFIX
from app.settings.names import check_name
from app.settings.problems import choose, shown

if TYPE_CHECKING:
    from app.settings.table import Table

HOOKS = "app.hooks"

PATH = "/api/hooks"
"""Where their doors are, each by its name."""

TYPE = re.compile(r"[a-z0-9_]{1,100}")

DEFAULT_TOLERANCE = 300
MOST_TOLERANCE = 3600
"""Seconds. How long what was signed once may be repeated by whoever has seen it."""

MOST_SECRETS = 5
MOST_QUEUE_BYTES = 200

MISSING = 'is missing; write "env:NAME", and into that variable {what}; a list of several while you change it'


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """One `[hooks.x]`."""

    name: str

    kind: str
    """The file name in `app/hooks/`."""

    job: str
    """The type of the job that an event becomes. Whether there is such a type, its handlers' folder says."""

    keys: tuple[bytes, ...] = field(repr=False)
    """What the secrets stand for; any of them counts."""

    tolerance: timedelta = timedelta(seconds=DEFAULT_TOLERANCE)
    """How far a signed time may lie from now, where the kind has one."""

    events: frozenset[str] | None = None
    """The types of events that become jobs; None: all."""

    queue: str = "default"

    @property
    def path(self) -> str:
        """Of its door, to be put behind the service's address."""
        return f"{PATH}/{self.name}"


def read_hooks(root: Table) -> dict[str, HookSettings]:
    """Those without a problem."""
    found = [_hook(table) for table in root.tables("hooks")]
    return {hook.name: hook for hook in found if hook is not None}


def _hook(table: Table) -> HookSettings | None:
    check_name(table)
    module = _module(table)
    job = _job(table)
    keys = _keys(table, module)
    tolerance = timedelta(
        seconds=table.number(
            "tolerance_seconds",
            DEFAULT_TOLERANCE,
            least=1,
            most=MOST_TOLERANCE,
            rule=f"a number from 1 to {MOST_TOLERANCE}",
        )
    )
    if module is not None and table.has("tolerance_seconds") and not module.TIMED:
        table.tell("tolerance_seconds", "does not go with this kind, which signs no time; remove it")
    events = table.texts("events", example="invoice.paid")
    if events == () and table.values.get("events") == []:
        table.tell("events", "is empty, so that nothing would become a job; name some, or remove the line for all")
    queue = _queue(table)
    table.close()
    if module is None or job is None or not keys:
        return None
    return HookSettings(
        name=table.keys[-1],
        kind=str(table.values["kind"]),
        job=job,
        keys=keys,
        tolerance=tolerance,
        events=None if events is None else frozenset(events),
        queue=queue,
    )


def _module(table: Table) -> Any | None:
    there = plugins.kinds(HOOKS)
    kind = table.text("kind", example="standard")
    if not table.has("kind"):
        table.tell("kind", f"is missing; write one of the kinds there are: {', '.join(there)}")
    if kind is None:
        return None
    if kind not in there:
        table.tell("kind", f"there is no kind {shown(kind)}; {choose(kind, there, none='')}")
        return None
    return plugins.load(HOOKS, kind)


def _job(table: Table) -> str | None:
    job = table.text("job", example="invoice_paid")
    if not table.has("job"):
        table.tell("job", 'is missing; write the type of the job that an event becomes: job = "invoice_paid"')
    if job is None:
        return None
    if not TYPE.fullmatch(job):
        table.tell("job", f"a job type holds lower-case letters, digits and _, not {shown(job)}; write another")
        return None
    if job in plugins.kinds("app.handlers"):
        whose = "takes no events" if job in BUILT_IN else "is one of the service's own"
        table.tell("job", f"{shown(job)} {whose}; write a handler of yours and its name here")
        return None
    return job


def _keys(table: Table, module: Any | None) -> tuple[bytes, ...]:
    if isinstance(table.values.get("secret"), list):
        secrets = table.texts("secret", example="env:NAME") or ()
        if not secrets or len(secrets) > MOST_SECRETS:
            table.tell("secret", f"must be one text, or a list of 1 to {MOST_SECRETS} while you change it")
    else:
        one = table.text("secret", example="env:NAME")
        secrets = () if one is None else (one,)
        if not table.has("secret"):
            what = module.SECRET if module is not None else "the provider's signing secret"
            table.tell("secret", MISSING.format(what=what))
    return tuple(key for secret in secrets if (key := _key(table, module, secret)))


def _key(table: Table, module: Any | None, secret: str) -> bytes | None:
    if module is None:
        return None
    try:
        key: bytes = module.key(secret.strip())
    except ValueError as error:
        table.tell("secret", f"{error}; write {module.SECRET}")
        return None
    return key


def _queue(table: Table) -> str:
    queue = table.text("queue", example="default") or "default"
    if queue.startswith(OWN_PREFIX):
        table.tell("queue", f"names that begin with {OWN_PREFIX} are the service's own; choose another")
    elif len(queue.encode()) > MOST_QUEUE_BYTES:
        table.tell("queue", f"is longer than {MOST_QUEUE_BYTES} bytes; write a shorter one")
    return queue
