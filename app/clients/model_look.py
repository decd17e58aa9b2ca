"""A look at a language model's address: whether it is one, knows the token, and has the model. Nothing is written.

Source: platform.openai.com/docs/api-reference/models/list; llama.cpp, Ollama, vLLM and most sellers have it too.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from app.clients.http import failure_of, get, host_of, json_of
from app.clients.reasons import finding_of
from app.domain.findings import Finding, fail, ok, skipped, warn

if TYPE_CHECKING:
    import httpx

UNLISTED = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
"""Some sellers have no list."""

ADVICE_BY_STATUS = {
    401: "put a valid `token` into [chats.….model]",
    403: "the `token` of [chats.….model] may not do that: look at its rights where it was made",
}


async def look(http: httpx.AsyncClient, *, url: str, token: str | None, model: str) -> list[Finding]:
    """Ask for the list of models.

    Raises:
        Failure: nobody was reached.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    response = await get(http, f"{url.rstrip('/')}/models", headers=headers)
    host = host_of(url)
    if response.status_code in UNLISTED:
        told = f"{host} answered {response.status_code} when asked for its models: it has no list, or is elsewhere"
        return [skipped(told, "see that `url` ends before /chat/completions")]
    if not response.is_success:
        advice = ADVICE_BY_STATUS.get(response.status_code)
        # Not its own words: some repeat the token.
        told = f"{host} answered {response.status_code}"
        return [fail(told, advice)] if advice else [finding_of(failure_of(response))]
    names = _names(json_of(response))
    if not names:
        return [ok(f"{host} answers, and does not say which models it has")]
    if model in names:
        return [ok(f'{host} has "{model}"')]
    return [warn(f'{host} does not list "{model}"', "unless it is another name of one, check `model`")]


def _names(told: dict[str, Any]) -> set[str]:
    listed = told.get("data")
    models = listed if isinstance(listed, list) else []
    return {one["id"] for one in models if isinstance(one, dict) and isinstance(one.get("id"), str)}
