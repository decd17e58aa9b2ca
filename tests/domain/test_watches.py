from __future__ import annotations

from app.domain import watches
from app.domain.items import Item
from app.domain.watches import Watched


def _watched(*phrases: str, conversation: int = 1) -> Watched:
    return Watched(chat="desk", conversation=conversation, person="7", invited=True, phrases=phrases)


def test_a_recipient_out_of_a_chat_has_a_name_that_no_configuration_holds():
    name = watches.recipient_name("desk", 17)

    assert name == "chats/desk/17"
    assert watches.conversation_of(name) == 17
    assert watches.conversation_of("desk") is None
    assert watches.conversation_of("bookings/line") is None
    assert watches.conversation_of("chats/desk/x") is None


def test_an_item_is_told_to_each_who_watches_for_it_with_all_their_watches():
    items = [Item(key="1", title="A LINE bot in Python"), Item(key="2", title="Cooks", text="who know python")]
    watched = [_watched("python"), _watched("line bot", "x"), _watched("cooks", conversation=2)]

    told = [(item.key, recipient, labels) for item, recipient, labels in watches.told_of(items, watched)]

    assert told == [
        ("1", "chats/desk/1", ("line bot, x", "python")),
        ("2", "chats/desk/1", ("python",)),
        ("2", "chats/desk/2", ("cooks",)),
    ]


def test_words_are_found_whole_and_patterns_are_not_read():
    items = [Item(key="1", title="Pythonic things")]

    assert list(watches.told_of(items, [_watched("python"), _watched("py.*")])) == []


def test_a_long_watch_has_a_short_label():
    assert len(watches.label(["x" * 100, "y" * 100])) == watches.LABEL_LENGTH
