"""The door through which programs see how the sources are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from app.api.auth import api_token
from app.api.cursors import instant
from app.api.deps import HeldStores, the_service
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations

if TYPE_CHECKING:
    from datetime import datetime

    from app.settings import SourceSettings
    from app.stores.listings import StoredSource

router = APIRouter(prefix="/api/sources", dependencies=[Depends(api_token)])


@router.get("")
async def list_sources(service: Annotated[Service, Depends(the_service)], stores: HeldStores) -> JSONResponse:
    """Every configured source in the file's order, without its address: that may hold a secret.

    `due_at` null: with the next tick, since none has seen this source yet, or not since it was given its address.
    """
    configured = service.settings.sources
    states = await stores.listings.list_sources(list(configured))
    return JSONResponse({"sources": [told(source, states.get(source.name)) for source in configured.values()]})


def told(source: SourceSettings, state: StoredSource | None) -> dict[str, Any]:
    """A source as it is configured and as it stands."""
    minutes = source.every.total_seconds() / 60
    known = state is not None and state.fingerprint == source.fingerprint
    return {
        "name": source.name,
        "kind": source.kind,
        "every_minutes": int(minutes) if minutes.is_integer() else minutes,
        "due_at": _instant(state.due_at) if state and known else None,
        "primed": state is not None and known and state.primed_at is not None,
        "last_round_at": _instant(state.last_round_at) if state else None,
        "last_success_at": _instant(state.last_success_at) if state else None,
        "failures": state.failures if state and known else 0,
        "last_failure_at": _instant(state.last_failure_at) if state else None,
        "last_error": state.last_error if state and known else None,
        "items": state.item_count if state else 0,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
