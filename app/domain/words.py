"""The service's own words, in the languages it speaks. Kept few: what a source publishes is never translated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One language. Braces are filled by the functions below; names and numbers stand as they are."""

    one_new: str
    many_new: str
    untitled: str
    test: str
    watching: str


WORDS_BY_LANGUAGE = {
    "en": Words(
        one_new="1 new item",
        many_new="{count} new items",
        untitled="(no title)",
        test="This is a test message from {service}. Notifications will arrive here.",
        watching="Now watching {source}. Items known already: {count}. Only new ones will be told.",
    ),
    "th": Words(
        one_new="มีรายการใหม่ 1 รายการ",
        many_new="มีรายการใหม่ {count} รายการ",
        untitled="(ไม่มีหัวข้อ)",
        test="นี่คือข้อความทดสอบจาก {service} การแจ้งเตือนจะส่งมาที่นี่",
        watching="เริ่มติดตาม {source} แล้ว มีรายการเดิม {count} รายการ จะแจ้งเฉพาะรายการใหม่",
    ),
    "vi": Words(
        one_new="Có 1 mục mới",
        many_new="Có {count} mục mới",
        untitled="(không có tiêu đề)",
        test="Đây là tin nhắn thử từ {service}. Thông báo sẽ được gửi đến đây.",
        watching="Đã bắt đầu theo dõi {source}. Số mục đã có: {count}. Chỉ các mục mới sẽ được thông báo.",
    ),
    "my": Words(
        one_new="အသစ် 1 ခု ရှိပါသည်",
        many_new="အသစ် {count} ခု ရှိပါသည်",
        untitled="(ခေါင်းစဉ် မရှိပါ)",
        test="{service} မှ စမ်းသပ်စာ ဖြစ်ပါသည်။ အသိပေးချက်များကို ဤနေရာသို့ ပို့ပါမည်။",
        watching="{source} ကို စတင်စောင့်ကြည့်ပါပြီ။ ရှိပြီးသား {count} ခု ဖြစ်ပါသည်။ အသစ်များကိုသာ အသိပေးပါမည်။",
    ),
}


def new_items(language: str, count: int) -> str:
    """The heading of a digest: how many items are new."""
    words = _words(language)
    return words.one_new if count == 1 else words.many_new.format(count=count)


def untitled(language: str) -> str:
    """What stands where an item has no title."""
    return _words(language).untitled


def test_message(language: str, *, service: str) -> str:
    """What `send-test` sends."""
    return _words(language).test.format(service=service)


def watching(language: str, *, source: str, count: int) -> str:
    """The note of a first round: the source is watched, and what it listed was not told."""
    return _words(language).watching.format(source=source, count=count)


def _words(language: str) -> Words:
    """English for a language that is not spoken: better told in another language than not at all."""
    return WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])
