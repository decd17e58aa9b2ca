"""Chats beside what they need: what is wrong with them, and how they are shown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import plugins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from app.settings import Settings
    from app.settings.chats import ChatSettings

AT_ONCE = timedelta(seconds=5)
"""A provider that waits no longer is answered as soon as its delivery is kept."""

SLOW = (
    "without PUBLIC_URL a reply that takes longer than the provider waits may be left to the next tick; set it to the "
    "address of this service"
)
COLD = (
    "the first message after a sleep may come too late for the provider: switch on webhook redelivery in the LINE "
    "Developers console, so that it comes again"
)


def problems(settings: Settings, handlers: Mapping[str, Any]) -> list[str]:
    """Chats whose job no handler does, each with its place in the file."""
    path = settings.environment.config_path
    there = f"there are {', '.join(sorted(handlers))}" if handlers else "there is none yet"
    return [
        f'{path}: chats.{chat.name}.job: no handler is named "{chat.job}"; {there}'
        for chat in settings.chats.values()
        if chat.job is not None and chat.job not in handlers
    ]


def lines(settings: Settings) -> list[str]:
    """Each chat for people, and what to think of."""
    return [line for chat in settings.chats.values() for line in _lines(chat, settings.environment.public_url)]


def _lines(chat: ChatSettings, public_url: str | None) -> Iterator[str]:
    answers = "a fixed text"
    if chat.model is not None:
        answers = f"the model {chat.model.model}"
    elif chat.job is not None:
        answers = f"the job {chat.job}"
    yield f"chat {chat.name}: {chat.kind}, answered by {answers}; its webhook is {public_url or ''}{chat.path}"
    if chat.commands:
        named = f"{len(chat.allow)} named in allow" if chat.allow is not None else ""
        invited = "whoever says the invitation" if chat.invitation is not None else ""
        yield f"chat {chat.name}: commands may be given by {' and '.join(filter(None, (named, invited)))}"
    if waits_not(chat):
        if public_url is None and (chat.model is not None or chat.job is not None):
            yield f"chat {chat.name}: {SLOW}"
        yield f"chat {chat.name}: {COLD}"


def waits_not(chat: ChatSettings) -> bool:
    """Whether its provider is answered as soon as a delivery is kept."""
    within: timedelta = plugins.load("app.chats", chat.kind).WITHIN
    return within <= AT_ONCE
