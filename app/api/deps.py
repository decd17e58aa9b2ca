"""What the doors are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fastapi import Request  # noqa: TC002 - FastAPI reads the annotations

if TYPE_CHECKING:
    from app.context import Service


async def the_service(request: Request) -> Service:
    """What lives as long as the process."""
    return cast("Service", request.app.state.service)
