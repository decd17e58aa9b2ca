"""One inbound event: verify it, keep it once, queue its job.

    verified   by its signature, before anything else is looked at; no database is woken for what is not right
    kept       by its id and with its job, in one transaction: whoever repeats it gets the same job

Nothing of it is done here: the next tick runs the job.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn, cast

from app import plugins
from app.domain.errors import SignatureError
from app.hooks import Malformed, Received
from app.stores.events import NewEvent, door_of_hook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.hooks import Hook
    from app.settings import HookSettings


def refuse_unsigned(hook: HookSettings, headers: Mapping[str, bytes]) -> None:
    """Nothing, where the headers may sign a body, which is still to be read.

    Raises:
        SignatureError: they sign none.
    """
    kind = cast("Hook", plugins.load("app.hooks", hook.kind))
    if kind.signed(headers):
        return
    kind.verify(Received(headers=headers, body=b""), hook.keys, now=0, tolerance=0)  # which says what is wrong
    raise SignatureError("its signature is not right")


def verified(hook: HookSettings, received: Received, *, now: float) -> NewEvent:
    """The event that a request tells of.

    Args:
        hook: whose door it came to.
        received: the request.
        now: seconds of the era, by this machine's clock: the database sleeps on for what is not right.

    Raises:
        SignatureError: it is not from who it says, or too old.
        Malformed: it is, and is no event.
    """
    kind = cast("Hook", plugins.load("app.hooks", hook.kind))
    kind.verify(received, hook.keys, now=now, tolerance=hook.tolerance.total_seconds())
    body = kind.document(received)
    parsed = _parsed(body)
    told = kind.told(received, parsed)
    wanted = hook.events is None or told.type in hook.events
    return NewEvent(
        door=door_of_hook(hook.name),
        id=told.id,
        type=told.type,
        source=hook.name,
        data=parsed,
        body=body,
        job=hook.job if wanted else None,
        queue=hook.queue,
    )


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_constant)
    except RecursionError:
        raise Malformed("the body is nested too deeply") from None
    except ValueError:  # no JSON, no UTF-8, or a number of thousands of digits
        raise Malformed("the body is not JSON; choose JSON as its content type") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


UNHANDLED = "no handler"


def line(hook: HookSettings, public_url: str | None) -> str:
    """What a hook does, for people, with the address that its provider is to be given."""
    where = f"{public_url}{hook.path}" if public_url else f"{hook.path} (set PUBLIC_URL to see its whole address)"
    events = "every event" if hook.events is None else ", ".join(sorted(hook.events))
    return f"hook {hook.name}: {hook.kind} at {where}; {events} becomes a job {hook.job}"


def doubt(hook: HookSettings) -> str:
    """What is said of one whose jobs nobody can run."""
    return f"hook {hook.name}: there is {UNHANDLED} {hook.job}; its events are kept and wait until there is one"
