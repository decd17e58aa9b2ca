"""The service's own words to people who chat with it, and those by which they ask for a person."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Iterable

ASKING_LENGTH = 60
"""Characters. In what is longer, one of the words stands for something else: "our staff of 40 needs a website"."""

MOST_WORDS = 4
"""Beside a single word that asks for a person, it included."""

EDGE = regex.compile(r"\w", flags=regex.VERSION1)
SPACED = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}\p{Hangul}]", flags=regex.VERSION1)
"""Letters of scripts that put spaces between words; the others are looked for anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatWords:
    """One language."""

    polite: str
    """In answer to anything, where nothing else answers."""

    handed_over: str
    """To somebody who has asked for a person."""

    wanted: str
    """To those of the house who hear of alerts: somebody has asked for a person. Braces hold the chat's name
    and what was said."""

    enough: str
    """To somebody who has used up a day's answers."""

    invited: str
    """To somebody whose invitation was right: commands work now."""

    handover: tuple[str, ...]
    """By which somebody asks for a person."""


WORDS_BY_LANGUAGE = {
    "en": ChatWords(
        polite="Thank you for your message. We have received it and will get back to you soon.",
        handed_over="I am passing this on to a member of our team, who will answer you here.",
        wanted="Somebody in the chat {chat} asks for a person: {text}",
        enough="That was a lot for one day. Please write again tomorrow, or ask for a member of our team.",
        invited="Welcome! You can give commands here now: help lists them.",
        handover=(
            *("human", "staff", "agent", "operator", "real person", "real human", "customer service"),
            *("talk to a person", "talk to a human", "talk to somebody", "talk to someone", "talk to staff"),
            *("speak to a person", "speak to a human", "speak to somebody", "speak to someone", "speak with a person"),
        ),
    ),
    "th": ChatWords(
        polite="ขอบคุณสำหรับข้อความ เราได้รับแล้วและจะติดต่อกลับโดยเร็ว",
        handed_over="กำลังส่งต่อให้เจ้าหน้าที่ เจ้าหน้าที่จะตอบกลับที่นี่",
        wanted="มีคนในแชต {chat} ขอคุยกับเจ้าหน้าที่: {text}",
        enough="วันนี้คุยกันมากแล้ว โปรดเขียนมาใหม่พรุ่งนี้ หรือพิมพ์ว่า เจ้าหน้าที่ เพื่อคุยกับเจ้าหน้าที่",
        invited="ยินดีต้อนรับ ตอนนี้ใช้คำสั่งได้แล้ว พิมพ์ คำสั่ง เพื่อดูรายการ",
        handover=("เจ้าหน้าที่", "พนักงาน", "แอดมิน", "คุยกับคน", "ติดต่อคน"),
    ),
    "vi": ChatWords(
        polite="Cảm ơn bạn đã nhắn tin. Chúng tôi đã nhận được và sẽ sớm phản hồi.",
        handed_over="Tôi đang chuyển cho nhân viên, họ sẽ trả lời bạn tại đây.",
        wanted="Có người trong cuộc trò chuyện {chat} muốn gặp nhân viên: {text}",
        enough="Hôm nay đã trao đổi khá nhiều. Vui lòng nhắn lại vào ngày mai, hoặc yêu cầu gặp nhân viên.",
        invited="Chào mừng bạn! Bây giờ bạn có thể dùng lệnh tại đây: gõ trợ giúp để xem.",
        handover=("nhân viên", "người thật", "tư vấn viên", "gặp người", "hỗ trợ viên"),
    ),
    "my": ChatWords(
        polite="စာပို့ပေးတဲ့အတွက် ကျေးဇူးတင်ပါသည်။ လက်ခံရရှိပြီး မကြာမီ ပြန်လည်ဆက်သွယ်ပါမည်။",
        handed_over="ဝန်ထမ်းထံ လွှဲပြောင်းပေးနေပါသည်။ ဝန်ထမ်းက ဤနေရာတွင် ပြန်ဖြေပါမည်။",
        wanted="{chat} တွင် တစ်စုံတစ်ယောက်က ဝန်ထမ်းနှင့် ပြောလိုပါသည်: {text}",
        enough="ယနေ့အတွက် မေးခွန်းများ ပြည့်သွားပါပြီ။ မနက်ဖြန် ထပ်ရေးပါ၊ သို့မဟုတ် ဝန်ထမ်း ဟု ရေးပါ။",
        invited="ကြိုဆိုပါသည်။ ယခု အမိန့်များ သုံးနိုင်ပါပြီ။ အကူအညီ ဟု ရေး၍ ကြည့်ပါ။",
        handover=("ဝန်ထမ်း", "လူနဲ့ပြော", "လူနှင့်ပြော", "အက်ဒမင်"),
    ),
}


def words_of(language: str) -> ChatWords:
    """English, where there are none."""
    return WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])


def handover_of(language: str) -> tuple[str, ...]:
    """What is listened for where nothing is said: the language's own words, and the English ones."""
    return tuple(dict.fromkeys((*words_of(language).handover, *words_of("en").handover)))


def asks_for_person(text: str, words: Iterable[str]) -> bool:
    """Whether this asks for a person: it is short, and one of the words stands in it, in capitals or not.

    A single word of a script with spaces only where little else is said: "human please", not "human rights in short".
    """
    said = _folded(text)
    if len(said) > ASKING_LENGTH:
        return False
    little = len(said.split()) <= MOST_WORDS
    return any(_stands_in(said, word) for word in map(_folded, words) if little or " " in word or not _spaced(word))


def _spaced(word: str) -> bool:
    return bool(word) and bool(SPACED.match(word[0]))


def _stands_in(said: str, word: str) -> bool:
    """A word of a script with spaces stands there on its own: "agent" is not in "reagents"."""
    start = said.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        before, after = said[start - 1 : start] if start else "", said[end : end + 1]
        if not (SPACED.match(word[0]) and EDGE.match(before)) and not (SPACED.match(word[-1]) and EDGE.match(after)):
            return True
        start = said.find(word, start + 1)
    return False


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
