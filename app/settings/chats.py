"""`[chats.x]` and `[memory]`: where people talk to the service, what answers, and how much of it is remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import plugins
from app.domain import chatwords
from app.domain.jobs import OWN_PREFIX
from app.settings.environment import is_address
from app.settings.memory import MemorySettings
from app.settings.names import check_name
from app.settings.options import read_options
from app.settings.problems import choose, shown
from app.settings.zones import language

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from app.settings.model import ChannelSettings, Language, Service
    from app.settings.table import Table

CHATS = "app.chats"
CHANNELS = "app.channels"

PATH = "/api/webhooks"
"""Where their doors are, each by its name."""

OWN_KEYS = (
    "kind",
    "job",
    "text",
    "language",
    "reply_budget_seconds",
    "pause_hours",
    "handover",
    "allow",
    "invitation",
    "model",
)
"""Of every chat, whatever its kind."""

TEXT_LENGTH = 1_000
SYSTEM_BYTES = 32_000
INVITATION_LENGTH = 8

MOST_BUDGET_SECONDS = 60
MOST_PAUSE_HOURS = 24 * 30
MOST_TOKENS = 10**9
MOST_REPLIES = 10_000
MOST_TURNS = 100
MOST_KEEP_DAYS = 3650

ENDPOINT = "/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """`[chats.x.model]`: a language model behind an OpenAI-compatible address."""

    url: str = field(repr=False)
    """Without a slash at its end; `/chat/completions` lies beneath."""

    model: str
    token: str | None = field(default=None, repr=False)

    system: str | None = field(default=None, repr=False)
    """What `system_file` held at the start: who the model is to be."""

    timeout: timedelta
    max_tokens: int = 600

    tokens_per_day: int = 100_000
    """Of one person, read and written."""

    replies_per_day: int = 100
    """To one person."""

    temperature: float | None = None
    """None: the model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """One `[chats.x]`."""

    name: str

    kind: str
    """The file name in `app/chats/`."""

    options: BaseModel = field(repr=False)
    """An `Options` of the kind: what its deliveries are verified and read with. Holds secrets."""

    account: BaseModel = field(repr=False)
    """What replies are sent with: the options of the channel that it names, or its own."""

    channel: str | None = None
    """The name of that channel, which is sure to be there."""

    job: str | None = None
    """The user's own job type that answers."""

    model: ModelSettings | None = None
    """What answers where no job does. None as well: the fixed `text`."""

    text: str
    """Said where neither is there, and where they fail."""

    language: Language

    reply_budget: timedelta = timedelta(seconds=15)
    """How long an answer may take to be made."""

    pause: timedelta = timedelta(hours=12)
    """How long the service is silent in a thread where a person has taken over."""

    handover: tuple[str, ...]
    """Words that ask for a person; none: nobody can."""

    allow: frozenset[str] | None = field(default=None, repr=False)
    """The provider's ids of those who may give commands; None: nobody is named. Everybody may talk."""

    invitation: str | None = field(default=None, repr=False)
    """Whoever says it may give commands from then on."""

    @property
    def commands(self) -> bool:
        """Whether anybody may give any."""
        return self.allow is not None or self.invitation is not None

    def allows(self, person: str | None, *, invited: bool) -> bool:
        """Whether that person may. `invited`: has said the invitation once, which counts as long as there is one."""
        named = self.allow is not None and person in self.allow
        return person is not None and (named or (invited and self.invitation is not None))

    @property
    def path(self) -> str:
        """Of its door, to be put behind the service's address."""
        return f"{PATH}/{self.name}"


def read_chats(
    root: Table, channels: Mapping[str, ChannelSettings], named: Collection[str], service: Service, folder: Path
) -> dict[str, ChatSettings]:
    """Those without a problem.

    Args:
        root: the whole file.
        channels: those without a problem.
        named: the names of all that are written.
        service: for what a chat does not say.
        folder: the configuration file's own.
    """
    chats: dict[str, ChatSettings] = {}
    for table in root.tables("chats"):
        check_name(table)
        common = _common(table, service, folder)
        module = _module(table)
        options = read_options(table, module.Options, own=OWN_KEYS) if module else None
        if module is None or options is None:
            continue
        name = getattr(options, "channel", None)
        account = options if module.CHANNEL is None else _account(table, str(name), module.CHANNEL, channels, named)
        if account is not None:
            kind, chat = str(table.values["kind"]), table.keys[-1]
            chats[chat] = ChatSettings(name=chat, kind=kind, options=options, account=account, channel=name, **common)
    return chats


def read_memory(table: Table) -> MemorySettings:
    """Days, of which fractions are allowed."""
    rule = "a number of days, more than 0 and at most ten years"
    memory = MemorySettings(
        turns=table.whole("turns", MemorySettings().turns, least=0, most=MOST_TURNS),
        keep=timedelta(days=table.number("keep_days", 7, least=1e-6, most=MOST_KEEP_DAYS, rule=rule)),
    )
    table.close()
    return memory


def _module(table: Table) -> Any | None:
    there = plugins.kinds(CHATS)
    kind = table.text("kind", example="line")
    if not table.has("kind"):
        table.tell("kind", f"is missing; write one of the kinds there are: {', '.join(there)}")
    if kind is None:
        return None
    if kind not in there:
        table.tell("kind", f"there is no kind {shown(kind)}; {choose(kind, there, none='there are none')}")
        return None
    return plugins.load(CHATS, kind)


