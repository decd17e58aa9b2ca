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
    alert: str
    all_clear: str
    job_failed: str
    source_failing: str
    message_failed: str
    recovered: str
    closed: str
    and_more: str


WORDS_BY_LANGUAGE = {
    "en": Words(
        one_new="1 new item",
        many_new="{count} new items",
        untitled="(no title)",
        test="This is a test message from {service}. Notifications will arrive here.",
        watching="Now watching {source}. Items known already: {count}. Only new ones will be told.",
        alert="{service}: something needs a look",
        all_clear="{service}: this is settled",
        job_failed="Job {subject} failed",
        source_failing="Source {subject} failed {failures} times in a row",
        message_failed="A message to {subject} could not be delivered",
        recovered="Recovered: {what}",
        closed="Closed: {what}",
        and_more="and {count} more",
    ),
    "th": Words(
        one_new="มีรายการใหม่ 1 รายการ",
        many_new="มีรายการใหม่ {count} รายการ",
        untitled="(ไม่มีหัวข้อ)",
        test="นี่คือข้อความทดสอบจาก {service} การแจ้งเตือนจะส่งมาที่นี่",
        watching="เริ่มติดตาม {source} แล้ว มีรายการเดิม {count} รายการ จะแจ้งเฉพาะรายการใหม่",
        alert="{service}: มีเรื่องที่ต้องตรวจสอบ",
        all_clear="{service}: เรื่องนี้เรียบร้อยแล้ว",
        job_failed="งาน {subject} ล้มเหลว",
        source_failing="แหล่งข้อมูล {subject} ล้มเหลวติดต่อกัน {failures} ครั้ง",
        message_failed="ส่งข้อความถึง {subject} ไม่สำเร็จ",
        recovered="กลับมาทำงานปกติแล้ว: {what}",
        closed="ปิดเรื่องแล้ว: {what}",
        and_more="และอีก {count} รายการ",
    ),
    "vi": Words(
        one_new="Có 1 mục mới",
        many_new="Có {count} mục mới",
        untitled="(không có tiêu đề)",
        test="Đây là tin nhắn thử từ {service}. Thông báo sẽ được gửi đến đây.",
        watching="Đã bắt đầu theo dõi {source}. Số mục đã có: {count}. Chỉ các mục mới sẽ được thông báo.",
        alert="{service}: có việc cần kiểm tra",
        all_clear="{service}: đã ổn",
        job_failed="Công việc {subject} bị lỗi",
        source_failing="Nguồn {subject} lỗi {failures} lần liên tiếp",
        message_failed="Không gửi được tin nhắn đến {subject}",
        recovered="Đã hoạt động trở lại: {what}",
        closed="Đã đóng: {what}",
        and_more="và {count} mục khác",
    ),
    "my": Words(
        one_new="အသစ် 1 ခု ရှိပါသည်",
        many_new="အသစ် {count} ခု ရှိပါသည်",
        untitled="(ခေါင်းစဉ် မရှိပါ)",
        test="{service} မှ စမ်းသပ်စာ ဖြစ်ပါသည်။ အသိပေးချက်များကို ဤနေရာသို့ ပို့ပါမည်။",
        watching="{source} ကို စတင်စောင့်ကြည့်ပါပြီ။ ရှိပြီးသား {count} ခု ဖြစ်ပါသည်။ အသစ်များကိုသာ အသိပေးပါမည်။",
        alert="{service}: စစ်ဆေးရန် လိုအပ်ပါသည်",
        all_clear="{service}: ပြေလည်သွားပါပြီ",
        job_failed="အလုပ် {subject} မအောင်မြင်ပါ",
        source_failing="{subject} ကို {failures} ကြိမ်ဆက်တိုက် ဖတ်၍ မရပါ",
        message_failed="{subject} သို့ စာ ပို့၍ မရပါ",
        recovered="ပြန်ကောင်းသွားပါပြီ: {what}",
        closed="ပိတ်လိုက်ပါပြီ: {what}",
        and_more="နောက်ထပ် {count} ခု",
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


def alert_heading(language: str, *, service: str, over: bool) -> str:
    """The first line of an alert; `over`: nothing in it is wrong any more."""
    words = _words(language)
    return (words.all_clear if over else words.alert).format(service=service)


def incident(language: str, kind: str, *, subject: str, failures: int) -> str:
    """What an alert is about; `kind` is one of `domain.alerts.Kind`."""
    sentence: str = getattr(_words(language), kind)
    return sentence.format(subject=subject, failures=failures)


def recovered(language: str, what: str) -> str:
    """A recovery note: `what` is the alert's own sentence."""
    return _words(language).recovered.format(what=what)


def closed(language: str, what: str) -> str:
    """Nothing is left of an alert, though nothing went well: `what` is the alert's own sentence."""
    return _words(language).closed.format(what=what)


def and_more(language: str, count: int) -> str:
    """What stands for the lines that were left out."""
    return _words(language).and_more.format(count=count)


def _words(language: str) -> Words:
    """English for a language that is not spoken: better told in another language than not at all."""
    return WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])
