"""The door through which programs make, move and delete bookings."""

from __future__ import annotations

from functools import partial
from typing import Annotated, NoReturn

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from app.api import booking_bodies
from app.api.auth import api_token
from app.api.bodies import json_object, refused
from app.api.cursors import PageQuery, answer
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.asked import Refused
from app.context import Service
from app.domain.bookings import Booking  # noqa: TC001 - FastAPI reads the annotations

router = APIRouter(prefix="/api/bookings", dependencies=[Depends(api_token)])

MOST_BYTES = 16 * 1024
"""Of a body: ten times what the longest title takes."""

TheService = Annotated[Service, Depends(the_service)]


async def asked_ref(ref: str) -> str:
    """A name that a booking can have."""
    try:
        return booking_bodies.known_ref(ref)
    except Refused as refusal:
        raise refused(refusal) from None


async def asked_booking(request: Request, service: TheService, ref: Annotated[str, Depends(asked_ref)]) -> Booking:
    """The booking that the body asks for, checked as far as that goes without the database."""
    body = await json_object(request, most_bytes=MOST_BYTES)
    try:
        return booking_bodies.read(ref, body, service.settings)
    except Refused as refusal:
        raise refused(refusal) from None


@router.get("")
async def list_bookings(query: Annotated[PageQuery, Query()], service: TheService, stores: HeldStores) -> JSONResponse:
    """A page of bookings, the newest first by when they were made."""
    page = await stores.bookings.list_bookings(limit=query.limit, before=query.before("bookings"))
    return answer("bookings", page, partial(booking_bodies.shown, settings=service.settings))


@router.get("/{ref:path}")
async def get_booking(ref: Annotated[str, Depends(asked_ref)], service: TheService, stores: HeldStores) -> JSONResponse:
    """One booking with its reminders."""
    stored = await stores.bookings.get(ref)
    if stored is None:
        _missing()
    return JSONResponse(booking_bodies.shown(stored, service.settings))


@router.put("/{ref:path}")
async def put_booking(
    booking: Annotated[Booking, Depends(asked_booking)], service: TheService, stores: HeldStores
) -> JSONResponse:
    """Make a booking (201) or change it (200); the same once more changes nothing.

    `starts_at` is an instant with its offset, a time on the wall of `timezone`, or a date, which is all of that day.
    Another start earns its reminders anew, and what was composed for the former one and has not left is called off.
    """
    stored, created = await stores.bookings.put(booking)
    return JSONResponse(booking_bodies.shown(stored, service.settings), 201 if created else 200)


@router.delete("/{ref:path}", status_code=204)
async def delete_booking(ref: Annotated[str, Depends(asked_ref)], stores: HeldStores) -> Response:
    """No reminder of it is sent any more."""
    if not await stores.bookings.delete(ref):
        _missing()
    return Response(status_code=204)


def _missing() -> NoReturn:
    raise Problem(404, "Not Found", "there is no such booking; one that is over is deleted after [retention] jobs_days")
