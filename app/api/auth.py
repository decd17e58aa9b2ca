"""Who is let in: by a bearer token, compared in constant time, on bytes; a scheduler also by QStash's signature."""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from app.api.bodies import raw_body
from app.api.deps import the_service
from app.api.errors import Problem
from app.domain import qstash
from app.domain.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.settings import Environment

from app.context import Service  # noqa: TC001 - FastAPI reads the annotations

log = logging.getLogger(__name__)

MOST_SIGNED_BYTES = 64 * 1024
"""Of the body of a ring, which says nothing to us: it is read for its signature alone."""


def accepted(header: bytes | None, tokens: Iterable[bytes]) -> bool:
    """Whether an Authorization header carries one of the tokens. An empty token is never one."""
    scheme, _, given = (header or b"").strip().partition(b" ")
    digest = hashlib.sha256(given.strip()).digest()  # of one length, so that its comparison tells nothing
    matches = [hmac.compare_digest(digest, hashlib.sha256(token).digest()) for token in tokens if token]
    return scheme.lower() == b"bearer" and any(matches)


def raw_authorization(request: Request) -> bytes | None:
    """The header's bytes as they came; None without one, and with several."""
    return _raw(request, "authorization")


async def cron_token(request: Request, service: Annotated[Service, Depends(the_service)]) -> None:
    """Lets the scheduler in and nobody else: whoever has the token, or QStash where its keys are set."""
    environment = service.settings.environment
    if accepted(raw_authorization(request), environment.cron_secrets):
        return
    if not await _rung_by_qstash(request, environment):
        raise _unauthorized("CRON_SECRET")


async def api_token(request: Request, service: Annotated[Service, Depends(the_service)]) -> None:
    """Lets programs in that know the API's token; without a token nobody."""
    token = service.settings.environment.api_token
    if not token:
        raise Problem(503, "Service Unavailable", "API_TOKEN is not set")
    if not accepted(raw_authorization(request), [token]):
        raise _unauthorized("API_TOKEN")


async def _rung_by_qstash(request: Request, environment: Environment) -> bool:
    """Whether one of QStash's keys has signed this very request. Its body is not read before one of them has."""
    token = _raw(request, qstash.HEADER)
    if token is None or not environment.qstash_keys or environment.public_url is None:
        return False
    try:
        claims = qstash.signed_claims(token, environment.qstash_keys)
        qstash.refuse_others(claims, url=_called(request, environment.public_url), now=time.time())
        qstash.refuse_other_body(claims, await raw_body(request, most_bytes=MOST_SIGNED_BYTES))
    except qstash.Refused as error:  # by QStash and by nobody else, so that nobody fills the log with it
        log.warning("a ring of QStash was refused", extra={"reason": str(error)})
        return False
    except SignatureError:
        return False
    return True


def _called(request: Request, public_url: str) -> str:
    """The address that was called, as whoever called it wrote it: what stands before the path is not ours to see."""
    query = request.scope["query_string"].decode("latin-1")
    return f"{public_url}{request.scope['path']}{'?' if query else ''}{query}"


def _raw(request: Request, header: str) -> bytes | None:
    """A header's bytes as they came; None without one, and with several."""
    found = [value for name, value in request.scope["headers"] if name == header.encode()]
    return found[0] if len(found) == 1 else None


def _unauthorized(name: str) -> Problem:
    return Problem(
        401,
        "Unauthorized",
        f"send the header `Authorization: Bearer <{name}>`",
        headers={"WWW-Authenticate": 'Bearer realm="wakebell"'},
    )
