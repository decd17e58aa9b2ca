"""The doors at which chat providers deliver what people say: `[chats.<name>]`."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from app import chatting, plugins, short_drain, talking
from app.api.bodies import STRANGERS, raw_body
from app.api.deps import the_service
from app.api.errors import Problem
from app.clients import ring
from app.context import Service, outbound
from app.domain.chats import Malformed, Said
from app.domain.errors import Failure, ServiceError, SignatureError
from app.domain.limits import GRACE
from app.settings.chats import PATH, ChatSettings
from app.stores.conversations import queue_of

log = logging.getLogger(__name__)

router = APIRouter(prefix=PATH)

MOST_BYTES = 1024 * 1024
"""Of a delivery."""

CHALLENGE = {"WWW-Authenticate": 'Signature realm="wakebell"'}

MOST_JOBS = 1000

MOST_RINGS = 4
"""For one chat in flight from one process."""

MOST_AGAIN = 10

SENT_SECONDS = 0.7
"""How long the service's own address may take to be reached: LINE counts two seconds as a failure."""


async def the_chat(name: str, service: Annotated[Service, Depends(the_service)]) -> ChatSettings:
    """The one of that name."""
    chat = service.settings.chats.get(name)
    if chat is None:
        raise Problem(404, "Not Found", "there is no such chat; its name is that of a [chats.…] in wakebell.toml")
    return chat


async def told_events(request: Request, chat: Annotated[ChatSettings, Depends(the_chat)]) -> list[Said]:
    """What the delivery tells, once its signature is right: until then no database is asked.

    What nobody can have signed, by its headers alone, is refused before its body is read.
    """
    module: Any = plugins.load("app.chats", chat.kind)
    headers = _headers(request)
    try:
        signed = module.signed(headers)
        raw = await raw_body(request, most_bytes=MOST_BYTES, room=STRANGERS) if signed else b""
        module.verify(raw, headers, chat.options)
        events: list[Said] = module.parse(raw, chat.options)
    except SignatureError as error:
        raise Problem(401, "Unauthorized", str(error), headers=CHALLENGE) from None
    except Malformed as error:
        raise Problem(400, "Bad Request", str(error)) from None
    return events


@router.get("/{name}")
async def check(request: Request, chat: Annotated[ChatSettings, Depends(the_chat)]) -> PlainTextResponse:
    """What a provider asks once, to see that the address is meant for it. 404 where its kind asks nothing."""
    module: Any = plugins.load("app.chats", chat.kind)
    try:
        answer = module.challenge(dict(request.query_params), chat.options)
    except SignatureError as error:
        raise Problem(403, "Forbidden", str(error)) from None
    if answer is None:
        raise Problem(404, "Not Found", f"a chat of the kind {chat.kind} is not asked so; its events come by POST")
    return PlainTextResponse(answer)


@router.post("/{name}")
async def take_delivery(
    service: Annotated[Service, Depends(the_service)],
    chat: Annotated[ChatSettings, Depends(the_chat)],
    events: Annotated[list[Said], Depends(told_events)],
) -> JSONResponse:
    """Keep what was said, each event once, and answer it: in this request where the provider waits for so long.

    200 once it is kept; 503 with `Retry-After` when the database cannot be reached, and nothing is kept. What is known
    to be answered needs no database.
    """
    async with service.stores.database.held():
        waiting = bool(events) and await talking.hear(service, chat, events)
        if waiting and not chatting.waits_not(chat):
            waiting = await _drain(service, chat)
    if waiting:
        await _go_on(service, chat)
    return JSONResponse({"status": "ok"})


async def _drain(service: Service, chat: ChatSettings) -> bool:
    """Answer what waits in this chat. What fails here is tried again by the next tick, and told by it.

    Whether there is more than it had time for: a reply is begun in the first half of a drain alone.
    """
    budget = max(chat.reply_budget, timedelta(seconds=1))
    try:
        told = await short_drain.run(service, queue=queue_of(chat.name), budget=budget, max_jobs=MOST_JOBS)
    except ServiceError as error:
        log.warning("replies left to the next tick", extra={"chat": chat.name, "reason": str(error)})
        return False
    return bool(told["jobs"]["remaining"])


async def _go_on(service: Service, chat: ChatSettings) -> None:
    """Answer beside whatever comes next. Returns once a request is in flight by which the host keeps the service.

    Many deliveries at once share a few rings: the first of those to end rings once more for all that came meanwhile.
    """
    if service.rings[chat.name] >= MOST_RINGS:
        service.ring_again.add(chat.name)
        return
    service.rings[chat.name] += 1
    sent = asyncio.Event()
    service.go_on(_ringing(service, chat, sent))
    try:
        async with asyncio.timeout(SENT_SECONDS):
            await sent.wait()
    except TimeoutError:
        log.warning("own address slow to reach", extra={"chat": chat.name})


async def _ringing(service: Service, chat: ChatSettings, sent: asyncio.Event) -> None:
    """Once; and again for whoever came meanwhile, and a few times for what one drain had no time for."""
    try:
        left, again = await _rung(service, chat, sent), 0
        while (chat.name in service.ring_again or (left and again < MOST_AGAIN)) and not service.stopping.requested:
            service.ring_again.discard(chat.name)
            left, again = await _rung(service, chat, asyncio.Event()), again + 1
    finally:
        service.rings[chat.name] -= 1


async def _rung(service: Service, chat: ChatSettings, sent: asyncio.Event) -> bool:
    """`_drain`, by a request to the service's own address, where it has one: a host stops what runs without any."""
    environment = service.settings.environment
    if environment.public_url is None or not environment.cron_secrets:
        sent.set()
        return await _drain(service, chat)
    try:
        async with outbound(service.user_agent) as http:
            counted = await ring.ring(
                http,
                environment.public_url,
                environment.cron_secrets[0],
                budget=chat.reply_budget,
                max_jobs=MOST_JOBS,
                patience=chat.reply_budget + GRACE,
                queue=queue_of(chat.name),
                sent=sent,
            )
    except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are answered from here
        sent.set()
        told = str(error) if isinstance(error, Failure) else type(error).__name__
        log.warning("own address not rung", extra={"chat": chat.name, "reason": told})
        return not service.stopping.requested and await _drain(service, chat)
    finally:
        sent.set()
    return counted["remaining"] > 0


def _headers(request: Request) -> dict[str, str]:
    return dict(request.headers.items())
