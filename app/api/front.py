"""What somebody sees who opens the service's address in a browser."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

router = APIRouter()

WORDS = "Wakebell is running; its status page comes with a later version, see /api/health\n"


@router.api_route("/", methods=["GET", "HEAD"])
async def front() -> PlainTextResponse:
    """One line for everybody. Touches no database."""
    return PlainTextResponse(WORDS)
