"""Four dead-man's switches as their documentation describes them: strict where they are."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from tests.fakes.http_server import HttpServer, Request, send

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a switch has understood."""

    what: str

    run: str | None = None
    words: str = ""
    took_ms: int | None = None


class _Switch(HttpServer):
    address: str
    """Its path; what is behind the host is the secret."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Told] = []

    @property
    def heartbeat_url(self) -> str:
        return f"{self.url}{self.address}"

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        parts = urlsplit(request.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        status, body = self.take(request, parts.path, query)
        await send(wire, status, body.encode())

    def take(self, request: Request, path: str, query: dict[str, str]) -> tuple[int, str]:
        raise NotImplementedError


class Healthchecks(_Switch):
    """HEAD, GET or POST to /<uuid>, /<uuid>/start, /fail, /log or /<exit status>; `rid` is a UUID in its usual form."""

    address = "/ping/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"

    def take(self, request: Request, path: str, query: dict[str, str]) -> tuple[int, str]:
        found = re.fullmatch(rf"{self.address}(?:/(start|fail|log|\d{{1,3}}))?", path)
        if found is None:
            return 404, "not found"
        run = query.get("rid")
        if run is not None and str(uuid.UUID(run)) != run:
            return 400, "invalid uuid format"
        end = found[1] or "0"
        what = {"start": "start", "fail": "failure", "log": "log", "0": "success"}.get(end, "failure")
        words = request.body.decode() if request.method == "POST" else ""
        self.told.append(Told(what=what, run=run, words=words))
        return 200, "OK"


class UptimeKuma(_Switch):
    """Any method; `status` other than up is down; `ping` is a number of milliseconds, at most a day of them."""

    address = "/api/push/Tok3nOfKuma?status=up&msg=OK&ping="

    def take(self, request: Request, path: str, query: dict[str, str]) -> tuple[int, str]:
        if path != "/api/push/Tok3nOfKuma":
            return 404, json.dumps({"ok": False, "msg": "Monitor not found or not active."})
        took = float(query["ping"]) if query.get("ping") else None
        if took is not None and not 0 <= took <= 86_400_000:
            return 400, json.dumps({"ok": False, "msg": "Invalid ping value"})
        what = "success" if query.get("status", "up") == "up" else "failure"
        took_ms = None if took is None else int(took)
        self.told.append(Told(what=what, words=query.get("msg", "OK"), took_ms=took_ms))
        return 200, json.dumps({"ok": True})


class BetterStack(_Switch):
    """GET or POST to the address, to /fail or to /<exit code>; nothing else is there."""

    address = "/api/v1/heartbeat/TokenOfBetterStack"

    def take(self, request: Request, path: str, query: dict[str, str]) -> tuple[int, str]:
        found = re.fullmatch(rf"{self.address}(?:/(fail|\d{{1,3}}))?", path)
        if found is None or request.method not in {"GET", "POST"}:
            return 404, "not found"
        what = "success" if found[1] in {None, "0"} else "failure"
        self.told.append(Told(what=what, words=request.body.decode()))
        return 200, "OK"


class Sentry(_Switch):
    """A status, and the id that ties a check-in's end to its beginning."""

    address = "/api/4507/cron/tick/0123456789abcdef0123456789abcdef/"

    def take(self, request: Request, path: str, query: dict[str, str]) -> tuple[int, str]:
        if path != self.address:
            return 404, "not found"
        what = {"in_progress": "start", "ok": "success", "error": "failure"}.get(query.get("status", ""))
        if what is None:
            return 400, "invalid status"
        run = query.get("check_in_id")
        self.told.append(Told(what=what, run=None if run is None else str(uuid.UUID(run))))
        return 202, ""
