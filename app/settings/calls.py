"""`[call_url]`: where jobs of that type may go, and by what secret they are signed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.domain import signatures
from app.domain.calls import HTTPS, OF_THE_CALL, Calls, Place, canonical
from app.settings.problems import shown
from app.settings.table import Table, has_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_SECRETS = 2
"""The one that counts, and while it is changed its follower."""

WRONG_PLACE = "must be a host such as api.example.com, api.example.com:8443 or *.example.com, not {what}; write it so"
WRONG_PRIVATE = "must be a host such as localhost:3000 or 10.0.0.5, without a *, not {what}; write it so"
TOO_WIDE = "would be half of the internet: after *. a name must have a dot; write *.example.com"

HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[0-9a-f:]+")
"""As DNS has it, or a number."""

MOST_PORT = 65535

HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


def read_calls(root: Table) -> Calls | None:
    """None: there is no such section, and nothing is called."""
    table = root.table("call_url")
    if not isinstance(root.values.get("call_url"), dict):
        return None
    places = (*_places(table, "hosts", private=False), *_places(table, "private_hosts", private=True))
    if not places:
        if not (table.has("hosts") or table.has("private_hosts")):
            table.tell("hosts", 'is missing; write the hosts that may be called: hosts = ["api.example.com"]')
        elif not any(table.values.get(key) for key in ("hosts", "private_hosts")):
            table.tell("hosts", "is empty, so that nothing could be called; name a host, or remove the section")
    calls = Calls(places=places, keys=_keys(table), headers=tuple(_headers(table.table("headers"), places)))
    table.close()
    return calls


def _places(table: Table, key: str, *, private: bool) -> Iterator[Place]:
    example = "localhost:3000" if private else "api.example.com"
    for written in table.texts(key, example=example) or ():
        place = _place(written, private=private)
        if isinstance(place, Place):
            yield place
        else:
            table.tell(key, place)


def _place(written: str, *, private: bool) -> Place | str:
    """What is meant, or why it is none."""
    from httpx import URL, InvalidURL  # noqa: PLC0415 - so that names are read here as they are when they are called

    wrong = (WRONG_PRIVATE if private else WRONG_PLACE).format(what=shown(written))
    name = written.strip().removeprefix("*.")
    wide = name != written.strip()
    try:
        url = URL(f"https://{name}")
    except (InvalidURL, UnicodeError, ValueError):
        return wrong
    host, port = canonical(url.raw_host.decode("ascii").lower()), url.port
    more = url.path != "/" or any(letter in name for letter in "@?#") or (wide and private)
    if more or not HOST.fullmatch(host) or not (port is None or 0 < port <= MOST_PORT):
        return wrong
    if port is None and name.endswith(f":{HTTPS}"):
        port = HTTPS
    if wide and "." not in host:
        return TOO_WIDE
    return Place(host=f"*.{host}" if wide else host, port=port, private=private)


def _keys(table: Table) -> tuple[bytes, ...]:
    if isinstance(table.values.get("secret"), list):
        secrets = table.texts("secret", example="env:CALL_URL_SECRET") or ()
        if not 1 <= len(secrets) <= MOST_SECRETS:
            table.tell("secret", "must be one text, or a list of the new one and the one before while you change it")
    else:
        one = table.text("secret", example="env:CALL_URL_SECRET")
        secrets = () if one is None else (one,)
        if not table.has("secret"):
            make = "printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\""
            table.tell("secret", f'is missing; write secret = "env:CALL_URL_SECRET", and make one with: {make}')
    return tuple(key for secret in secrets if (key := _key(table, secret)))


def _key(table: Table, secret: str) -> bytes | None:
    try:
        return signatures.key_of(secret.strip())
    except ValueError as error:
        table.tell("secret", f"{error}; write another")
        return None


def _headers(table: Table, places: tuple[Place, ...]) -> Iterator[tuple[Place, Mapping[str, str]]]:
    for written in table.values:
        given = table.table(written)
        place = _place(written, private=True)  # true of the header, whether or not it is of the place
        if isinstance(place, str):
            table.tell(written, "must be one host as it stands in hosts, and without a *; write it so")
        elif not any(other.takes(place.host, place.port, tls=tls) for other in places for tls in (True, False)):
            table.tell(written, "is none of the hosts that may be called; write it into hosts as well, or remove it")
        else:
            yield place, {name.lower(): value for name, value in _values(given)}


def _values(table: Table) -> Iterator[tuple[str, str]]:
    for name in table.values:
        value = table.text(name, example="env:NAME")
        if value is None:
            continue
        if not HEADER.fullmatch(name):
            table.tell(name, "is no name of a header; write another")
        elif name.lower() in OF_THE_CALL:
            table.tell(name, "is set by the call itself; remove it")
        elif not value.isascii() or has_control(value):
            table.tell(name, "holds characters that a header cannot have; write ASCII")
        else:
            yield name, value.strip()
