"""The door that describes the doors: OpenAPI, put together when somebody asks for it and not before."""

from __future__ import annotations

import warnings
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request, routing
from fastapi.responses import JSONResponse

from app import __version__
from app.api.auth import api_token, cron_token
from app.api.bodies import json_object, raw_body
from app.api.deps import the_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import FastAPI
    from fastapi.dependencies.models import Dependant

router = APIRouter(prefix="/api", dependencies=[Depends(api_token)])

ABOUT = "Tokens go into `Authorization: Bearer …`. Errors are problem documents (RFC 9457). Times are UTC."

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}

TOKENS: dict[Callable[..., Any], tuple[str, tuple[int, ...]]] = {
    api_token: ("API_TOKEN", (401, 503)),
    cron_token: ("CRON_SECRET", (401,)),
}
"""What lets in: the token's name, and how it refuses."""

READ_BODY = (400, 408, 413, 415)
"""How a body is refused whatever is in it."""

REFUSED = 422


@router.get("/openapi.json")
async def describe(request: Request) -> JSONResponse:
    """This description. It names the job types of this service and holds no secret."""
    app: FastAPI = request.app
    if app.openapi_schema is None:
        app.openapi_schema = described(app)
    return JSONResponse(app.openapi_schema)


def described(app: FastAPI) -> dict[str, Any]:
    """The whole description."""
    from fastapi.openapi.utils import get_openapi  # noqa: PLC0415 - what few ask for costs no start anything

    from app.api.answers import SCHEMAS  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a route with GET and HEAD is one operation for us
        told = get_openapi(title="Wakebell", version=__version__, description=ABOUT, routes=app.routes)
    for route in _routes(app):
        path = told["paths"][route.path_format]
        path.pop("head", None)
        for method in route.methods - {"HEAD"}:
            _complete(path[method.lower()], route, method)
    told["components"] = {
        "schemas": {**SCHEMAS, "NewJob": _of_these_types(SCHEMAS["NewJob"], app)},
        "securitySchemes": {name: {"type": "http", "scheme": "bearer"} for name, _ in TOKENS.values()},
    }
    body = told["paths"]["/api/jobs"]["post"]["requestBody"]["content"]["application/json"]
    body["schema"] = _of_these_types(body["schema"], app)
    return told


def _routes(app: FastAPI) -> list[Any]:
    """Each with its whole path and all that it depends on: releases of FastAPI differ in where they keep both."""
    contexts = getattr(routing, "iter_route_contexts", iter)(app.routes)
    return [one for one in contexts if isinstance(getattr(one, "original_route", one), routing.APIRoute)]


def _of_these_types(schema: dict[str, Any], app: FastAPI) -> dict[str, Any]:
    """A new job's schema with the types that this process takes."""
    types = sorted(app.state.service.handlers)
    kind = {"type": "string", "enum": types} if types else {"type": "string"}
    return {**schema, "properties": {**schema["properties"], "type": kind}}


def _complete(operation: dict[str, Any], route: Any, method: str) -> None:
    """What FastAPI cannot know of an operation: what its answers hold, and how it refuses."""
    from app.api.answers import DOORS, Door  # noqa: PLC0415

    door = DOORS.get((method, route.path_format), Door())
    needed = set(_calls(route.dependant))
    reads = any(_reads_body(call) for call in needed)
    operation["operationId"] = route.name
    operation["responses"] = {
        **{
            str(status): _problem(status) for status in sorted({*_refusals(route, needed, reads=reads), *door.problems})
        },
        **{str(status): _answer(status, schema, door.media_type) for status, schema in door.answers.items()},
    }
    if reads:
        schema = {"type": "object"} if door.takes is None else door.takes
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if door.headers:
        given = [
            {"name": name, "in": "header", "required": False, "schema": {"type": "string"}} for name in door.headers
        ]
        operation["parameters"] = [*operation.get("parameters", []), *given]
    tokens = [name for call, (name, _) in TOKENS.items() if call in needed]
    if tokens:
        operation["security"] = [{name: []} for name in tokens]


def _refusals(route: Any, needed: set[Callable[..., Any]], *, reads: bool) -> Iterator[int]:
    """How it refuses, by what it needs."""
    for call, (_, statuses) in TOKENS.items():
        if call in needed:
            yield from statuses
    if the_stores in needed:
        yield HTTPStatus.SERVICE_UNAVAILABLE
    if reads:
        yield from READ_BODY
    if any(json_object.__name__ in _names(call) for call in needed) or _is_read_closely(route.dependant):
        yield REFUSED


def _calls(dependant: Dependant) -> Iterator[Callable[..., Any]]:
    """The endpoint, and all that it depends on."""
    if dependant.call is not None:
        yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)


def _reads_body(call: Callable[..., Any]) -> bool:
    return bool({json_object.__name__, raw_body.__name__} & set(_names(call)))


def _names(call: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function calls."""
    code = getattr(call, "__code__", None)
    return () if code is None else code.co_names


def _is_read_closely(dependant: Dependant) -> bool:
    """Whether it has parameters that can be wrong: of the query, or of a path where a number belongs."""
    numbers = [one for one in dependant.path_params if one.field_info.annotation is not str]
    return bool(dependant.query_params or numbers) or any(map(_is_read_closely, dependant.dependencies))


def _problem(status: int) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": PROBLEM}


def _answer(status: int, schema: dict[str, Any] | None, media_type: str) -> dict[str, Any]:
    told: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    return told if schema is None else {**told, "content": {media_type: {"schema": schema}}}
