"""The door through which programs see what is wrong, take it on and mute what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from app import muting
from app.api.auth import api_token
from app.api.bodies import json_object, refused
from app.api.cursors import MOST_ID, PageQuery, answer
from app.api.deps import HeldStores  # noqa: TC001 - FastAPI reads the annotations
from app.api.errors import Problem
from app.asked import Refused, Text
from app.domain.alerts import Kind  # noqa: TC001 - the same
from app.domain.shown import instant

if TYPE_CHECKING:
    from app.stores import Stores
    from app.stores.incidents import StoredAlert

router = APIRouter(prefix="/api", dependencies=[Depends(api_token)])


class AlertsQuery(PageQuery):
    """The filters of the listing."""

    status: Literal["open", "resolved"] | None = None
    kind: Kind | None = None


async def asked_body(request: Request) -> dict[str, Any]:
    """The body, whatever is in it."""
    return await json_object(request)


@router.get("/alerts")
async def list_alerts(query: Annotated[AlertsQuery, Query()], stores: HeldStores) -> JSONResponse:
    """A page of alerts, the newest first; `status=open` leaves out what is over."""
    page = await stores.incidents.list_alerts(
        limit=query.limit,
        before=query.before("alerts"),
        opened=None if query.status is None else query.status == "open",
        kind=query.kind,
    )
    return answer("alerts", page)


@router.get("/alerts/{alert_id}")
async def get_alert(alert_id: int, stores: HeldStores) -> JSONResponse:
    """One alert."""
    return JSONResponse(muting.shown(await _found(stores, alert_id)))


@router.post("/alerts/{alert_id}/acknowledge")
async def acknowledge_alert(alert_id: int, stores: HeldStores) -> JSONResponse:
    """Take it on: it is not told again while it is open, its end is. 409 when it is over."""
    await _found(stores, alert_id)
    try:
        return JSONResponse(muting.shown(await muting.acknowledge(stores.incidents, alert_id)))
    except Refused as refusal:
        raise Problem(409, "Conflict", str(refusal)) from None


@router.post("/alerts/{alert_id}/mute")
async def mute_alert(
    alert_id: int, body: Annotated[dict[str, Any], Depends(asked_body)], stores: HeldStores
) -> JSONResponse:
    """Tell nothing of it `for` a while, or `until` an instant: this one, and the next with its key."""
    alert = await _found(stores, alert_id)
    try:
        _, until = muting.read(body, named=True)
        await muting.mute(stores.incidents, alert.key, until)
    except Refused as refusal:
        raise refused(refusal) from None
    return JSONResponse(muting.shown(await _found(stores, alert_id)))


@router.get("/mutes")
async def list_mutes(stores: HeldStores) -> JSONResponse:
    """What is muted now, by its pattern."""
    return JSONResponse({"mutes": [muting.shown(mute) for mute in await stores.incidents.list_mutes()]})


@router.post("/mutes")
async def add_mute(body: Annotated[dict[str, Any], Depends(asked_body)], stores: HeldStores) -> JSONResponse:
    """Tell nothing of what fits a `pattern` (`source_failing:*`), `for` a while or `until` an instant.

    Also of what is not open yet. It is recorded, and told when the time is over and it is still open.
    """
    try:
        pattern, until = muting.read(body)
        muted = await muting.mute(stores.incidents, pattern, until)
    except Refused as refusal:
        raise refused(refusal) from None
    return JSONResponse({"pattern": pattern, "until": instant(muted)})


@router.delete("/mutes")
async def end_mute(pattern: Annotated[Text, Query()], stores: HeldStores) -> Response:
    """End it now. 404 when nothing is muted by exactly this pattern."""
    if not await stores.incidents.unmute(pattern):
        raise Problem(404, "Not Found", "nothing is muted by this pattern; GET /api/mutes lists what is")
    return Response(status_code=204)


async def _found(stores: Stores, alert_id: int) -> StoredAlert:
    alert = await stores.incidents.find(alert_id) if 0 < alert_id <= MOST_ID else None
    if alert is None:
        raise Problem(404, "Not Found", "there is no such alert; one that is over is deleted after a while")
    return alert
