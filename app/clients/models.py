"""A language model behind an OpenAI-compatible address.

Source: platform.openai.com/docs/api-reference/chat; llama.cpp, Ollama, vLLM and most sellers answer alike.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from app.clients.http import failure_of, host_of, json_of, post
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.domain.errors import Failure

ADVICE_BY_STATUS = {
    401: "its `token` is wrong",
    403: "its `token` may not use this model",
    404: "there is no such `model`, or no such address: `url` ends before /chat/completions",
}

MOST_TOKENS = 10**9
"""Of one answer; more is no count."""

WORD = re.compile(r"[A-Za-z0-9_.-]{1,48}")
"""What an error is called. Whatever else its answer says may repeat what somebody has said, and is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model has answered."""

    text: str = ""

    tokens: int
    """Read and written, as the model counts them; of a text an estimate where it does not say, of an error none."""

    failure: Failure | None = None
    """Why there is no text: TemporaryFailure, or PermanentFailure where it will not answer to this."""


async def complete(
    http: httpx.AsyncClient,
    *,
    url: str,
    token: str | None,
    model: str,
    messages: Sequence[Mapping[str, str]],
    max_tokens: int,
    temperature: float | None,
    seconds: float,
) -> Completion:
    """What the model says next, or that it says nothing; that may have cost something as well.

    Args:
        http: a client.
        url: where `/chat/completions` lies beneath.
        token: sent as a bearer token; None where none is needed.
        model: its name there.
        messages: `role` and `content` each, the system's first.
        max_tokens: written, at most.
        temperature: None leaves it to the model.
        seconds: in which it must be done.

    Raises:
        TemporaryFailure: it cannot be reached, or did not answer in time.
        PermanentFailure: its address cannot be used.
    """
    asked: dict[str, Any] = {"model": model, "messages": list(messages), "max_tokens": max_tokens, "stream": False}
    if temperature is not None:
        asked["temperature"] = temperature
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        async with asyncio.timeout(seconds):
            content = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")
            response = await post(http, f"{url.rstrip('/')}/chat/completions", content=content, headers=headers)
    except TimeoutError:
        raise Unanswered(f"{host_of(url)} did not answer within {seconds:g} s") from None
    told = json_of(response)
    counted = _counted(told)
    if not response.is_success:
        return Completion(tokens=counted or 0, failure=_failure(response, told))
    text = _text(told).strip()
    if counted is None:
        counted = (sum(len(message["content"]) for message in messages) + len(text)) // 3  # no limit must be free
    silent = None if text else TemporaryFailure(f"{host_of(url)} answered without a text")
    return Completion(text=text, tokens=counted, failure=silent)


def _failure(response: httpx.Response, told: Mapping[str, Any]) -> Failure:
    bare = httpx.Response(response.status_code, headers=_without_length(response), request=response.request)
    failure, named = failure_of(bare), _named(told)
    words = f"{failure} ({named})" if named else str(failure)
    if isinstance(failure, TemporaryFailure):
        # Its limit is nobody else's: it must not hold back the channel that the reply goes to.
        return TemporaryFailure(words, retry_after=failure.retry_after)
    advice = ADVICE_BY_STATUS.get(response.status_code)
    return PermanentFailure(f"{words}; {advice}" if advice else words)


def _without_length(response: httpx.Response) -> httpx.Headers:
    headers = httpx.Headers(response.headers)
    headers.pop("Content-Length", None)
    return headers


def _named(told: Mapping[str, Any]) -> str:
    """The error's `type` and `code`, where they are short words: `insufficient_quota`."""
    error = told.get("error")
    given = error if isinstance(error, dict) else told
    words = [str(word) for word in (given.get("type"), given.get("code")) if isinstance(word, str | int)]
    return ", ".join(dict.fromkeys(word for word in words if WORD.fullmatch(word) and word != "error"))


def _counted(told: Mapping[str, Any]) -> int | None:
    usage = told.get("usage")
    counted = usage.get("total_tokens") if isinstance(usage, dict) else None
    known = isinstance(counted, int) and not isinstance(counted, bool) and 0 <= counted <= MOST_TOKENS
    return counted if known else None


def _text(told: Mapping[str, Any]) -> str:
    """Of the first choice: a text, or a list of parts of which some are texts."""
    choices = told.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""
