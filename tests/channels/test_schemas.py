"""What is sent to LINE and Discord, held against the descriptions of their APIs that they publish themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, ValidationError

from app import plugins
from app.domain.messages import Digest
from tests.channels.answers import Provider, digest
from tests.channels.test_all import HARD_TITLES, OPTIONS_BY_KIND

SCHEMAS = Path(__file__).parent / "schemas"

REQUESTS = {
    "discord": ("IncomingWebhookRequestPartial", {"username": "Gigs", "thread_id": "998877665544332211"}),
    "line": ("PushMessageRequest", {}),
}

DIGESTS = [
    digest("Dev", to="U1"),
    digest(*HARD_TITLES, link="https://e.test/1", to="U1"),
    digest(*["😀" * 280] * 100, to="U1"),
    Digest(note="Source board failed 3 times:\n\nSee /api/sources.", to="U1"),
]


def validator(kind: str, name: str) -> Draft202012Validator:
    """Of one schema among those of a provider."""
    described: dict[str, Any] = json.loads((SCHEMAS / f"{kind}.json").read_text("utf-8"))
    Draft202012Validator.check_schema(described)
    return Draft202012Validator(described | {"$ref": f"#/$defs/{name}"})


@pytest.mark.parametrize("kind", REQUESTS)
async def test_each_request_is_one_that_the_provider_describes(kind: str):
    schema, more = REQUESTS[kind]
    module = plugins.load("app.channels", kind)
    options = module.Options.model_validate(OPTIONS_BY_KIND[kind] | more)
    provider = Provider(httpx.Response(200, json={}))

    for given in DIGESTS:
        for body in module.compose(given, options):
            await provider.take(module, options, body.body)

    assert len(provider.requests) > len(DIGESTS)
    for request in provider.requests:
        validator(kind, schema).validate(json.loads(request.content))
        if "thread_id" in request.url.params:
            validator(kind, "SnowflakeType").validate(request.url.params["thread_id"])


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("line", {"to": "U1", "messages": []}),
        ("line", {"to": "U1", "messages": [{"type": "text", "text": "x"}] * 6}),
        ("discord", {"content": "x" * 2001}),
        ("discord", {"content": "x", "allowed_mentions": {"parse": ["all"]}}),
    ],
)
def test_what_the_provider_does_not_describe_is_noticed(kind: str, wrong: dict[str, Any]):
    with pytest.raises(ValidationError):
        validator(kind, REQUESTS[kind][0]).validate(wrong)
