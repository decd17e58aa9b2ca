"""What is answered to a message: by a model, else by a job type of the user's own, else by a polite text.

    message + last turns --model, within its limits--> text
                         --job type--> its result
                         --neither--> the text of the configuration

Nothing is sent and nothing is written here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app.clients import models
from app.context import Progress
from app.domain import chatwords
from app.domain.errors import DatabaseUnavailable, Failure, PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, Snooze
from app.domain.textcut import well_formed
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.context import Context
    from app.domain.conversations import Inbound, Turn
    from app.settings.chats import ChatSettings, ModelSettings

log = logging.getLogger(__name__)

SENDING_SECONDS = 4.0
"""What is kept of a drain's time for handing over what has taken long to make; a third of it, where that is less."""

MOST_SECONDS = 58.0
"""A job that answers has a minute, of which the first moments are for reading."""

REPLY_LENGTH = 8_000
"""Characters of a reply: more is no answer in a chat."""

ROLE_BY_SIDE = {"person": "user", "service": "assistant", "staff": "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is to be said."""

    texts: tuple[str, ...] = ()
    """One message each; none: nothing is said."""

    fault: str | None = None
    """Why it is only the polite text, where somebody should know of it."""


async def make(inbound: Inbound, turns: Sequence[Turn], chat: ChatSettings, ctx: Context) -> Reply:
    """The reply to a message, `turns` being what was said before it.

    Raises:
        TemporaryFailure: it cannot be made now.
        Postponed: the job type wants to be asked later.
    """
    if chat.model is not None:
        return await _of_model(inbound, turns, chat, chat.model, ctx)
    if chat.job is not None:
        return await _of_job(inbound, turns, chat, chat.job, ctx)
    return polite(chat)


def polite(chat: ChatSettings, *, fault: str | None = None) -> Reply:
    """The text of the configuration."""
    return Reply(texts=(chat.text,), fault=fault)


def _seconds(ctx: Context) -> float:
    """What making the reply may take, so that it can still be sent: of the job's own time as well."""
    left = min(ctx.deadline.left.total_seconds(), MOST_SECONDS)
    return left - min(SENDING_SECONDS, left / 3)


class Postponed(Exception):
    """A job type has no answer yet."""

    def __init__(self, snooze: Snooze) -> None:
        super().__init__("not yet")
        self.snooze = snooze


# ------------------------------------------------------------------------------------------------------------- a model


async def _of_model(
    inbound: Inbound, turns: Sequence[Turn], chat: ChatSettings, model: ModelSettings, ctx: Context
) -> Reply:
    spendings, limits = ctx.stores.spendings, {"most_tries": model.replies_per_day, "most_tokens": model.tokens_per_day}
    if not await spendings.begin(chat.kind, inbound.who, **limits):
        log.info("model not asked", extra={"chat": chat.name, "reason": "the day's limit of this person is reached"})
        return Reply(texts=(chatwords.words_of(chat.language).enough,))
    try:
        made = await models.complete(
            ctx.http,
            url=model.url,
            token=model.token,
            model=model.model,
            messages=list(_messages(inbound, turns, model)),
            max_tokens=model.max_tokens,
            temperature=model.temperature,
            seconds=min(model.timeout.total_seconds(), _seconds(ctx)),
        )
        if made.tokens:
            await spendings.charge(chat.kind, inbound.who, tokens=made.tokens)
        if made.failure is not None:
            raise made.failure
    except PermanentFailure as failure:
        return polite(chat, fault=f"the model of chat {chat.name} refuses: {failure}")
    heard = [turn.text for turn in turns if turn.side == "person"]
    return Reply(texts=_said(ctx.settings.secrets.struck(made.text, known=[*heard, inbound.text])))


def _messages(inbound: Inbound, turns: Sequence[Turn], model: ModelSettings) -> Iterator[dict[str, str]]:
    """Nothing that a stranger has written stands in the system's part."""
    if model.system is not None:
        yield {"role": "system", "content": model.system}
    for turn in turns:
        yield {"role": ROLE_BY_SIDE[turn.side], "content": turn.text}
    yield {"role": "user", "content": inbound.text}


# ------------------------------------------------------------------------------------------------- a job type of users'


async def _of_job(inbound: Inbound, turns: Sequence[Turn], chat: ChatSettings, name: str, ctx: Context) -> Reply:
    runnable = ctx.service.handlers.get(name)
    if runnable is None:
        return polite(chat, fault=f'chat {chat.name}: there is no handler "{name}"')
    module = runnable.module
    try:
        payload = module.Payload.model_validate(_payload(inbound, turns, chat, module.Payload))
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, told["loc"])) for told in error.errors()[:5])
        return polite(chat, fault=f"handler {name} does not take what a chat gives it: {fields}")
    try:
        outcome = await _asked(runnable, payload, ctx)
    except PermanentFailure as failure:
        return polite(chat, fault=f"handler {name}: {failure}")
    match outcome:
        case Snooze() as snooze:
            raise Postponed(snooze)
        case Done(result):
            return Reply(texts=_result(result))
        case Discard() | None:
            return Reply()
        case other:
            return polite(chat, fault=f"handler {name} returned {type(other).__name__}, not Done, Snooze or Discard")


async def _asked(runnable: Any, payload: Any, ctx: Context) -> Any:
    """What the handler returns, within its own time-out and this drain's time.

    Raises:
        TemporaryFailure: its own, or a bug: told without its words, in which may stand what somebody has said.
        PermanentFailure: its own.
    """
    # Its own transaction would end the job before the reply is sent.
    own = dataclasses.replace(ctx, job=None, progress=Progress())
    seconds = min(runnable.timeout.total_seconds(), _seconds(ctx))
    bound = asyncio.timeout(seconds)
    handle = runnable.module.handle
    try:
        async with bound:
            return await (in_thread(handle, payload, own) if runnable.threaded else handle(payload, own))
    except (Failure, DatabaseUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - a bug, whatever it is, and told below
        if bound.expired():
            raise TemporaryFailure(f"handler {runnable.type} took longer than {seconds:g} s") from None
        # Its words may be somebody's, and so may those of what it came from: only where it happened is told.
        places = "".join(traceback.format_tb(error.__traceback__))
        told = {"type": runnable.type, "error": type(error).__name__, "traceback": places}
        log.error("chat handler crashed", extra=told)  # noqa: TRY400 - as above
        raise TemporaryFailure(f"handler {runnable.type} crashed ({type(error).__name__})") from None


def _payload(inbound: Inbound, turns: Sequence[Turn], chat: ChatSettings, model: Any) -> dict[str, Any]:
    """All that there is to be said, or of that what the handler's model has a field for."""
    whole: dict[str, Any] = {
        "chat": chat.name,
        "conversation": inbound.key,
        "person": inbound.person,
        "text": inbound.text,
        "said_at": inbound.said_at.isoformat(),
        "language": chat.language,
        "turns": [{"side": turn.side, "text": turn.text, "at": turn.at.isoformat()} for turn in turns],
    }
    fields = {field.alias or name for name, field in model.model_fields.items()}
    return {name: value for name, value in whole.items() if name in fields}


def _result(result: Any) -> tuple[str, ...]:
    """A text, a list of texts, or an object with one of these as its `text`."""
    given = result.get("text") if isinstance(result, dict) else result
    listed = given if isinstance(given, list | tuple) else [] if given is None else [given]
    return tuple(text for one in listed for text in _said(str(one)))


def _said(text: str) -> tuple[str, ...]:
    """One text, if there is anything in it."""
    kept = well_formed(text.replace("\x00", ""))[:REPLY_LENGTH].strip()
    return (kept,) if kept else ()
