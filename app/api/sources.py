"""The door through which programs see how the sources are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from app import preview
from app.api.auth import api_token
from app.api.cursors import instant
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain import watching

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from app.settings import SourceSettings
    from app.stores.listings import StoredSource

NEED_A_PERSON = frozenset({"gone", "failing", "unstable", "blind", "silent"})

router = APIRouter(prefix="/api/sources", dependencies=[Depends(api_token)])


@router.get("")
async def list_sources(service: Annotated[Service, Depends(the_service)], stores: HeldStores) -> JSONResponse:
    """Every configured source in the file's order, without its address: that may hold a secret.

    `due_at` null: with the next tick, since none has seen this source yet, or not since it was given its address.
    """
    configured = service.settings.sources
    states = await stores.listings.list_sources(list(configured))
    return JSONResponse({"sources": [told(source, states.get(source.name)) for source in configured.values()]})


@router.post("/{name}/preview")
async def preview_source(name: str, service: Annotated[Service, Depends(the_service)]) -> JSONResponse:
    """A dry run: 200 also when the source fails, which `status` and `reason` say. Asks no database, sends nothing."""
    try:
        return JSONResponse(await preview.run(service.settings, name))
    except preview.UnknownSource as error:
        raise Problem(404, "Not Found", str(error)) from None


def told(source: SourceSettings, state: StoredSource | None) -> dict[str, Any]:
    """A source as it is configured and as it stands."""
    minutes = source.every.total_seconds() / 60
    known = state if state is not None and state.fingerprint == source.fingerprint else None
    status, reason = standing(known)
    return {
        "name": source.name,
        "kind": source.kind,
        "every_minutes": int(minutes) if minutes.is_integer() else minutes,
        "status": status,
        "reason": reason,
        "next_due_at": _instant(known.next_due_at) if known else None,
        "due_at": _instant(known.due_at) if known else None,
        "primed": known is not None and known.primed_at is not None,
        "last_round_at": _instant(state.last_round_at) if state else None,
        "last_success_at": _instant(state.last_success_at) if state else None,
        "failures": known.failures if known else 0,
        "last_failure_at": _instant(state.last_failure_at) if state else None,
        "last_error": known.last_error if known else None,
        "warnings": list(_warnings(known)) if known else [],
        "items": state.item_count if state else 0,
    }


def standing(state: StoredSource | None) -> tuple[str, str | None]:
    """One word for how a source is, and why it is so or why it is not read now; `state` None: it has not been planned.

    Some `NEED_A_PERSON`; `waiting` does not: its host has asked for it, and is asked again.
    """
    if state is None:
        return "new", None
    if state.gone_at is not None or state.failures:
        return ("gone" if state.gone_at is not None else "failing"), state.last_error
    if (trouble := _trouble(state)) is not None:
        return state.state, trouble
    if state.host_waits_until is not None:
        until = instant(state.host_waits_until)
        return "waiting", f"its host has asked to be left alone until {until}: {state.host_reason}"
    if state.refusals:
        return "waiting", state.last_error
    fresh = state.fresh_until is not None and state.fresh_until > state.due_at
    asked = f"its server asks not to be read again before {_instant(state.fresh_until)}" if fresh else None
    return ("ok" if state.primed_at is not None else "new"), asked


def _trouble(state: StoredSource) -> str | None:
    """Why a source that answers is of no use; what was said of it at another address is over."""
    if state.primed_at is None:
        return None
    return watching.told(state.state, empty_rounds=state.empty_rounds, quiet_days=state.quiet_days or 0)


def _warnings(state: StoredSource) -> Iterator[str]:
    if state.moved_host is not None:
        yield f"it has moved for good to {state.moved_host}: change its url"
    if state.distrusted_at is not None:
        yield 'its server has said "unchanged" when it was not: it is read whole each time'
    if state.key_rule != "id" and state.primed_at is not None:
        by = "links" if state.key_rule == "link" else "links and titles"
        yield f"its ids or links tell too few of its items apart: they are told apart by their {by}"


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