def _account(
    table: Table, name: str, kind: str, channels: Mapping[str, ChannelSettings], named: Collection[str]
) -> BaseModel | None:
    """The options of the channel that the chat names; None where that one has a problem of its own, too."""
    fitting = [channel.name for channel in channels.values() if channel.kind == kind]
    missing = f'write a [channels.{kind}] with kind = "{kind}" and name it here'
    if name not in named and name not in channels:
        table.tell("channel", f"there is no channel {shown(name)}; {choose(name, fitting, none=missing)}")
        return None
    channel = channels.get(name)
    if channel is not None and channel.kind != kind:
        table.tell("channel", f"{shown(name)} is a channel of another kind; {choose(name, fitting, none=missing)}")
        return None
    return channel.options if channel is not None else None


def _common(table: Table, service: Service, folder: Path) -> dict[str, Any]:
    spoken = language(table, service.language)
    budget = timedelta(seconds=_number(table, "reply_budget_seconds", 15, least=1, most=MOST_BUDGET_SECONDS))
    words = table.texts("handover", example="human")
    allow = table.texts("allow", example="env:NAME")
    if table.values.get("allow") == []:
        table.tell("allow", "is empty, so that nobody could give commands; name some ids, or remove the line")
    model = table.table("model")
    return {
        "job": _job(table),
        "model": _model(model, budget, folder) if model.values or table.values.get("model") == {} else None,
        "text": _text(table, spoken),
        "language": spoken,
        "reply_budget": budget,
        "pause": timedelta(hours=_number(table, "pause_hours", 12, least=0, most=MOST_PAUSE_HOURS)),
        "handover": chatwords.handover_of(spoken) if words is None else tuple(dict.fromkeys(map(str, words))),
        "allow": None if allow is None else frozenset(map(str, allow)),
        "invitation": _invitation(table),
    }


def _job(table: Table) -> str | None:
    job = table.text("job", example="answer_person")
    if job is None:
        return None
    if table.has("model"):
        table.tell("job", "stands beside a [model]; remove one of the two")
    if job.startswith(OWN_PREFIX) or job in plugins.kinds("app.handlers"):
        table.tell("job", f"{shown(job)} is one of the service's own; write a handler of yours and its name here")
    return str(job)


def _text(table: Table, spoken: str) -> str:
    text = table.lines("text", example="Thank you, we will answer soon.")
    if text is not None and len(text) > TEXT_LENGTH:
        table.tell("text", f"is longer than {TEXT_LENGTH} characters; write a shorter one")
    return chatwords.words_of(spoken).polite if text is None else str(text).strip()


def _invitation(table: Table) -> str | None:
    code = table.text("invitation", example="env:NAME")
    if code is not None and len(code.strip()) < INVITATION_LENGTH:
        table.tell("invitation", f"could be guessed; write one of at least {INVITATION_LENGTH} characters")
    return None if code is None else str(code).strip()


def _model(table: Table, budget: timedelta, folder: Path) -> ModelSettings | None:
    url, model = _url(table), table.text("model", example="gpt-4.1-mini")
    if not table.has("model"):
        table.tell("model", "is missing; write the model's name there")
    token = table.text("token", example="env:NAME")
    seconds = budget.total_seconds()
    read: dict[str, Any] = {
        "system": _system(table, folder),
        "timeout": timedelta(seconds=_number(table, "timeout_seconds", seconds, least=1, most=seconds)),
        "max_tokens": table.whole("max_tokens", 600, least=1, most=MOST_TOKENS),
        "tokens_per_day": table.whole("tokens_per_day", 100_000, least=1, most=MOST_TOKENS),
        "replies_per_day": table.whole("replies_per_day", 100, least=1, most=MOST_REPLIES),
    }
    temperature = _number(table, "temperature", 1, least=0, most=2)
    table.close()
    if url is None or model is None:
        return None
    return ModelSettings(
        url=url,
        model=str(model),
        token=None if token is None else str(token),
        temperature=temperature if table.has("temperature") else None,
        **read,
    )


def _url(table: Table) -> str | None:
    url = table.text("url", example="https://api.openai.com/v1")
    if not table.has("url"):
        table.tell("url", 'is missing; write where the model is asked, as in url = "https://api.openai.com/v1"')
    if url is None:
        return None
    if not is_address(url):
        table.tell("url", "must be an http or https address; write it like https://api.openai.com/v1")
        return None
    if url.rstrip("/").endswith(ENDPOINT):
        table.tell("url", f"must end before {ENDPOINT}, which is put behind it; remove that")
        return None
    return str(url).rstrip("/")


def _system(table: Table, folder: Path) -> str | None:
    named = table.text("system_file", example="assistant.txt")
    if named is None:
        return None
    fault: str | None = None
    try:
        with (folder / named).open("rb") as file:
            held = file.read(SYSTEM_BYTES + 1)
        if len(held) > SYSTEM_BYTES:
            fault = f"is larger than {SYSTEM_BYTES // 1000} kB, and is sent with every question; shorten the file"
        elif text := held.decode("utf-8-sig").strip():
            return text
        else:
            fault = "is an empty file; write into it who the model is to be"
    except OSError as error:
        fault = f"cannot be read ({error.strerror}); name a file beside this one"
    except ValueError:  # no UTF-8; a name that no file can have
        fault = "is no text in UTF-8; save it as such"
    table.tell("system_file", fault)
    return None


def _number(table: Table, key: str, default: float, *, least: float, most: float) -> float:
    return table.number(key, default, least=least, most=most, rule=f"a number from {least:g} to {most:g}")
