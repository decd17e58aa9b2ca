"""Every secret that the service has been told, wherever it stands: the environment, `env:NAME`, options of kinds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretBytes, SecretStr

from app.domain.masking import Mask, credentials
from app.settings.problems import FromEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from app.settings.chats import ChatSettings
    from app.settings.model import ChannelSettings, Environment, SourceSettings


SCHEMES = frozenset({"basic", "bearer", "token", "bot", "key", "apikey"})
"""What a header's value begins with when the secret of it is the next word: another text is one secret as a whole."""


def mask_of(
    environment: Environment,
    values: Mapping[str, Any],
    kinds: Iterable[SourceSettings | ChannelSettings | ChatSettings],
) -> Mask:
    """Takes them out of texts. `values` is the configuration file's content, with the environment's texts put in."""
    found = {*_of_environment(environment), *_from_environment(values)}
    for kind in kinds:
        found.update(_of_options(kind.options))
    return Mask(found)


def secrets_of(
    environment: Environment,
    values: Mapping[str, Any],
    kinds: Iterable[SourceSettings | ChannelSettings | ChatSettings],
) -> Mask:
    """Takes those alone out by which somebody proves who they are: addresses and ids may well be told to people."""
    found = {*_of_environment(environment), *_from_environment(values.get("hooks"))}
    for kind in kinds:
        found.update(_of_options(kind.options))
        model = getattr(kind, "model", None)
        if model is not None and model.token is not None:
            found.add(model.token)
    return Mask(found)


def _of_environment(environment: Environment) -> Iterator[str]:
    """The fields that do not show in its repr; of addresses also the password alone, as it is written and as it is."""
    for field in fields(environment):
        value = getattr(environment, field.name)
        for secret in value if isinstance(value, tuple) else (value,):
            if not field.repr and secret is not None:
                yield from _with_password(secret.decode("utf-8", "replace") if isinstance(secret, bytes) else secret)


def _with_password(secret: str) -> Iterator[str]:
    yield secret
    try:
        password = urlsplit(secret).password
    except ValueError:  # no address after all
        return
    if password:
        yield password
        yield unquote(password)


def _from_environment(value: Any) -> Iterator[str]:
    match value:
        case FromEnvironment():
            for secret in credentials(value) if value.partition(" ")[0].lower() in SCHEMES else (value,):
                yield from _with_password(str(secret))
        case dict():
            for inner in value.values():
                yield from _from_environment(inner)
        case list():
            for inner in value:
                yield from _from_environment(inner)


def _of_options(value: Any) -> Iterator[str]:
    match value:
        case SecretStr():
            yield from _with_password(value.get_secret_value())
        case SecretBytes():
            yield value.get_secret_value().decode("utf-8", "replace")
        case BaseModel():
            for name in type(value).model_fields:
                yield from _of_options(getattr(value, name))
        case dict():
            for inner in value.values():
                yield from _of_options(inner)
        case list() | tuple():
            for inner in value:
                yield from _of_options(inner)
