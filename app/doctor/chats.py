"""Chats: whether providers deliver to our door, and whether the model that answers is there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from app import plugins
from app.clients import model_look
from app.doctor.looks import Look

if TYPE_CHECKING:
    import httpx

    from app.domain.findings import Finding
    from app.settings import ChatSettings, Settings


SECONDS = 45.0
"""LINE tries our door while it is asked, and that may have to wake first."""


def looks(settings: Settings, http: httpx.AsyncClient) -> list[Look]:
    """One for each chat, and one for its model."""
    public_url = settings.environment.public_url
    found = []
    for chat in settings.chats.values():
        door = None if public_url is None else f"{public_url}{chat.path}"
        found.append(Look(name=f"chat {chat.name}", work=partial(_chat, chat, door, http), seconds=SECONDS))
        if chat.model is not None:
            of_model = partial(
                model_look.look, http, url=chat.model.url, token=chat.model.token, model=chat.model.model
            )
            found.append(Look(name=f"chat {chat.name} model", work=of_model))
    return found


async def _chat(chat: ChatSettings, door: str | None, http: httpx.AsyncClient) -> list[Finding]:
    module: Any = plugins.load("app.chats", chat.kind)
    found: list[Finding] = await module.probe(door, chat.account, http)
    return found
