"""Bearer tokens, compared in constant time, on bytes."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from app.api.deps import the_service
from app.api.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

from app.context import Service  # noqa: TC001 - FastAPI reads the annotations


def accepted(header: bytes | None, tokens: Iterable[bytes]) -> bool:
    """Whether an Authorization header carries one of the tokens. An empty token is never one."""
    scheme, _, given = (header or b"").strip().partition(b" ")
    digest = hashlib.sha256(given.strip()).digest()  # of one length, so that its comparison tells nothing
    matches = [hmac.compare_digest(digest, hashlib.sha256(token).digest()) for token in tokens if token]
    return scheme.lower() == b"bearer" and any(matches)


def raw_authorization(request: Request) -> bytes | None:
    """The header's bytes as they came; None without one, and with several."""
    found = [value for name, value in request.scope["headers"] if name == b"authorization"]
    return found[0] if len(found) == 1 else None


async def cron_token(request: Request, service: Annotated[Service, Depends(the_service)]) -> None:
    """Lets the scheduler in and nobody else."""
    if not accepted(raw_authorization(request), service.settings.environment.cron_secrets):
        raise _unauthorized("CRON_SECRET")


async def api_token(request: Request, service: Annotated[Service, Depends(the_service)]) -> None:
    """Lets programs in that know the API's token; without a token nobody."""
    token = service.settings.environment.api_token
    if not token:
        raise Problem(503, "Service Unavailable", "API_TOKEN is not set")
    if not accepted(raw_authorization(request), [token]):
        raise _unauthorized("API_TOKEN")


def _unauthorized(name: str) -> Problem:
    return Problem(
        401,
        "Unauthorized",
        f"send the header `Authorization: Bearer <{name}>`",
        headers={"WWW-Authenticate": 'Bearer realm="wakebell"'},
    )
