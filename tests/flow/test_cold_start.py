"""A host that slept: what a process costs before its first answers, in imports, round trips and statements."""

from __future__ import annotations

import json
import sys
from textwrap import dedent

from tests.fakes.proxy import Proxy
from tests.flow.service import Service, free_port, until
from tests.flow.stage import Stage

# Longer lists make every start of every host slower: whatever is not needed before the first answer is imported where
# it is used. What a `python -c pass` has anyway is not counted.
BY_A_LOOK_AT_THE_PROCESS = frozenset({"app", "click", "h11", "multiprocessing", "uvicorn"})
BY_A_TICK = BY_A_LOOK_AT_THE_PROCESS | {
    *("annotated_doc", "annotated_types", "anyio", "asyncpg", "certifi", "cronsim", "fastapi", "httpcore", "httpx"),
    *("idna", "opentelemetry", "pydantic", "pydantic_core", "regex", "starlette", "typing_extensions"),
    *("typing_inspection", "wakebell_handlers"),
    *("pygments", "rich"),  # by httpx, for a command of its own, where something else has brought them
}
NOT_BY_A_TICK = ("app.api.webhooks", "app.drain", "app.handlers.", "app.pages", "app.chats.", "app.stores.alchemy")
HEAVY_OF_PYTHON = frozenset({"ctypes", "multiprocessing", "sqlite3", "tkinter", "unittest", "xml"})

TELLING = """
    import atexit, json, sys
    had = set(sys.modules)
    atexit.register(lambda: print("MODULES", json.dumps(sorted(set(sys.modules) - had)), flush=True))
    from app.cli import main
    {also}
    sys.exit(main(["serve"]))
"""

UNLOADED = "from app import front; front.LEAVING_SECONDS = 0; front.Front._work = lambda self, loop: None"
"""As if the rest took for ever."""


async def started(stage: Stage, *, also: str = "", **environ: str) -> Service:
    """A process of its own that tells at its end what it has imported."""
    port = free_port()
    script = dedent(TELLING).format(also=also)
    service = Service(stage.program(script, HOST="127.0.0.1", PORT=str(port), **environ), port)
    await until(service._listens, told="the service listens")
    assert (await service.ask("GET", "/healthz")).status_code == 200
    return service


async def imported(service: Service) -> list[str]:
    """Its last words. It ends in order."""
    service.term()
    assert await service.ended() == 0
    [line] = [line for line in service.log.splitlines() if line.startswith("MODULES ")]
    found: list[str] = json.loads(line.removeprefix("MODULES "))
    return found


def packages(modules: list[str]) -> set[str]:
    """Those that somebody has to install, and those of Python that take long."""
    names = {name.partition(".")[0] for name in modules}
    return {
        name
        for name in names - {"__mp_main__"}
        if name in HEAVY_OF_PYTHON or (name not in sys.stdlib_module_names and not name.startswith("_"))
        if "__mypyc" not in name and name not in {"cython_runtime", "sitecustomize", "distutils"}
    }


async def test_a_port_is_answered_at_with_hardly_anything_imported(stage: Stage):
    service = await started(stage, also=UNLOADED)

    new = packages(await imported(service)) - BY_A_LOOK_AT_THE_PROCESS

    assert new == set(), "every start pays for these before /healthz: import them where they are used"


async def test_a_tick_with_nothing_to_do_costs_a_new_process_little(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    await (await stage.serve()).tick()
    async with Proxy(stage.database_url) as proxy:
        service = await started(stage, DATABASE_URL=proxy.url)
        assert proxy.connections == 0

        summary = await service.tick()
        modules = await imported(service)

    assert (summary["status"], summary["sources"]["due"]) == ("ok", 0)
    [talk] = proxy.talks
    assert talk.round_trips <= 12
    assert talk.statements <= 5
    assert packages(modules) - BY_A_TICK == set(), "every tick after a sleep pays for these"
    assert [name for name in modules if name.startswith(NOT_BY_A_TICK)] == []


async def test_importing_the_service_imports_nothing_else(stage: Stage):
    script = "import sys; had = set(sys.modules); import app; print(sorted(set(sys.modules) - had))"

    process = stage.program(script)

    assert await process.ended() == 0
    assert process.log.strip() == "['app']"
