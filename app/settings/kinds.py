"""Sources and channels: what stands under them is checked by the `Options` of their kind."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app import plugins
from app.settings.model import INBOX, ChannelSettings, SourceSettings
from app.settings.names import check_name
from app.settings.options import read_options
from app.settings.problems import choose, shown
from app.settings.sections import minutes
from app.settings.watch import OWN_KEYS, read_identity, read_watch, told_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from app.settings.model import OnUncertain
    from app.settings.table import Table

SOURCES = "app.sources"
CHANNELS = "app.channels"

DEFAULT_MINUTES = 30

LINE_NOTIFY_HOSTS = ("notify-api.line.me", "notify-bot.line.me")
LINE_NOTIFY_KINDS = frozenset({"linenotify", "notify"})
LINE_NOTIFY_ENDED = (
    'LINE Notify ended on 31 March 2025 and takes no messages; use kind = "line" with the token of a LINE Official '
    "Account (Messaging API)"
)


def read_sources(root: Table, *, deny_private: bool = False) -> dict[str, SourceSettings]:
    """Those without a problem. `deny_private`: what holds for a source that does not say."""
    sources: dict[str, SourceSettings] = {}
    for table in root.tables("sources"):
        check_name(table)
        every = minutes(table, "every_minutes", DEFAULT_MINUTES)
        guarded = table.flag("deny_private", default=deny_private)
        module = _module(table, SOURCES)
        kind_has_keys = module is None or "key" in module.Options.model_fields
        apart, watch = read_identity(table, kind_has_keys=kind_has_keys), read_watch(table)
        own = ("kind", "every_minutes", "deny_private", *OWN_KEYS, *(() if kind_has_keys else ("key",)))
        options = read_options(table, module.Options, own=own) if module else None
        if options is not None:
            name, kind = table.keys[-1], str(table.values["kind"])
            identity = f"{getattr(options, 'identity', '')}{told_apart(apart)}"
            fingerprint = fingerprint_of(kind, str(table.values.get("url", "")), identity)
            sources[name] = SourceSettings(
                name=name,
                kind=kind,
                every=every,
                options=options,
                fingerprint=fingerprint,
                deny_private=guarded,
                identity=apart,
                watch=watch,
            )
    return sources


def read_channels(root: Table) -> dict[str, ChannelSettings]:
    """Those without a problem, and the inbox, which need not be written."""
    channels: dict[str, ChannelSettings] = {}
    for table in root.tables("channels"):
        check_name(table)
        name, kind = table.keys[-1], table.values.get("kind")
        if name == INBOX and kind != INBOX:
            table.problems.add(table.where(), f"the channel {INBOX} is built in; give this one another name")
        module = _module(table, CHANNELS)
        on_uncertain = _on_uncertain(table)
        options = read_options(table, module.Options, own=("kind", "on_uncertain")) if module else None
        if options is not None:
            channels[name] = ChannelSettings(name=name, kind=str(kind), options=options, on_uncertain=on_uncertain)
    if INBOX not in channels:
        options = plugins.load(CHANNELS, INBOX).Options()
        channels[INBOX] = ChannelSettings(name=INBOX, kind=INBOX, options=options)
    return channels


def needs_address(channel: ChannelSettings) -> bool:
    """Whether its recipients must say `to`. A kind whose own options say where messages go has `ADDRESSED = False`."""
    return bool(getattr(plugins.load(CHANNELS, channel.kind), "ADDRESSED", channel.kind != INBOX))


def address_check(channel: ChannelSettings) -> Callable[[str], str | None] | None:
    """What tells of a recipient's `to` on this channel why it cannot be right; None where nothing does.

    A channel with a `base_url` of its own speaks to a proxy or a stand-in, whose addresses may look otherwise.
    """
    if "base_url" in channel.options.model_fields_set:
        return None
    check: Callable[[str], str | None] | None = getattr(plugins.load(CHANNELS, channel.kind), "check_address", None)
    return check


def fields_of(sources: Mapping[str, SourceSettings]) -> dict[str, Collection[str] | None]:
    """The names that each source's items have among their fields; None where they are not configured."""
    named = {name: getattr(source.options, "fields", None) for name, source in sources.items()}
    return {name: list(fields) if isinstance(fields, Mapping) else None for name, fields in named.items()}


def fingerprint_of(kind: str, url: str, identity: str = "") -> str:
    """SHA-256, hexadecimal, of what makes a source the one it is: the url itself may hold a secret.

    `identity` is what else its kind tells items apart by, where it has a choice.
    """
    more = f"\n{identity}" if identity else ""
    return hashlib.sha256(f"{kind}\n{url.strip()}{more}".encode()).hexdigest()


def _on_uncertain(table: Table) -> OnUncertain:
    given = table.text("on_uncertain", example="resend")
    if given is None or given == "resend":
        return "resend"
    if given != "drop":
        table.tell(
            "on_uncertain", f"must be resend or drop, not {shown(given)}; {choose(given, ('resend', 'drop'), none='')}"
        )
    return "drop"


def _module(table: Table, package: str) -> Any | None:
    """The module of the table's kind; None where there is none, or nothing can be made of it."""
    there = plugins.kinds(package)
    kind = table.text("kind", example=there[0] if there else "feed")
    if _is_line_notify(table, kind):
        table.problems.add(table.where(), LINE_NOTIFY_ENDED)
        return None
    if not table.has("kind"):
        table.tell("kind", f"is missing; write one of the kinds there are: {', '.join(there)}")
    if kind is None:
        return None
    if kind not in there:
        told = choose(kind, there, none="there are none") if kind.isascii() else f"there are {', '.join(there)}"
        table.tell("kind", f"there is no kind {shown(kind)}; {told}")
        return None
    return plugins.load(package, kind)


def _is_line_notify(table: Table, kind: str | None) -> bool:
    named = (kind or "").lower().replace("_", "").replace("-", "").replace(" ", "") in LINE_NOTIFY_KINDS
    return named or any(host in text.lower() for text in texts_in(table.values) for host in LINE_NOTIFY_HOSTS)


def texts_in(value: object) -> Iterator[str]:
    """Every text in a value, at any depth."""
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from texts_in(inner)
        case list():
            for inner in value:
                yield from texts_in(inner)
