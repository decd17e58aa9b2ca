"""Conversations' memory in Redis or Valkey: what was said last, and which events are answered, for all replicas.

PostgreSQL decides what is done once; this is asked first, so that a repeat wakes no database. Every key expires. What
must be one step is one script, so that a process that dies leaves no list without an end.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from app.domain.conversations import Side, Turn
from app.domain.errors import MemoryUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence
    from datetime import timedelta

    from redis.asyncio import Redis

SECONDS = 1.0
"""What it has to answer in: the database can do all of it, and a provider waits."""

ADD = """
local known = {}
for _, written in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    local read, turn = pcall(cjson.decode, written)
    if read and type(turn) == 'table' and turn[1] then known[turn[1]] = true end
end
for place = 3, #ARGV do
    local mark = cjson.decode(ARGV[place])[1]
    if not known[mark] then
        redis.call('RPUSH', KEYS[1], ARGV[place])
        known[mark] = true
    end
end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[1]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('LLEN', KEYS[1])
"""
"""Each turn once, by its mark; the last ones alone; forgotten after the last one."""


class Recall:
    """One process's way to it, for the length of a batch."""

    def __init__(self, client: Redis, *, prefix: str, keep: timedelta) -> None:
        self._client = client
        self._prefix = prefix
        self._milliseconds = max(round(keep.total_seconds() * 1000), 1)

    async def last(self, chat: str, key: str, *, most: int) -> list[Turn]:
        """The last turns of a conversation, oldest first.

        Raises:
            MemoryUnavailable: it cannot be asked.
        """
        if most < 1:
            return []
        written = await _answer(self._client.lrange(self._turns(chat, key), -most, -1))
        return [turn for one in written if (turn := _turn(one)) is not None]

    async def add(self, chat: str, key: str, turns: Sequence[Turn], *, most: int) -> None:
        """Remember these turns, each once, and of all no more than `most`.

        Raises:
            MemoryUnavailable: it cannot be asked; whether they are remembered is not known.
        """
        if not turns or most < 1:
            return
        given = [json.dumps([turn.mark, turn.side, turn.text, turn.at.isoformat()]) for turn in turns]
        await _answer(self._client.eval(ADD, 1, self._turns(chat, key), most, self._milliseconds, *given))

    async def answered(self, chat: str, events: Sequence[str]) -> set[str]:
        """Which of these events are known to be done with.

        Raises:
            MemoryUnavailable: it cannot be asked.
        """
        if not events:
            return set()
        found = await _answer(self._client.mget([self._event(chat, event) for event in events]))
        return {event for event, mark in zip(events, found, strict=True) if mark is not None}

    async def confirm(self, chat: str, event: str) -> None:
        """This event is done with: its copies need not be looked at.

        Raises:
            MemoryUnavailable: it cannot be asked.
        """
        await _answer(self._client.set(self._event(chat, event), "1", px=self._milliseconds))

    async def standings(self, talks: Sequence[tuple[str, str]]) -> list[tuple[int, datetime | None]]:
        """Of each conversation, by chat and key: how many turns are remembered, and when the last one was said.

        Raises:
            MemoryUnavailable: it cannot be asked.
        """
        if not talks:
            return []
        async with self._client.pipeline(transaction=False) as asked:
            for chat, key in talks:
                asked.llen(self._turns(chat, key))
                asked.lindex(self._turns(chat, key), -1)
            told = await _answer(asked.execute())
        lasts = [None if written is None else _turn(written) for written in told[1::2]]
        return [(count, last.at if last else None) for count, last in zip(told[::2], lasts, strict=True)]

    async def forget(self, chat: str, key: str) -> None:
        """Nothing was said in this conversation.

        Raises:
            MemoryUnavailable: it cannot be asked; what it has stays until it expires.
        """
        await _answer(self._client.delete(self._turns(chat, key)))

    def _turns(self, chat: str, key: str) -> str:
        return f"{self._prefix}turns:{chat}:{key}"

    def _event(self, chat: str, event: str) -> str:
        return f"{self._prefix}answered:{chat}:{event}"


@asynccontextmanager
async def opened(url: str, *, prefix: str, keep: timedelta) -> AsyncIterator[Recall]:
    """The way to the server at that address; its connections end with it. Connects when it is first asked."""
    from redis.asyncio import Redis  # noqa: PLC0415 - most services have none, and it takes a while to import
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.exceptions import ConnectionError as Broken  # noqa: PLC0415

    client = Redis.from_url(
        url,
        decode_responses=True,
        encoding_errors="replace",
        socket_timeout=SECONDS,
        socket_connect_timeout=SECONDS,
        retry=Retry(
            NoBackoff(), 1, supported_errors=(Broken,)
        ),  # a connection that broke unseen; all is harmless twice
    )
    try:
        yield Recall(client, prefix=prefix, keep=keep)
    finally:
        await client.aclose()


async def _answer(asked: Awaitable[Any]) -> Any:
    from redis.exceptions import RedisError  # noqa: PLC0415 - as above

    try:
        return await asked
    except (RedisError, OSError, TimeoutError, UnicodeError) as error:
        # Its words may name the address, and that may hold a password.
        raise MemoryUnavailable(f"REDIS_URL: the server could not be asked ({type(error).__name__})") from None


def _turn(written: str) -> Turn | None:
    """None: somebody else has put it there."""
    try:
        mark, side, text, at = json.loads(written)
        if side not in get_args(Side):
            return None
        return Turn(mark=str(mark), side=side, text=str(text), at=datetime.fromisoformat(at).astimezone(UTC))
    except (ValueError, TypeError, RecursionError):
        return None
