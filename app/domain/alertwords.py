"""What alerts about the service's own working say, in the languages it speaks. Of sources and channels see `words`."""

from __future__ import annotations

from dataclasses import dataclass

from app.domain import words


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertWords:
    """One language. Braces are filled by the functions below."""

    still_open: str
    since: str
    undelivered: str
    job_unknown: str
    job_known: str
    jobs_overdue: str
    jobs_on_time: str
    queue_paused: str
    tick_overdue: str
    tick_on_time: str
    tick_failed: str
    tick_well: str
    config_broken: str
    config_well: str
    schedule_missed: str
    schedule_well: str
    schedule_gone: str
    reminder_failing: str
    reminder_well: str
    reminder_gone: str


WORDS_BY_LANGUAGE = {
    "en": AlertWords(
        still_open="{service}: still open",
        since="since {at}",
        undelivered="This did not reach {subject}:",
        job_unknown="Nobody handles jobs of the type {subject}, add its handler or cancel them",
        job_known="Jobs of the type {subject} wait for a handler no more",
        jobs_overdue="Queue {subject} is behind, its first job is {last}",
        jobs_on_time="Queue {subject} has caught up",
        queue_paused="Queue {subject} is paused now",
        tick_overdue="Nobody rang for too long, see whether the scheduler still runs",
        tick_on_time="Ticks come on time again",
        tick_failed="Ticks fail one after another, see the log",
        tick_well="Ticks go well again",
        config_broken="{subject} was changed and cannot be used, what was read before it still counts",
        config_well="{subject} can be used again",
        schedule_missed="Schedule {subject} was missed",
        schedule_well="Schedule {subject} fires again",
        schedule_gone="Schedule {subject} is configured no more",
        reminder_failing="The query of reminder {subject} fails (in a row: {count})",
        reminder_well="The query of reminder {subject} goes well again",
        reminder_gone="Reminder {subject} is configured no more",
    ),
    "th": AlertWords(
        still_open="{service}: ยังไม่ได้รับการแก้ไข",
        since="ตั้งแต่ {at}",
        undelivered="ข้อความนี้ส่งไม่ถึง {subject}:",
        job_unknown="ไม่มีตัวจัดการสำหรับงานประเภท {subject} โปรดเพิ่มตัวจัดการหรือยกเลิกงาน",
        job_known="ไม่มีงานประเภท {subject} ที่รอตัวจัดการแล้ว",
        jobs_overdue="คิว {subject} ล่าช้า งานแรกคือหมายเลข {last}",
        jobs_on_time="คิว {subject} กลับมาทันเวลาแล้ว",
        queue_paused="คิว {subject} ถูกหยุดไว้ชั่วคราว",
        tick_overdue="ไม่มีการเรียกนานเกินไป โปรดดูว่าตัวตั้งเวลายังทำงานอยู่หรือไม่",
        tick_on_time="การเรียกกลับมาตรงเวลาแล้ว",
        tick_failed="การทำงานล้มเหลวติดต่อกัน โปรดดูบันทึก",
        tick_well="การทำงานกลับมาเป็นปกติแล้ว",
        config_broken="{subject} ถูกแก้ไขและใช้ไม่ได้ ยังใช้การตั้งค่าเดิมอยู่",
        config_well="{subject} ใช้ได้อีกครั้งแล้ว",
        schedule_missed="ตารางเวลา {subject} ถูกข้ามไป",
        schedule_well="ตารางเวลา {subject} ทำงานอีกครั้งแล้ว",
        schedule_gone="ไม่มีตารางเวลา {subject} ในการตั้งค่าแล้ว",
        reminder_failing="คำสั่งค้นของการเตือน {subject} ล้มเหลวติดต่อกัน {count} ครั้ง",
        reminder_well="คำสั่งค้นของการเตือน {subject} กลับมาทำงานแล้ว",
        reminder_gone="ไม่มีการเตือน {subject} ในการตั้งค่าแล้ว",
    ),
    "vi": AlertWords(
        still_open="{service}: vẫn chưa được xử lý",
        since="từ {at}",
        undelivered="Tin này không đến được {subject}:",
        job_unknown="Không có gì xử lý công việc loại {subject}, hãy thêm bộ xử lý hoặc hủy chúng",
        job_known="Công việc loại {subject} không còn chờ bộ xử lý nữa",
        jobs_overdue="Hàng đợi {subject} bị chậm, công việc đầu tiên là số {last}",
        jobs_on_time="Hàng đợi {subject} đã theo kịp",
        queue_paused="Hàng đợi {subject} hiện đang tạm dừng",
        tick_overdue="Đã quá lâu không có lượt gọi, hãy xem bộ lập lịch còn chạy không",
        tick_on_time="Các lượt gọi đã đúng giờ trở lại",
        tick_failed="Các lượt chạy lỗi liên tiếp, hãy xem nhật ký",
        tick_well="Các lượt chạy đã tốt trở lại",
        config_broken="{subject} đã bị sửa và không dùng được, cấu hình cũ vẫn có hiệu lực",
        config_well="{subject} đã dùng được trở lại",
        schedule_missed="Lịch {subject} đã bị lỡ",
        schedule_well="Lịch {subject} đã chạy trở lại",
        schedule_gone="Lịch {subject} không còn trong cấu hình",
        reminder_failing="Truy vấn của lời nhắc {subject} lỗi {count} lần liên tiếp",
        reminder_well="Truy vấn của lời nhắc {subject} đã chạy tốt trở lại",
        reminder_gone="Lời nhắc {subject} không còn trong cấu hình",
    ),
    "my": AlertWords(
        still_open="{service}: မဖြေရှင်းရသေးပါ",
        since="{at} မှ စ၍",
        undelivered="ဤစာသည် {subject} ထံ မရောက်ပါ:",
        job_unknown="{subject} အမျိုးအစား အလုပ်များကို လုပ်ဆောင်မည့်သူ မရှိပါ။ ထည့်ပါ သို့မဟုတ် ပယ်ဖျက်ပါ",
        job_known="{subject} အမျိုးအစား အလုပ်များ စောင့်ဆိုင်းရန် မလိုတော့ပါ",
        jobs_overdue="တန်းစီ {subject} နောက်ကျနေပါသည်၊ ပထမဆုံး အလုပ်မှာ နံပါတ် {last} ဖြစ်ပါသည်",
        jobs_on_time="တန်းစီ {subject} အချိန်မီ ပြန်ဖြစ်ပါပြီ",
        queue_paused="တန်းစီ {subject} ကို ယခု ရပ်ထားပါသည်",
        tick_overdue="အချိန်ကြာမြင့်စွာ ခေါ်ခြင်း မရှိပါ။ အချိန်ဇယား လုပ်ဆောင်နေသလား ကြည့်ပါ",
        tick_on_time="ခေါ်ခြင်းများ အချိန်မှန် ပြန်ဖြစ်ပါပြီ",
        tick_failed="လုပ်ဆောင်မှုများ ဆက်တိုက် မအောင်မြင်ပါ။ မှတ်တမ်းကို ကြည့်ပါ",
        tick_well="လုပ်ဆောင်မှုများ ပြန်ကောင်းသွားပါပြီ",
        config_broken="{subject} ကို ပြင်ထားပြီး အသုံးပြု၍ မရပါ။ ယခင်ဆက်တင်ကို ဆက်သုံးနေပါသည်",
        config_well="{subject} ကို ပြန်အသုံးပြု၍ ရပါပြီ",
        schedule_missed="အချိန်ဇယား {subject} လွတ်သွားပါသည်",
        schedule_well="အချိန်ဇယား {subject} ပြန်လုပ်ဆောင်ပါပြီ",
        schedule_gone="အချိန်ဇယား {subject} သည် ဆက်တင်တွင် မရှိတော့ပါ",
        reminder_failing="သတိပေးချက် {subject} ၏ ရှာဖွေမှု {count} ကြိမ်ဆက်တိုက် မအောင်မြင်ပါ",
        reminder_well="သတိပေးချက် {subject} ၏ ရှာဖွေမှု ပြန်ကောင်းသွားပါပြီ",
        reminder_gone="သတိပေးချက် {subject} သည် ဆက်တင်တွင် မရှိတော့ပါ",
    ),
}

