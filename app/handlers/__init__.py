"""What a job does; one file, one type. Users' own stand in a folder of theirs, beside `wakebell.toml`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from app import plugins
from app.domain.calls import NOT_SWITCHED_ON
from app.domain.errors import ConfigError, PermanentFailure
from app.domain.jobs import BUILT_IN
from app.domain.limits import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from app.context import Context, Handler
    from app.domain.jobs import Outcome
    from app.settings import Settings


NAME = re.compile("[a-z0-9_]+")
"""Of a file, and so of a job type; one that begins with `_` is for the others to import."""

AT_ONCE = timedelta(seconds=1)
"""What a job takes that only says why it cannot be done."""

OWN_LEAST = timedelta(seconds=5)
"""What most own jobs need at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """A job type this process can run."""

    type: str
    module: Handler
    own: bool
    timeout: timedelta

    threaded: bool
    """`def handle` blocks, so that it runs in a thread; `async def` runs on the event loop."""

    delays: tuple[timedelta, ...] | None
    """What to wait after each failed attempt, the last one for all later; None: the usual delays."""

    least: timedelta
    """Own types only: not begun with less time. With more it runs under what is left, and goes back when cut."""

    after: frozenset[str]
    """Own types only: waits for jobs of these types that this tick is running."""

    refusal: Callable[[Any], str | None] | None = None
    """Why the configuration does not let a payload be put in, its field first; None: it lets all."""


def own() -> dict[str, Runnable]:
    """The service's own job types by name."""
    return {name: _runnable(name, plugins.load("app.handlers", name), own=True) for name in own_types()}


def own_types() -> list[str]:
    """The names of the service's own job types. Imports none."""
    return [name for name in plugins.kinds("app.handlers") if name not in BUILT_IN]


def known_to(settings: Settings) -> dict[str, Runnable]:
    """The types that users of a service may put in: their own, and those it brings along that are switched on.

    Raises:
        ConfigError: as `users`.
    """
    budget = settings.tick.budget
    return {**users(settings.service.handlers, budget=budget), **_switched_on(settings)}


def _switched_on(settings: Settings) -> dict[str, Runnable]:
    calls = settings.calls
    if calls is None:
        return {}
    module = plugins.load("app.handlers", "call_url")
    runnable = _runnable("call_url", module, own=False)
    return {
        "call_url": dataclasses.replace(
            runnable,
            timeout=min(runnable.timeout, settings.tick.budget),
            refusal=lambda payload: module.refusal(payload, calls),
        )
    }


class _SwitchedOff:
    """In place of `call_url.py` where nothing may be called: what other programs have put in says what is missing.

    It spares a cold start the import.
    """

    class Payload(BaseModel):
        """Whatever it is."""

    @staticmethod
    async def handle(payload: Any, ctx: Context) -> Outcome:  # noqa: ARG004 - as every handler
        """Give it up at once."""
        raise PermanentFailure(NOT_SWITCHED_ON)


def _switched_off() -> dict[str, Runnable]:
    off: Any = _SwitchedOff
    return {name: dataclasses.replace(_runnable(name, off, own=False), timeout=AT_ONCE) for name in BUILT_IN}


def users(folder: Path, *, budget: timedelta) -> dict[str, Runnable]:
    """The user's own job types by name, from the files of a folder; a missing folder has none.

    Raises:
        ConfigError: every file that cannot be imported or lacks something, with what to change. A time-out above
            the tick's budget would never be started.
    """
    modules = plugins.load_folder(folder)
    problems = [problem for name, module in modules.items() for problem in _problems(name, module, budget)]
    if problems:
        raise ConfigError([f"{folder.name}/{problem}" for problem in problems])
    return {name: _runnable(name, module, own=False) for name, module in modules.items()}


def users_own(name: str, module: Any) -> Runnable:
    """One of the user's own job types, from a module that has what its file must have.

    Raises:
        ConfigError: what it lacks.
    """
    problems = _problems(name, module, timedelta.max)
    if problems:
        raise ConfigError(problems)
    return _runnable(name, module, own=False)


def _runnable(name: str, module: Any, *, own: bool) -> Runnable:
    return Runnable(
        type=name,
        module=module,
        own=own,
        timeout=getattr(module, "TIMEOUT", DEFAULT_TIMEOUT),
        threaded=not inspect.iscoroutinefunction(module.handle),
        delays=getattr(module, "RETRY", None),
        least=getattr(module, "LEAST", OWN_LEAST),
        after=getattr(module, "AFTER", frozenset()),
    )


def _problems(name: str, module: Any, budget: timedelta) -> list[str]:
    found: list[str] = []
    if not NAME.fullmatch(name):
        found.append(f"{name}.py: the name is that of the job type: lower-case letters, digits and _; rename the file")
    if name in plugins.kinds("app.handlers"):
        found.append(f"{name}.py: the name is one of the service's own job types; rename the file")
    payload = getattr(module, "Payload", None)
    if not (inspect.isclass(payload) and issubclass(payload, BaseModel)):
        found.append(f"{name}.py: needs `class Payload(pydantic.BaseModel)`, the shape of its jobs' payloads")
    if not inspect.isfunction(getattr(module, "handle", None)):
        found.append(f"{name}.py: needs `async def handle(payload, ctx)`, or `def` for work that blocks")
    return found + _time_problems(name, module, budget)


def _time_problems(name: str, module: Any, budget: timedelta) -> list[str]:
    found: list[str] = []
    timeout = getattr(module, "TIMEOUT", DEFAULT_TIMEOUT)
    if not (isinstance(timeout, timedelta) and timeout > timedelta(0)):
        found.append(f"{name}.py: TIMEOUT must be a datetime.timedelta above zero")
    elif timeout > budget:
        seconds = f"{timeout.total_seconds():g} s, above the tick's budget of {budget.total_seconds():g} s"
        found.append(f"{name}.py: TIMEOUT is {seconds}: it would never start; lower it or raise [tick] budget_seconds")
    delays = getattr(module, "RETRY", (timedelta(minutes=1),))
    if not (isinstance(delays, tuple) and delays and all(isinstance(d, timedelta) for d in delays)):
        found.append(f"{name}.py: RETRY must be a tuple of datetime.timedelta, one for each wait between attempts")
    return found


def types_of(users_types: Mapping[str, Runnable]) -> list[str]:
    """The names of all types but the service's own. Imports none."""
    return list(dict.fromkeys([*BUILT_IN, *users_types]))


def all_types(users_types: Mapping[str, Runnable]) -> dict[str, Runnable]:
    """All that this process can run: own types, and users', with those that the service brings along for them."""
    return {**own(), **_switched_off(), **users_types}
