from __future__ import annotations

from app.settings import address_of
from tests.settings.conftest import Load

LINE = '[channels.{name}]\nkind = "line"\ntoken = "{token}"\nbase_url = "https://line.test"\n'
USER = '[recipients.{name}]\nchannel = "{channel}"\nto = "{to}"\n'
HOOK = '[channels.hook]\nkind = "webhook"\nurl = "https://{host}/in"\nsecret = "whsec_{secret}"\n'


def two(load_text: Load, first: str, second: str) -> tuple[str, str]:
    settings = load_text(
        LINE.format(name="line", token="one-token")
        + LINE.format(name="other", token="another-token")
        + LINE.format(name="twin", token="one-token")
        + USER.format(name="a", channel=first.partition(" ")[0], to=first.partition(" ")[2])
        + USER.format(name="b", channel=second.partition(" ")[0], to=second.partition(" ")[2])
    )
    return address_of(settings, settings.recipients["a"]), address_of(settings, settings.recipients["b"])


def test_an_address_is_known_by_its_account_and_its_to_whatever_it_is_called(load_text: Load):
    assert len(set(two(load_text, "line U1", "line U1"))) == 1
    assert len(set(two(load_text, "line U1", "twin U1"))) == 1
    assert len(set(two(load_text, "line U1", "line U2"))) == 2
    assert len(set(two(load_text, "line U1", "other U1"))) == 2


def test_neither_token_nor_address_can_be_read_from_it(load_text: Load):
    told = "".join(two(load_text, "line U1", "line U2"))

    assert "U1" not in told
    assert "token" not in told
