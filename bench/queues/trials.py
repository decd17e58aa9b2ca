"""Rounds of trials: each contender in turn, each trial a process and a database of its own."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.queues.contenders import CONTENDERS, Contender
from bench.queues.databases import DATABASE
from bench.queues.delay import delayed
from bench.queues.environments import FOLDER, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.queues.databases import Server

ADDED = 0.007
"""Seconds that the far server adds to every round trip."""

FEW = 100


@dataclass(slots=True)
class Measured:
    """Every figure of every contender: `figures[contender][measure]`, one for each round."""

    figures: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    faults: list[str] = field(default_factory=list)


class Wrong(Exception):
    """A trial that does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a run is made with."""

    server: Server
    commands: Mapping[str, list[str]]
    count: int
    measured: Measured = field(default_factory=Measured)

    async def run(self, rounds: int, *, only: str = "") -> Measured:
        """All rounds; each begins with another contender."""
        wanted = only.lower().split(",")
        taking_part = [c for c in CONTENDERS if c.where in self.commands and any(w in c.name.lower() for w in wanted)]
        taking_part = [contender for contender in taking_part if await self._prepared(contender)]
        for number in range(rounds):
            turn = number % len(taking_part)
            for contender in taking_part[turn:] + taking_part[:turn]:
                await self._tried(contender, number)
        return self.measured

    async def profile(self) -> str:
        """Where the time of our own drain goes."""
        ours = CONTENDERS[0]
        await self._fresh(ours)
        await self._child(ours, "put", self.count)
        await self.server.settle()
        return str((await self._child(ours, "profile", self.count))["profile"])

    async def _prepared(self, contender: Contender) -> bool:
        template = f"template_{contender.file}"
        await self.server.create(template)
        try:
            await self._child(contender, "prepare", 0, database=template)
        except Wrong as wrong:
            self.measured.faults.append(f"{contender.name} takes no part: {wrong}")
            return False
        return True

    async def _tried(self, contender: Contender, number: int) -> None:
        started = time.monotonic()
        try:
            await self._many(contender)
            await self._few(contender)
        except Wrong as wrong:
            self.measured.faults.append(f"round {number + 1}, {contender.name}: {wrong}")
        print(f"round {number + 1}  {contender.name:26} {time.monotonic() - started:6.1f} s", flush=True)  # noqa: T201

    async def _many(self, contender: Contender) -> None:
        """(a), (b) and (e): a bulk put-in, its drain, and what a process needs that has nothing to do."""
        await self._fresh(contender)
        put = await self._child(contender, "put", self.count)
        await self.server.settle()
        drained = await self._child(contender, "drain", self.count)
        await self._check(contender, drained, self.count)
        self._note(contender, "put", self.count / put["seconds"])
        self._note(contender, "drain", self.count / drained["seconds"])
        self._note(contender, "cpu", drained["cpu"] / self.count * 1e6)
        self._note(contender, "peak", drained["peak_kib"] / 1024)
        await self._fresh(contender)
        idle = await self._child(contender, "drain", 0)
        self._note(contender, "idle peak", idle["peak_kib"] / 1024)

    async def _few(self, contender: Contender) -> None:
        """(c) and (d): from the start of a process to its exit."""
        await self._fresh(contender)
        async with delayed(self.server.socket, each_way=ADDED / 2) as far:
            for where, port in (("", None), (" far", far)):
                for count in (0, FEW):
                    if count:
                        await self._child(contender, "put", count)
                    before = await self.server.transactions()
                    started = time.perf_counter()
                    done = await self._child(contender, "once", count, port=port)
                    seconds = time.perf_counter() - started
                    after = await self.server.transactions()
                    await self._check(contender, done, count)
                    self._note(contender, f"{count} jobs{where}", seconds * 1000)
                    if count and not where:
                        self._note(contender, "commits", after[0] - before[0])
                        self._note(contender, "writing", after[1] - before[1])

    async def _fresh(self, contender: Contender) -> None:
        await self.server.create(DATABASE, template=f"template_{contender.file}")
        await self.server.settle()

    async def _check(self, contender: Contender, done: Mapping[str, Any], count: int) -> None:
        left = await self.server.count(contender.left)
        if done["ran"] != count or left:
            raise Wrong(f"{done['ran']} of {count} jobs ran, {left} are not finished")

    def _note(self, contender: Contender, measure: str, figure: float) -> None:
        self.measured.figures[contender.name][measure].append(figure)

    async def _child(
        self, contender: Contender, action: str, count: int, *, database: str = DATABASE, port: int | None = None
    ) -> dict[str, Any]:
        command = self.commands[contender.where]
        if contender.where == "node":
            command = [*command, str(ROOT / "bench" / "queues" / "adapters" / f"{contender.file}.mjs"), action]
        else:
            command = [*command, "-m", "bench.queues.child", contender.file, action]
        process = await asyncio.create_subprocess_exec(
            *command,
            str(count),
            cwd=FOLDER / "node" if contender.where == "node" else ROOT,
            env={"PATH": os.environ["PATH"], **self.server.environ(database, port=port)},  # noqa: TID251
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        told, errors = await process.communicate(f"{self.server.url(database, port=port)}\n".encode())
        if process.returncode:
            last = errors.decode(errors="replace").strip().splitlines()[-12:]
            raise Wrong(f"{action} ended with {process.returncode}:\n" + "\n".join(last))
        answer: dict[str, Any] = json.loads(told.decode().strip().splitlines()[-1])
        return answer