OPENED = frozenset(
    {
        "job_unknown",
        "jobs_overdue",
        "tick_overdue",
        "tick_failed",
        "config_broken",
        "schedule_missed",
        "reminder_failing",
    },
)
"""The kinds of alerts that are worded here."""


def opened(language: str, kind: str, subject: str, *, count: int, last: int | None) -> str:
    """What is wrong; `count` are failures in a row, `last` is the id of a job."""
    told: str = getattr(_words(language), kind)
    return told.format(subject=subject, count=count, last=last)


def over(language: str, kind: str, subject: str, *, healed: bool) -> str:
    """Why an alert is closed, of any kind: it goes well, or nothing is left of it."""
    if kind not in OPENED:
        return words.over(language, kind, subject, healed=healed)
    told = _words(language)
    well, gone = {
        "job_unknown": (told.job_known, told.job_known),
        "jobs_overdue": (told.jobs_on_time, told.queue_paused),
        "tick_overdue": (told.tick_on_time, told.tick_on_time),
        "tick_failed": (told.tick_well, told.tick_well),
        "config_broken": (told.config_well, told.config_well),
        "schedule_missed": (told.schedule_well, told.schedule_gone),
        "reminder_failing": (told.reminder_well, told.reminder_gone),
    }[kind]
    return (well if healed else gone).format(subject=subject)


def still_open(language: str, *, service: str) -> str:
    """The heading of what is told again."""
    return _words(language).still_open.format(service=service)


def since(language: str, at: str) -> str:
    """When it began."""
    return _words(language).since.format(at=at)


def undelivered(language: str, subject: str) -> str:
    """The heading of an alert that somebody else was to get."""
    return _words(language).undelivered.format(subject=subject)


def _words(language: str) -> AlertWords:
    return WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])
