"""The description of the doors, held against what they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app import drain, main, tick
from app.api import bodies
from app.context import Service
from app.stores import database
from tests.api import stories
from tests.api.doors import API_TOKEN, NOWHERE
from tests.api.stories import Teller
from tests.hooks.senders import STANDARD

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
TRIES = hypothesis.settings(
    max_examples=3,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)

BODY = frozenset({400, 408, 413, 415, 422})


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@asynccontextmanager
async def doors(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(main.create_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://wakebell.example") as client:
        yield client


def described(service: Service) -> schemathesis.BaseSchema:
    """As a program gets it."""
    headers = {"Authorization": f"Bearer {API_TOKEN}"}
    return schemathesis.openapi.from_asgi("/api/openapi.json", main.create_app(service), headers=headers)


def operations(schema: schemathesis.BaseSchema) -> Iterator[Any]:
    for found in schema.get_all_operations():
        yield found.ok()  # type: ignore[union-attr] # what is wrong with a description is an error here


def promised(schema: schemathesis.BaseSchema) -> dict[tuple[str, str], set[int]]:
    """The statuses of each operation, by method and path."""
    return {
        (method.upper(), path): {int(status) for status in operation["responses"]}
        for path, found in schema.raw_schema["paths"].items()
        for method, operation in found.items()
    }


async def test_it_is_told_to_who_knows_the_token(tmp_path: Path):
    async with doors(stories.built(tmp_path, NOWHERE)) as client:
        stranger = await client.get("/api/openapi.json")
        program = await client.get("/api/openapi.json", headers={"Authorization": f"Bearer {API_TOKEN}"})

    assert (stranger.status_code, program.status_code) == (401, 200)
    told = program.json()
    assert told["openapi"].startswith("3.1")
    assert told["components"]["schemas"]["NewJob"]["properties"]["type"]["enum"] == ["anything"]
    assert not any(secret in program.text for secret in (API_TOKEN, stories.CRON_SECRET, STANDARD))


async def test_operations_have_names_of_their_own(tmp_path: Path):
    schema = described(stories.built(tmp_path, NOWHERE))

    names = [operation.definition.raw["operationId"] for operation in operations(schema)]

    assert sorted(names) == sorted(set(names))


def test_whatever_is_sent_the_answer_is_one_of_those_promised(tmp_path: Path, database_url: str):
    """By schemathesis: requests as the description allows them, and others. Few of each: it is always the same ones."""
    schema = described(stories.built(tmp_path, database_url))
    wrong: list[str] = []

    for operation in operations(schema):
        token = stories.CRON_SECRET if operation.path.startswith("/api/cron/") else API_TOKEN
        for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
            try:
                tried(operation, mode, {"Authorization": f"Bearer {token}"})
            except hypothesis.errors.Unsatisfiable:  # there is nothing in it that could be wrong
                continue
            except BaseExceptionGroup as failures:
                wrong += [f"{operation.label}: {failure}" for failure in failures.exceptions]

    assert wrong == []


def tried(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> None:
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    @TRIES
    def try_it(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    try_it()


async def test_every_answer_that_is_promised_is_met_and_is_as_described(
    tmp_path: Path, database_url: str, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    service = stories.built(tmp_path, database_url)
    schema = described(service)
    met: list[tuple[str, str, httpx.Response]] = []

    async with doors(service) as client:
        teller = Teller(client, sql, met)
        for story in stories.STORIES:
            await story(teller)
        monkeypatch.setattr(bodies, "BODY_SECONDS", 0.01)
        await nonsense(teller, promised(schema))
        await crashed(teller, monkeypatch)
    monkeypatch.setattr(database, "CONNECT_WAITS", ())
    await without(met, tmp_path, promised(schema))

    seen = defaultdict(set)
    for method, path, answer in met:
        seen[method, path].add(answer.status_code)
        answer.request._content = b""  # of a body that never came there is none
        schema[path][method].validate_response(answer)
    missing = {
        f"{method} {path}": statuses - seen[method, path] for (method, path), statuses in promised(schema).items()
    }
    assert {operation: sorted(statuses) for operation, statuses in missing.items() if statuses} == {}
    unpromised = {
        f"{method} {path}": statuses - promised(schema)[method, path] for (method, path), statuses in seen.items()
    }
    assert {operation: sorted(statuses) for operation, statuses in unpromised.items() if statuses} == {}


async def nonsense(teller: Teller, promised: dict[tuple[str, str], set[int]]) -> None:
    """What no door takes, and what only doors with a token refuse."""
    for (method, path), statuses in promised.items():
        for status in sorted(statuses & BODY):
            await teller.ask(f"{method} {path}", stories.path_of(path), **stories.nonsense(status))
        if 401 in statuses:
            await teller.ask(f"{method} {path}", stories.path_of(path), headers={"Authorization": "Bearer wrong"})


async def crashed(teller: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one time that a 500 is an answer."""

    async def crashing(*_: Any, **__: Any) -> None:
        raise KeyError

    monkeypatch.setattr(tick, "_plans", lambda: [crashing])
    await teller.ask("POST /api/cron/tick")
    monkeypatch.setattr(drain, "until_idle", crashing)
    await teller.ask("POST /api/cron/drain")


async def without(
    met: list[tuple[str, str, httpx.Response]], folder: Path, promised: dict[tuple[str, str], set[int]]
) -> None:
    """Without a token set, and without a database: each door that says 503 says so."""
    for environ in ({"API_TOKEN": ""}, {}):
        async with doors(stories.built(folder, NOWHERE, **environ)) as client:
            teller = Teller(client, None, met)
            for (method, path), statuses in promised.items():
                if 503 in statuses:
                    await teller.ask(f"{method} {path}", stories.path_of(path))
            await stories.hooks(teller)
            await stories.chats(teller)
