"""What every channel keeps, whoever wrote it: files found in the folder are taken without being named here."""

from __future__ import annotations

import base64
import inspect
from datetime import timedelta

import pytest
from pydantic import BaseModel, ValidationError

from app import plugins
from app.domain.messages import Body, Digest, DigestItem

KINDS = plugins.kinds("app.channels")

DISCORD_WEBHOOK = "https://discord.com/api/webhooks/123456789012345678/" + "t" * 68

OPTIONS_BY_KIND = {
    "apprise": {"url": "json://hooks.test/in"},
    "discord": {"webhook_url": DISCORD_WEBHOOK},
    "email": {"host": "mx.example.com", "sender": "bell@example.com"},
    "inbox": {},
    "line": {"token": "token"},
    "ntfy": {},
    "slack": {"webhook_url": "https://hooks.slack.com/services/T000/B000/secret"},
    "telegram": {"token": "123456789:" + "A" * 35},
    "webhook": {"url": "https://hooks.test/in", "secret": f"whsec_{base64.b64encode(b'x' * 32).decode()}"},
}

HARD_TITLES = [
    "",
    " \n\t",
    "ที่" * 2000,
    "👩‍👩‍👧" * 700,
    "မြန်မာ" * 900,
    "😀" * 3000,
    "مطور \u202eويب",
    "a" + "\u0301" * 9000,
    "\ud83d",
    "nul \0 and bell \a",
    "x" * 20_000,
    "budget_5000 - C# (v2.0)! [a](b",
    "<b>&amp;</b> \"'`\\",
    "\r\nBcc: someone@else.test\r\n\r\n.",
]


def digest(titles: list[str], language: str = "en") -> Digest:
    links = [None, "https://e.test/1", "https://e.test/" + "y" * 8000, "https://e.test/a b\nc"]
    return Digest(
        items=tuple(
            DigestItem(title=title, link=links[number % 4], source="board", subscriptions=("python",))
            for number, title in enumerate(titles)
        ),
        to="someone@example.com",
        language=language,
    )


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def module(kind):
    return plugins.load("app.channels", kind)


@pytest.fixture
def options(kind, module):
    return module.Options.model_validate(OPTIONS_BY_KIND[kind])


def test_options_are_frozen_and_refuse_what_they_do_not_know(module, options):
    assert issubclass(module.Options, BaseModel)
    assert module.Options.model_config["extra"] == "forbid"
    assert module.Options.model_config["frozen"] is True


def test_options_hide_what_was_wrong(kind, module):
    with pytest.raises(ValidationError) as caught:
        module.Options.model_validate(OPTIONS_BY_KIND[kind] | {"no_such_key": "hunter2"})

    assert "no_such_key" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_says_how_long_it_may_be_repeated(module):
    assert module.REPEATABLE_FOR is None or isinstance(module.REPEATABLE_FOR, timedelta)


def test_has_compose_and_send(module):
    assert list(inspect.signature(module.compose).parameters) == ["digest", "options"]
    assert list(inspect.signature(module.send).parameters) == ["message", "options", "http"]
    assert inspect.iscoroutinefunction(module.send)


def test_what_it_may_have_looks_as_the_doctor_asks_for_it(module, options):
    if hasattr(module, "probe"):
        assert list(inspect.signature(module.probe).parameters) == ["options", "http"]
        assert inspect.iscoroutinefunction(module.probe)
    if hasattr(module, "origin"):
        assert "secret" not in module.origin(options)


@pytest.mark.parametrize("language", ["en", "th", "vi", "my"])
def test_composing_any_text_gives_bodies_that_can_be_kept_and_read(module, options, language):
    bodies = module.compose(digest(HARD_TITLES, language), options)

    assert bodies
    for body in bodies:
        assert isinstance(body, Body)
        assert body.body.encode()
        assert body.text.strip()
        assert "\0" not in body.body + body.text  # PostgreSQL keeps no NUL


@pytest.mark.parametrize("title", HARD_TITLES)
def test_one_item_alone_is_one_body(module, options, title):
    assert len(module.compose(digest([title]), options)) == 1


def test_no_part_is_longer_than_its_limit_and_none_holds_half_a_character(module, options):
    bodies = module.compose(digest(HARD_TITLES), options)

    for part in (part for body in bodies for part in body.parts):
        assert part.limit is None or 0 < part.length <= part.limit
        part.text.encode()
        assert not part.text.startswith(("\u0301", "\u200d", "ี", "่"))


def test_each_item_is_counted_to_one_body(module, options):
    bodies = module.compose(digest([f"<{number}>" for number in range(200)]), options)

    assert [place for body in bodies for place in body.items] == list(range(200))


def test_composing_twice_gives_the_same_bytes(module, options):
    assert module.compose(digest(HARD_TITLES), options) == module.compose(digest(HARD_TITLES), options)


def test_every_item_of_a_flood_is_told_in_order(module, options):
    titles = [f"<{number}>" for number in range(500)]

    bodies = module.compose(digest(titles), options)

    text = "\n".join(body.text for body in bodies)
    positions = [text.index(title) for title in titles]
    assert positions == sorted(positions)


def test_an_empty_digest_is_no_body(module, options):
    assert module.compose(digest([]), options) == []


def test_a_note_of_the_service_reaches_every_channel_whole(module, options):
    note = "Source board failed 3 times:\nboard.example answered 404\n\nSee /api/sources."

    [body] = module.compose(Digest(note=note, to="someone@example.com"), options)

    assert body.text == note


def test_a_note_cannot_break_out_of_its_channel(module, options):
    [body] = module.compose(Digest(note="\r\nBcc: x@y.test\r\n\r\n\u202e\0a\ud83d", to="someone@example.com"), options)

    assert "\0" not in body.body
    assert "\r\nbcc:" not in body.body.lower().partition("\r\n\r\n")[0]
    body.body.encode()
