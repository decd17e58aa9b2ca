"""Numbers for a monitor that comes to fetch them: each visit wakes the service and its database."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse

from app import __version__
from app.api.auth import api_token
from app.api.deps import HeldStores, the_service
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain.metrics import CONTENT_TYPE, exposed, families

router = APIRouter(dependencies=[Depends(api_token)])


class MetricsResponse(PlainTextResponse):
    """Prometheus's text."""

    media_type = CONTENT_TYPE


@router.get("/metrics")
async def metrics(service: Annotated[Service, Depends(the_service)], stores: HeldStores) -> MetricsResponse:
    """Everything at once, in Prometheus's text format. Counted to caps, so that a full database answers as fast."""
    configured = service.settings
    numbers = await stores.metrics.read(sources=list(configured.sources), channels=list(configured.channels))
    told = families(numbers, version=__version__, expected_every=configured.tick.expected_every)
    return MetricsResponse(exposed(told), headers={"Cache-Control": "no-store"})
