"""LINE's Messaging API, as far as a push and a reply go, and what they cost.

It keeps a retry key from the first acceptance on, and answers 409 to it afterwards. With an `allowance` it counts what
is spent, one for each member of a group, and refuses what is more.
Source: developers.line.biz/en/docs/messaging-api/retrying-api-request.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from uuid import UUID, uuid4

from tests.fakes.http_server import HttpServer, Request, for_ever, send

if TYPE_CHECKING:
    import asyncio

TOKEN = "channel-access-token-of-the-tests"
PUSH = "/v2/bot/message/push"

QUOTA = "/v2/bot/message/quota"
USED = "/v2/bot/message/quota/consumption"

REPLY = "/v2/bot/message/reply"
LOADING = "/v2/bot/chat/loading/start"

RATE = "The API rate limit has been exceeded. Try again later."
SPENT = "You have reached your monthly limit."
NOBODY = "Failed to send messages"

Answer = int | Literal["drop", "hang", "rate", "spent", "nobody"]
"""A status that refuses. `drop`: the push is stored and the connection breaks before the answer. `hang`: nothing.
`rate`, `spent`: a 429 of either kind. `nobody`: the 400 of an unknown user."""

REFUSALS = {"rate": (429, RATE), "spent": (429, SPENT), "nobody": (400, NOBODY)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One by a reply token, which is good for one."""

    token: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    key: str
    raw: bytes
    to: str
    texts: tuple[str, ...]
    headers: Mapping[str, str]

    request_id: str = field(default_factory=lambda: str(uuid4()))
    """What LINE calls the request."""


class Line(HttpServer):
    """The stub: `await`ed into life, told by `answers` what to do with the next pushes."""

    def __init__(self) -> None:
        super().__init__()
        self.tries: list[Push] = []
        """Every push that came, whatever became of it."""

        self.accepted: dict[str, Push] = {}
        """By retry key: what has reached the user."""

        self.answers: deque[Answer] = deque()
        """For the next pushes, in order; then all are accepted."""

        self.always: dict[str, Answer] = {}
        """By address: what each push there gets."""

        self.when_stored: Callable[[Push], None] = lambda _: None
        """Called between the acceptance and its answer."""

        self.allowance: int | None = None
        """This month's messages; None: as many as one likes."""

        self.spent = 0
        self.members: dict[str, int] = {}
        """By the id of a group."""

        self.replies: dict[str, Reply] = {}
        """By their tokens: what has reached somebody."""

        self.asked = 0
        """How often somebody has asked for the allowance."""

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        told = self._told(request.path) if request.method == "GET" else None
        if told is None and (request.method, request.path.split("?")[0]) not in {
            ("POST", path) for path in (PUSH, REPLY, LOADING)
        }:
            await _tell(wire, 404, "Not found")
        elif request.headers.get("authorization") != f"Bearer {TOKEN}":
            await _tell(wire, 401, "Authentication failed")
        elif told is not None:
            await send(wire, 200, json.dumps(told).encode(), headers={"Content-Type": "application/json"})
        elif request.path == LOADING:
            await send(wire, 202, b"{}", headers={})
        elif request.path == REPLY:
            await self._reply(request, wire)
        else:
            await self._push(_push_of(request), wire)

    async def _reply(self, request: Request, wire: asyncio.StreamWriter) -> None:
        sent = json.loads(request.body)
        token = sent["replyToken"]
        if token in self.replies:
            await _tell(wire, 400, "Invalid reply token")
            return
        self.replies[token] = Reply(token=token, texts=tuple(one["text"] for one in sent["messages"]))
        await send(wire, 200, b'{"sentMessages": []}', headers={"X-Line-Request-Id": str(uuid4())})

    def _told(self, path: str) -> dict[str, object] | None:
        if path == QUOTA:
            self.asked += 1
            return {"type": "none"} if self.allowance is None else {"type": "limited", "value": self.allowance}
        if path == USED:
            return {"totalUsage": self.spent}
        group = path.removeprefix("/v2/bot/group/").removesuffix("/members/count")
        return {"count": self.members[group]} if group in self.members else None

    async def _push(self, push: Push, wire: asyncio.StreamWriter) -> None:
        self.tries.append(push)
        answer = self.answers.popleft() if self.answers else self.always.get(push.to)
        if answer == "hang":
            await for_ever()
        elif isinstance(answer, int):
            await _tell(wire, answer, "as the test wants it", push.request_id)
        elif answer in REFUSALS:
            await _tell(wire, *REFUSALS[answer], push.request_id)
        elif push.key in self.accepted:
            first = {"X-Line-Accepted-Request-Id": self.accepted[push.key].request_id}
            await _tell(wire, 409, "The retry key is already accepted", push.request_id, first)
        elif self.allowance is not None and self.spent + self.price(push) > self.allowance:
            await _tell(wire, 429, SPENT, push.request_id)
        else:
            self.accepted[push.key] = push
            self.spent += self.price(push)
            self.when_stored(push)
            if answer == "drop":
                wire.transport.abort()
            else:
                await send(wire, 200, b"{}", headers={"X-Line-Request-Id": push.request_id})

    def price(self, push: Push) -> int:
        """One message, or one for each member of a group."""
        return self.members.get(push.to, 1)

    @property
    def told(self) -> str:
        """All that has reached the user, as one text."""
        return "\n".join(text for push in self.accepted.values() for text in push.texts)

    def count(self, *titles: str) -> dict[str, int]:
        """How often each title has reached the user: as a line of its own."""
        lines = Counter(self.told.splitlines())
        return {title: lines[title] for title in titles}

    def assert_keys_frozen(self) -> None:
        """No key has come with differing bytes."""
        by_key: dict[str, set[bytes]] = {}
        for push in self.tries:
            by_key.setdefault(push.key, set()).add(push.raw)
        assert {key: raws for key, raws in by_key.items() if len(raws) > 1} == {}


def _push_of(request: Request) -> Push:
    sent = json.loads(request.body)
    return Push(
        key=str(UUID(request.headers["x-line-retry-key"])),
        raw=request.body,
        to=sent["to"],
        texts=tuple(message["text"] for message in sent["messages"]),
        headers=request.headers,
    )


async def _tell(
    wire: asyncio.StreamWriter,
    status: int,
    message: str,
    request_id: str = "",
    more: Mapping[str, str] | None = None,
) -> None:
    told = {"X-Line-Request-Id": request_id or str(uuid4()), "Content-Type": "application/json", **(more or {})}
    await send(wire, status, json.dumps({"message": message}).encode(), headers=told)
