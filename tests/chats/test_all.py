"""What every chat provider keeps, whoever wrote it: files found in the folder are taken without being named here."""

from __future__ import annotations

import inspect
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from app import plugins
from app.domain.chats import Malformed
from app.domain.errors import SignatureError

KINDS = plugins.kinds("app.chats")

OPTIONS_BY_KIND = {
    "line": {"secret": "a-channel-secret", "channel": "line"},
    "messenger": {"secret": "an-app-secret", "verify_token": "a-word", "token": "EAAtoken"},
    "telegram": {"secret": "a-secret-token", "channel": "telegram"},
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def module(kind: str) -> Any:
    return plugins.load("app.chats", kind)


@pytest.fixture
def options(kind: str, module: Any) -> Any:
    return module.Options.model_validate(OPTIONS_BY_KIND[kind])


def test_options_are_frozen_and_refuse_what_they_do_not_know(module: Any):
    assert issubclass(module.Options, BaseModel)
    assert module.Options.model_config["extra"] == "forbid"
    assert module.Options.model_config["frozen"] is True
    assert module.Options.model_config["hide_input_in_errors"] is True


def test_options_hide_what_was_wrong(kind: str, module: Any):
    with pytest.raises(ValidationError) as caught:
        module.Options.model_validate(OPTIONS_BY_KIND[kind] | {"no_such_key": "hunter2"})

    assert "no_such_key" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_options_show_no_secret(options: Any):
    assert not any(secret in repr(options) for secret in ("a-channel-secret", "an-app-secret", "a-word", "a-secret"))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("signed", ["headers"]),
        ("verify", ["raw", "headers", "options"]),
        ("parse", ["raw", "options"]),
        ("challenge", ["query", "options"]),
        ("reply", ["answer", "account", "http"]),
        ("typing", ["address", "account", "http"]),
        ("probe", ["door", "account", "http"]),
    ],
)
def test_it_has_what_a_chat_has(module: Any, name: str, parameters: list[str]):
    found = getattr(module, name)

    assert list(inspect.signature(found).parameters) == parameters
    assert inspect.iscoroutinefunction(found) == (name in {"reply", "typing", "probe"})


def test_it_says_how_it_counts_and_how_long_it_waits(module: Any):
    assert module.length("😀") >= 1
    assert module.TEXT_LIMIT >= 4
    assert module.MOST_TEXTS >= 1
    assert timedelta(0) < module.WITHIN <= timedelta(minutes=1)


def test_it_answers_through_a_channel_or_by_itself(module: Any):
    fields = module.Options.model_fields

    if module.CHANNEL is None:
        assert {"token", "base_url"} <= set(fields)
    else:
        assert "channel" in fields
        assert {"token", "base_url"} <= set(plugins.load("app.channels", module.CHANNEL).Options.model_fields)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=60), value=st.text(max_size=40))
def test_any_bytes_are_a_delivery_or_a_refusal_of_ours(module: Any, options: Any, raw: bytes, value: str):
    with pytest.raises(SignatureError):
        module.verify(raw, {"x-line-signature": value, "x-hub-signature-256": value}, options)
    with suppress(Malformed):
        module.parse(raw, options)


def test_a_nesting_without_end_is_a_refusal_of_ours(module: Any, options: Any):
    for depth in (500, 900, 990, 100_000):
        inner = b"[" * depth + b"]" * depth
        raw = b'{"events":[{"x":%s}],"object":"page","entry":[{"messaging":[{"x":%s}]}],"update_id":1,"x":%s}'
        with suppress(Malformed):
            module.parse(raw % (inner, inner, inner), options)


def test_listing_the_kinds_imports_none_of_them():
    code = "import sys; from app import plugins; plugins.kinds('app.chats'); print('app.chats.line' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
