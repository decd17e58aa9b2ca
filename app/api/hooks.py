"""The doors at which other services tell what has happened: `[hooks.<name>]`."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from app import inbox
from app.api.bodies import STRANGERS, raw_body
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain.errors import SignatureError
from app.hooks import Malformed, Received
from app.settings import HookSettings  # noqa: TC001 - the same
from app.stores.events import NewEvent  # noqa: TC001 - the same

router = APIRouter(prefix="/api/hooks")

MOST_BYTES = 1024 * 1024
"""Of an event. GitHub would send up to 25 MB, Stripe and the standard far less."""

CHALLENGE = {"WWW-Authenticate": 'Signature realm="wakebell"'}


async def the_hook(name: str, service: Annotated[Service, Depends(the_service)]) -> HookSettings:
    """The one of that name."""
    hook = service.settings.hooks.get(name)
    if hook is None:
        raise Problem(404, "Not Found", "there is no such hook; its name is that of a [hooks.…] in wakebell.toml")
    return hook


async def told_event(request: Request, hook: Annotated[HookSettings, Depends(the_hook)]) -> NewEvent:
    """What the request tells of, once its signature is right: until then no database is asked.

    What nobody can have signed, by its headers alone, is refused before its body is read.
    """
    headers = _headers(request)
    try:
        inbox.refuse_unsigned(hook, headers)
        body = await raw_body(request, most_bytes=MOST_BYTES, room=STRANGERS)
        return inbox.verified(hook, Received(headers=headers, body=body), now=time.time())
    except SignatureError as error:
        detail = f"{error}; sign with the secret of [hooks.{hook.name}]"
        raise Problem(401, "Unauthorized", detail, headers=CHALLENGE) from None
    except Malformed as error:
        raise Problem(400, "Bad Request", str(error)) from None


@router.post("/{name}")
async def take_event(event: Annotated[NewEvent, Depends(told_event)], stores: HeldStores) -> JSONResponse:
    """Keep an event once, and put in its job: 202 with the job's id; 200 with the same for a repeat.

    `job_id` is null for an event that the hook's `events` leave out. Its job runs with the next tick.
    """
    kept = await stores.events.keep(event)
    return JSONResponse({"event_id": event.id, "job_id": kept.job_id}, 202 if kept.created else 200)


def _headers(request: Request) -> dict[str, bytes]:
    """Those that came once, by their names in lower case."""
    raw = request.scope["headers"]
    times = Counter(name for name, _ in raw)
    return {name.decode("latin-1"): value for name, value in raw if times[name] == 1}
