"""A language model behind an OpenAI-compatible address.

Source: platform.openai.com/docs/api-reference/chat; llama.cpp, Ollama, vLLM and most sellers answer alike.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.clients.http import failure_of, host_of, json_of, post
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

ADVICE_BY_STATUS = {
    401: "its `token` is wrong",
    403: "its `token` may not use this model",
    404: "there is no such `model`, or no such address: `url` ends before /chat/completions",
}

MOST_TOKENS = 10**9
"""Of one answer; more is no count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model has made."""

    text: str

    tokens: int
    """Read and written, as the model counts them; an estimate where it does not say."""


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
    """What the model says next.

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
        TemporaryFailure: it cannot answer now, or did not in time, or said nothing.
        PermanentFailure: it will not answer to this.
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
    if not response.is_success:
        raise _failure(response)
    return _completion(json_of(response), host_of(url), messages)


def _failure(response: httpx.Response) -> Exception:
    failure = failure_of(response)
    if isinstance(failure, TemporaryFailure):
        # Its limit is nobody else's: it must not hold back the channel that the reply goes to.
        return TemporaryFailure(str(failure), retry_after=failure.retry_after)
    advice = ADVICE_BY_STATUS.get(response.status_code)
    return PermanentFailure(f"{failure}; {advice}" if advice else str(failure))


def _completion(told: Mapping[str, Any], host: str, messages: Sequence[Mapping[str, str]]) -> Completion:
    text = _text(told).strip()
    if not text:
        raise TemporaryFailure(f"{host} answered without a text")
    usage = told.get("usage")
    counted = usage.get("total_tokens") if isinstance(usage, dict) else None
    if not isinstance(counted, int) or isinstance(counted, bool) or not 0 <= counted <= MOST_TOKENS:
        counted = (sum(len(message["content"]) for message in messages) + len(text)) // 3  # no limit must be free
    return Completion(text=text, tokens=counted)


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
