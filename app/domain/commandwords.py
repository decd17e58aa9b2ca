"""The words of commands in a chat, and what is said to them, in the languages that the service speaks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from app.domain.folding import fold

if TYPE_CHECKING:
    from collections.abc import Mapping

Name = Literal["help", "latest", "watch", "unwatch", "list", "mute", "status"]
NAMES: tuple[Name, ...] = get_args(Name)

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWords:
    """One language. Braces are filled where the words are used."""

    aliases: Mapping[Name, str]
    """How each command may be written, parted by commas."""

    minute: str
    hour: str
    day: str
    """How each may be written behind a number, parted by commas."""

    off: str
    """By which a mute ends, parted by commas."""

    help: str

    watching: str
    known: str
    which: str
    many_phrases: str
    long_phrase: str
    many_watches: str
    not_here: str
    """A watch, where nobody can be written to unasked."""

    unwatched: str
    not_watched: str
    """No watch has that number or those words."""

    which_not: str
    nothing_watched: str
    watched: str
    """Above the numbered list."""

    muted: str
    unmuted: str
    how_long: str
    no_items: str
    no_matches: str
    status: str
    no_tick: str
    not_muted: str


WORDS_BY_LANGUAGE = {
    "en": CommandWords(
        aliases={
            "help": "help,start,commands",
            "latest": "latest,newest,news",
            "watch": "watch,follow,subscribe",
            "unwatch": "unwatch,unfollow,unsubscribe,stop watching",
            "list": "list,watches",
            "mute": "mute,silence",
            "status": "status",
        },
        minute="m,min,mins,minute,minutes",
        hour="h,hr,hrs,hour,hours",
        day="d,day,days",
        off="off,0,stop,end",
        help=(
            "watch WORDS: hear of new items with any of these, parted by commas\n"
            "unwatch WORDS or NUMBER: no longer\n"
            "list: what you watch\n"
            "latest: the newest items\n"
            "mute 2h (30m, 1d, off): hold news back for a while\n"
            "status: how things stand"
        ),
        watching="Watching, number {number}: {phrases}",
        known="You watch this already, number {number}: {phrases}",
        which="Write what to watch for, for example: watch python, line bot",
        many_phrases="That is too much for one watch: write at most {most} phrases.",
        long_phrase="That is too long: write at most {most} characters between two commas.",
        many_watches="You have {most} watches, and there is no room for more: remove one with unwatch.",
        not_here="News cannot be sent here, so that nothing can be watched; latest tells what is new.",
        unwatched="No longer watching: {phrases}",
        not_watched="You do not watch that; list shows what you watch.",
        which_not="Write what to watch no longer: its words or its number in list, for example: unwatch 1",
        nothing_watched="You watch nothing yet. For example: watch python, line bot",
        watched="You watch:",
        muted="Muted until {until}. What is new by then comes after it.",
        unmuted="Not muted: news comes as it is found.",
        how_long="Write for how long, for example: mute 30m, mute 2h, mute 1d, or mute off",
        no_items="There is nothing yet.",
        no_matches="Nothing matches what you watch yet.",
        status="Sources: {sources}. Last look: {at}.",
        no_tick="not yet",
        not_muted="Not muted.",
    ),
    "th": CommandWords(
        aliases={
            "help": "ช่วยเหลือ,วิธีใช้,คำสั่ง",
            "latest": "ล่าสุด,ข่าวล่าสุด,มีอะไรใหม่",
            "watch": "ติดตาม,เฝ้าดู",
            "unwatch": "เลิกติดตาม,หยุดติดตาม,ยกเลิกติดตาม",
            "list": "รายการ,รายการติดตาม",
            "mute": "ปิดเสียง,พักแจ้งเตือน,ปิดแจ้งเตือน",
            "status": "สถานะ",
        },
        minute="น,นาที",
        hour="ชม,ชม.,ชั่วโมง",
        day="วัน",
        off="ปิด,เลิก,ยกเลิก,หยุด",
        help=(
            "ติดตาม คำ: แจ้งเมื่อมีรายการใหม่ที่มีคำใดคำหนึ่ง คั่นด้วยจุลภาค\n"
            "เลิกติดตาม คำ หรือ หมายเลข: ไม่ต้องแจ้งอีก\n"
            "รายการ: สิ่งที่คุณติดตาม\n"
            "ล่าสุด: รายการใหม่ล่าสุด\n"
            "ปิดเสียง 2 ชม (30 นาที, 1 วัน, ยกเลิก): พักการแจ้งไว้ก่อน\n"
            "สถานะ: ตอนนี้เป็นอย่างไร"
        ),
        watching="กำลังติดตาม หมายเลข {number}: {phrases}",
        known="คุณติดตามอยู่แล้ว หมายเลข {number}: {phrases}",
        which="โปรดเขียนคำที่ต้องการติดตาม เช่น ติดตาม python, ไลน์บอท",
        many_phrases="มากเกินไปสำหรับหนึ่งรายการ เขียนได้ไม่เกิน {most} คำ",
        long_phrase="ยาวเกินไป แต่ละคำยาวได้ไม่เกิน {most} ตัวอักษร",
        many_watches="คุณติดตามครบ {most} รายการแล้ว โปรดลบบางรายการด้วย เลิกติดตาม",
        not_here="ส่งข่าวมาที่นี่เองไม่ได้ จึงติดตามไม่ได้ พิมพ์ ล่าสุด เพื่อดูรายการใหม่",
        unwatched="เลิกติดตามแล้ว: {phrases}",
        not_watched="คุณไม่ได้ติดตามรายการนั้น พิมพ์ รายการ เพื่อดูสิ่งที่ติดตาม",
        which_not="โปรดเขียนคำหรือหมายเลขที่จะเลิกติดตาม เช่น เลิกติดตาม 1",
        nothing_watched="คุณยังไม่ได้ติดตามอะไร ตัวอย่าง: ติดตาม python, ไลน์บอท",
        watched="คุณติดตาม:",
        muted="พักการแจ้งถึง {until} รายการใหม่จะส่งให้หลังจากนั้น",
        unmuted="ไม่ได้พักการแจ้ง จะแจ้งทันทีที่พบ",
        how_long="โปรดเขียนระยะเวลา เช่น ปิดเสียง 30 นาที, ปิดเสียง 2 ชม, ปิดเสียง 1 วัน หรือ ปิดเสียง ยกเลิก",
        no_items="ยังไม่มีอะไร",
        no_matches="ยังไม่มีรายการที่ตรงกับสิ่งที่คุณติดตาม",
        status="แหล่งข้อมูล: {sources} ตรวจล่าสุด: {at}",
        no_tick="ยังไม่มี",
        not_muted="ไม่ได้พักการแจ้ง",
    ),
    "vi": CommandWords(
        aliases={
            "help": "trợ giúp,giúp đỡ,tro giup,lệnh",
            "latest": "mới nhất,tin mới,moi nhat,tin moi",
            "watch": "theo dõi,theo doi",
            "unwatch": "bỏ theo dõi,bo theo doi,ngừng theo dõi,hủy theo dõi",
            "list": "danh sách,danh sach",
            "mute": "tắt tiếng,tat tieng,tạm dừng,tam dung",
            "status": "trạng thái,trang thai",
        },
        minute="p,ph,phút,phut",
        hour="g,giờ,gio,tiếng",
        day="ng,ngày,ngay",
        off="tắt,tat,hủy,huỷ,huy,thôi",
        help=(
            "theo dõi TỪ: báo khi có tin mới chứa một trong các từ, cách nhau bằng dấu phẩy\n"
            "bỏ theo dõi TỪ hoặc SỐ: không báo nữa\n"
            "danh sách: những gì bạn theo dõi\n"
            "mới nhất: các tin mới nhất\n"
            "tắt tiếng 2 giờ (30 phút, 1 ngày, hủy): tạm giữ tin báo\n"
            "trạng thái: tình hình hiện nay"
        ),
        watching="Đang theo dõi, số {number}: {phrases}",
        known="Bạn đã theo dõi rồi, số {number}: {phrases}",
        which="Hãy viết từ cần theo dõi, ví dụ: theo dõi python, line bot",
        many_phrases="Quá nhiều cho một mục: hãy viết tối đa {most} cụm từ.",
        long_phrase="Quá dài: hãy viết tối đa {most} ký tự giữa hai dấu phẩy.",
        many_watches="Bạn đã có {most} mục theo dõi, không thêm được nữa: hãy xóa bớt bằng bỏ theo dõi.",
        not_here="Không thể tự gửi tin đến đây nên không theo dõi được; gõ mới nhất để xem tin mới.",
        unwatched="Đã bỏ theo dõi: {phrases}",
        not_watched="Bạn không theo dõi mục đó; gõ danh sách để xem bạn theo dõi gì.",
        which_not="Hãy viết từ hoặc số trong danh sách cần bỏ, ví dụ: bỏ theo dõi 1",
        nothing_watched="Bạn chưa theo dõi gì. Ví dụ: theo dõi python, line bot",
        watched="Bạn theo dõi:",
        muted="Đã tắt tiếng đến {until}. Tin mới sẽ được gửi sau đó.",
        unmuted="Không tắt tiếng: có tin là báo.",
        how_long="Hãy viết thời gian, ví dụ: tắt tiếng 30 phút, tắt tiếng 2 giờ, tắt tiếng 1 ngày hoặc tắt tiếng hủy",
        no_items="Chưa có gì.",
        no_matches="Chưa có tin nào khớp với những gì bạn theo dõi.",
        status="Số nguồn: {sources}. Lần xem gần nhất: {at}.",
        no_tick="chưa có",
        not_muted="Không tắt tiếng.",
    ),
    "my": CommandWords(
        aliases={
            "help": "အကူအညီ,အကူ",
            "latest": "နောက်ဆုံး,နောက်ဆုံးရ,အသစ်",
            "watch": "စောင့်ကြည့်,စောင့်ကြည့်ရန်",
            "unwatch": "မစောင့်ကြည့်တော့,စောင့်ကြည့်မှုရပ်",
            "list": "စာရင်း",
            "mute": "အသံပိတ်,ခဏရပ်",
            "status": "အခြေအနေ",
        },
        minute="မိနစ်",
        hour="နာရီ",
        day="ရက်",
        off="ပိတ်,ဖွင့်,ပယ်ဖျက်",
        help=(
            "စောင့်ကြည့် စကားလုံး: ကော်မာခြားထားသော စကားလုံးတစ်ခုခု ပါသည့် အသစ်များကို အကြောင်းကြားမည်\n"
            "မစောင့်ကြည့်တော့ စကားလုံး သို့မဟုတ် နံပါတ်: ထပ်မကြားတော့ပါ\n"
            "စာရင်း: သင် စောင့်ကြည့်နေသည်များ\n"
            "နောက်ဆုံး: နောက်ဆုံးရ အသစ်များ\n"
            "အသံပိတ် 2 နာရီ (30 မိနစ်၊ 1 ရက်၊ ပယ်ဖျက်): ခဏ ဆိုင်းထားမည်\n"
            "အခြေအနေ: ယခု အခြေအနေ"
        ),
        watching="စောင့်ကြည့်နေပါသည်၊ နံပါတ် {number}: {phrases}",
        known="သင် စောင့်ကြည့်ပြီးသား ဖြစ်ပါသည်၊ နံပါတ် {number}: {phrases}",
        which="စောင့်ကြည့်မည့် စကားလုံးကို ရေးပါ၊ ဥပမာ: စောင့်ကြည့် python, line bot",
        many_phrases="တစ်ခုအတွက် များလွန်းပါသည်။ စကားစု {most} ခုထက် မပိုစေပါနှင့်။",
        long_phrase="ရှည်လွန်းပါသည်။ ကော်မာနှစ်ခုကြား စာလုံး {most} လုံးထက် မပိုစေပါနှင့်။",
        many_watches="စောင့်ကြည့်မှု {most} ခု ပြည့်နေပါပြီ။ မစောင့်ကြည့်တော့ ဖြင့် တစ်ခု ဖယ်ပါ။",
        not_here="ဤနေရာသို့ သတင်းများ ပို့၍ မရသဖြင့် စောင့်ကြည့်၍ မရပါ။ အသစ်များ ကြည့်ရန် နောက်ဆုံး ဟု ရေးပါ။",
        unwatched="မစောင့်ကြည့်တော့ပါ: {phrases}",
        not_watched="ထိုအရာကို သင် မစောင့်ကြည့်ပါ။ စာရင်း ဟု ရေး၍ ကြည့်ပါ။",
        which_not="ဖယ်မည့် စကားလုံး သို့မဟုတ် နံပါတ်ကို ရေးပါ၊ ဥပမာ: မစောင့်ကြည့်တော့ 1",
        nothing_watched="သင် ဘာမှ မစောင့်ကြည့်သေးပါ။ ဥပမာ: စောင့်ကြည့် python, line bot",
        watched="သင် စောင့်ကြည့်နေသည်များ:",
        muted="{until} အထိ ပိတ်ထားပါသည်။ အသစ်များ ထို့နောက် ရောက်ပါမည်။",
        unmuted="ပိတ်ထားခြင်း မရှိပါ။ တွေ့လျှင် အကြောင်းကြားပါမည်။",
        how_long="မည်မျှကြာ ရေးပါ၊ ဥပမာ: အသံပိတ် 30 မိနစ်၊ အသံပိတ် 2 နာရီ၊ အသံပိတ် 1 ရက် သို့မဟုတ် အသံပိတ် ပယ်ဖျက်",
        no_items="ဘာမှ မရှိသေးပါ။",
        no_matches="သင် စောင့်ကြည့်သည်နှင့် ကိုက်ညီသည် မရှိသေးပါ။",
        status="ရင်းမြစ်များ: {sources}။ နောက်ဆုံး ကြည့်ချိန်: {at}။",
        no_tick="မရှိသေးပါ",
        not_muted="ပိတ်ထားခြင်း မရှိပါ။",
    ),
}


def words_of(language: str) -> CommandWords:
    """English, where there are none."""
    return WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])


@cache
def aliases_of(language: str) -> tuple[tuple[Name, tuple[str, ...]], ...]:
    """Each command with the folded words of one way to write it, those of most words first."""
    listed = [
        (name, tuple(fold(word) for word in alias.split()))
        for words in (words_of(language), words_of("en"))
        for name in NAMES
        for alias in words.aliases[name].split(",")
    ]
    return tuple(sorted(dict.fromkeys(listed), key=lambda one: -len(one[1])))


@cache
def durations_of(language: str) -> Mapping[str, timedelta]:
    """How long each unit is, by every folded way to write it."""
    return {
        fold(written): length
        for words in (words_of("en"), words_of(language))
        for units, length in ((words.minute, MINUTE), (words.hour, HOUR), (words.day, DAY))
        for written in units.split(",")
    }


@cache
def off_of(language: str) -> frozenset[str]:
    """The folded words by which a mute ends."""
    return frozenset(fold(word) for words in (words_of(language), words_of("en")) for word in words.off.split(","))
