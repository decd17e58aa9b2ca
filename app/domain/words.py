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
    jobs_failed: str
    jobs_well: str
    jobs_gone: str
    one_kept: str
    many_kept: str
    source_failing: str
    source_well: str
    source_gone: str
    source_blind: str
    source_lists: str
    source_silent: str
    source_has_news: str
    source_unstable: str
    source_stable: str
    message_failed: str
    messages_failed: str
    recipient_well: str
    recipient_gone: str
    recipient_blocked: str
    recipient_unblocked: str
    channel_parked: str
    channel_open: str
    channel_gone: str
    quota_low: str
    quota_well: str
    and_more: str
    moved: str
    distrusted: str


WORDS_BY_LANGUAGE = {
    "en": Words(
        one_new="1 new item",
        many_new="{count} new items",
        untitled="(no title)",
        test="This is a test message from {service}. Notifications will arrive here.",
        watching="Now watching {source}. Items known already: {count}. Only new ones will be told.",
        alert="{service}: something needs a look",
        all_clear="{service}: alert closed",
        job_failed="Job {subject} failed (job {last})",
        jobs_failed="{count} jobs of {subject} failed, the last is {last}",
        jobs_well="Jobs of {subject} go well again",
        jobs_gone="No failed jobs of {subject} are left",
        one_kept="1 failed one is kept",
        many_kept="{count} failed ones are kept",
        source_failing="Source {subject} failed {count} times in a row",
        source_well="Source {subject} answers again",
        source_gone="Source {subject} is configured no more",
        source_blind="Source {subject} lists nothing any more (rounds: {count}), see whether its list has moved",
        source_lists="Source {subject} lists items again",
        source_silent="Source {subject} has had nothing new (days: {count}), see whether it still goes on",
        source_has_news="Source {subject} has something new again",
        source_unstable="Source {subject} gives what is known new keys and is not told, say what tells items apart",
        source_stable="Items of source {subject} can be told apart again",
        message_failed="A message to {subject} could not be delivered",
        messages_failed="{count} messages to {subject} could not be delivered",
        recipient_well="Messages to {subject} arrive again",
        recipient_gone="Recipient {subject} is configured no more",
        recipient_blocked="Recipient {subject} is not reached any more, see whether the address is right",
        recipient_unblocked="Recipient {subject} is written to again",
        channel_parked="Channel {subject} takes nothing for now, what is to be told waits or goes to the fallback",
        channel_open="Channel {subject} takes messages again",
        channel_gone="Channel {subject} is configured no more",
        quota_low="Messages of channel {subject} run low for this month",
        quota_well="Channel {subject} has messages enough again",
        and_more="and {count} more",
        moved="{source} has moved for good to {host}. It is read there now: change its url.",
        distrusted="The server of {source} says that nothing has changed when it has. It is read whole each time now.",
    ),
    "th": Words(
        one_new="มีรายการใหม่ 1 รายการ",
        many_new="มีรายการใหม่ {count} รายการ",
        untitled="(ไม่มีหัวข้อ)",
        test="นี่คือข้อความทดสอบจาก {service} การแจ้งเตือนจะส่งมาที่นี่",
        watching="เริ่มติดตาม {source} แล้ว มีรายการเดิม {count} รายการ จะแจ้งเฉพาะรายการใหม่",
        alert="{service}: มีเรื่องที่ต้องตรวจสอบ",
        all_clear="{service}: ปิดการแจ้งเตือนแล้ว",
        job_failed="งาน {subject} ล้มเหลว (หมายเลข {last})",
        jobs_failed="งาน {subject} ล้มเหลว {count} งาน ล่าสุดคือหมายเลข {last}",
        jobs_well="งาน {subject} กลับมาทำงานตามปกติแล้ว",
        jobs_gone="ไม่มีงาน {subject} ที่ล้มเหลวเหลืออยู่แล้ว",
        one_kept="งานที่ล้มเหลว 1 งานยังเก็บไว้",
        many_kept="งานที่ล้มเหลว {count} งานยังเก็บไว้",
        source_failing="แหล่งข้อมูล {subject} ล้มเหลวติดต่อกัน {count} ครั้ง",
        source_well="แหล่งข้อมูล {subject} ตอบกลับตามปกติแล้ว",
        source_gone="ไม่มีแหล่งข้อมูล {subject} ในการตั้งค่าแล้ว",
        source_blind="แหล่งข้อมูล {subject} ไม่มีรายการเลย (จำนวนครั้ง: {count}) โปรดดูว่ารายการย้ายไปที่อื่นหรือไม่",
        source_lists="แหล่งข้อมูล {subject} มีรายการอีกครั้งแล้ว",
        source_silent="แหล่งข้อมูล {subject} ไม่มีอะไรใหม่ (จำนวนวัน: {count}) โปรดดูว่ายังเผยแพร่อยู่หรือไม่",
        source_has_news="แหล่งข้อมูล {subject} มีรายการใหม่อีกครั้งแล้ว",
        source_unstable="แหล่งข้อมูล {subject} เปลี่ยนรหัสของรายการเดิม จึงไม่แจ้งรายการใด โปรดระบุว่าจะแยกรายการด้วยอะไร",
        source_stable="แยกรายการของแหล่งข้อมูล {subject} ได้ตามปกติแล้ว",
        message_failed="ส่งข้อความถึง {subject} ไม่สำเร็จ",
        messages_failed="ส่งข้อความถึง {subject} ไม่สำเร็จ {count} ข้อความ",
        recipient_well="ข้อความถึง {subject} ส่งได้ตามปกติแล้ว",
        recipient_gone="ไม่มีผู้รับ {subject} ในการตั้งค่าแล้ว",
        recipient_blocked="ส่งถึงผู้รับ {subject} ไม่ได้แล้ว จึงหยุดส่ง โปรดตรวจสอบที่อยู่",
        recipient_unblocked="เริ่มส่งถึงผู้รับ {subject} อีกครั้งแล้ว",
        channel_parked="ช่องทาง {subject} ไม่รับข้อความในขณะนี้ ข้อความจะรอหรือส่งไปยังผู้รับสำรอง",
        channel_open="ช่องทาง {subject} รับข้อความอีกครั้งแล้ว",
        channel_gone="ไม่มีช่องทาง {subject} ในการตั้งค่าแล้ว",
        quota_low="โควตาข้อความเดือนนี้ของช่องทาง {subject} ใกล้หมด",
        quota_well="ช่องทาง {subject} มีโควตาข้อความเพียงพอแล้ว",
        and_more="และอีก {count} รายการ",
        moved="{source} ย้ายไปที่ {host} อย่างถาวรแล้ว ตอนนี้อ่านจากที่นั่น โปรดแก้ที่อยู่ในการตั้งค่า",
        distrusted="เซิร์ฟเวอร์ของ {source} แจ้งว่าไม่มีอะไรเปลี่ยนแปลงทั้งที่มี จากนี้จะอ่านทั้งหมดทุกครั้ง",
    ),
    "vi": Words(
        one_new="Có 1 mục mới",
        many_new="Có {count} mục mới",
        untitled="(không có tiêu đề)",
        test="Đây là tin nhắn thử từ {service}. Thông báo sẽ được gửi đến đây.",
        watching="Đã bắt đầu theo dõi {source}. Số mục đã có: {count}. Chỉ các mục mới sẽ được thông báo.",
        alert="{service}: có việc cần kiểm tra",
        all_clear="{service}: đã đóng cảnh báo",
        job_failed="Công việc {subject} bị lỗi (số {last})",
        jobs_failed="{count} công việc {subject} bị lỗi, mới nhất là số {last}",
        jobs_well="Công việc {subject} đã chạy tốt trở lại",
        jobs_gone="Không còn công việc {subject} nào bị lỗi",
        one_kept="1 công việc bị lỗi vẫn được giữ lại",
        many_kept="{count} công việc bị lỗi vẫn được giữ lại",
        source_failing="Nguồn {subject} lỗi {count} lần liên tiếp",
        source_well="Nguồn {subject} đã trả lời trở lại",
        source_gone="Nguồn {subject} không còn trong cấu hình",
        source_blind="Nguồn {subject} không liệt kê gì nữa (số lần: {count}), hãy xem danh sách còn ở đó không",
        source_lists="Nguồn {subject} đã liệt kê các mục trở lại",
        source_silent="Nguồn {subject} không có gì mới (số ngày: {count}), hãy xem nguồn còn hoạt động không",
        source_has_news="Nguồn {subject} lại có mục mới",
        source_unstable="Nguồn {subject} đổi mã của các mục đã biết nên không được thông báo, hãy ghi cách phân biệt",
        source_stable="Các mục của nguồn {subject} đã phân biệt được trở lại",
        message_failed="Không gửi được tin nhắn đến {subject}",
        messages_failed="Không gửi được {count} tin nhắn đến {subject}",
        recipient_well="Tin nhắn đến {subject} đã gửi được trở lại",
        recipient_gone="Người nhận {subject} không còn trong cấu hình",
        recipient_blocked="Không gửi được đến {subject} nữa nên đã dừng, hãy kiểm tra địa chỉ",
        recipient_unblocked="Đã gửi lại cho người nhận {subject}",
        channel_parked="Kênh {subject} hiện không nhận tin nhắn, các tin sẽ chờ hoặc được gửi đến người nhận dự phòng",
        channel_open="Kênh {subject} đã nhận tin nhắn trở lại",
        channel_gone="Kênh {subject} không còn trong cấu hình",
        quota_low="Số tin nhắn tháng này của kênh {subject} sắp hết",
        quota_well="Kênh {subject} lại có đủ tin nhắn",
        and_more="và {count} mục khác",
        moved="{source} đã chuyển hẳn sang {host}. Hiện đang đọc ở đó: hãy đổi url.",
        distrusted="Máy chủ của {source} báo không có gì thay đổi dù đã có. Từ nay nguồn này được đọc toàn bộ mỗi lần.",
    ),
    "my": Words(
        one_new="အသစ် 1 ခု ရှိပါသည်",
        many_new="အသစ် {count} ခု ရှိပါသည်",
        untitled="(ခေါင်းစဉ် မရှိပါ)",
        test="{service} မှ စမ်းသပ်စာ ဖြစ်ပါသည်။ အသိပေးချက်များကို ဤနေရာသို့ ပို့ပါမည်။",
        watching="{source} ကို စတင်စောင့်ကြည့်ပါပြီ။ ရှိပြီးသား {count} ခု ဖြစ်ပါသည်။ အသစ်များကိုသာ အသိပေးပါမည်။",
        alert="{service}: စစ်ဆေးရန် လိုအပ်ပါသည်",
        all_clear="{service}: သတိပေးချက်ကို ပိတ်လိုက်ပါပြီ",
        job_failed="အလုပ် {subject} မအောင်မြင်ပါ (နံပါတ် {last})",
        jobs_failed="အလုပ် {subject} {count} ခု မအောင်မြင်ပါ၊ နောက်ဆုံးမှာ နံပါတ် {last} ဖြစ်ပါသည်",
        jobs_well="အလုပ် {subject} ပြန်ကောင်းသွားပါပြီ",
        jobs_gone="မအောင်မြင်သော အလုပ် {subject} မကျန်တော့ပါ",
        one_kept="မအောင်မြင်သော အလုပ် 1 ခု သိမ်းထားပါသည်",
        many_kept="မအောင်မြင်သော အလုပ် {count} ခု သိမ်းထားပါသည်",
        source_failing="{subject} ကို {count} ကြိမ်ဆက်တိုက် ဖတ်၍ မရပါ",
        source_well="{subject} ကို ပြန်ဖတ်၍ ရပါပြီ",
        source_gone="ရင်းမြစ် {subject} သည် ဆက်တင်တွင် မရှိတော့ပါ",
        source_blind="ရင်းမြစ် {subject} တွင် ဘာမျှ မပါတော့ပါ (အကြိမ်: {count})။ စာရင်း ရွှေ့သွားသလား ကြည့်ပါ",
        source_lists="ရင်းမြစ် {subject} တွင် စာရင်း ပြန်ပါလာပါပြီ",
        source_silent="ရင်းမြစ် {subject} တွင် အသစ် မရှိပါ (ရက်: {count})။ ဆက်လက် ထုတ်ဝေနေသလား ကြည့်ပါ",
        source_has_news="ရင်းမြစ် {subject} တွင် အသစ် ပြန်ရှိလာပါပြီ",
        source_unstable="ရင်းမြစ် {subject} သည် သိပြီးသားများ၏ ကုဒ်များကို ပြောင်းနေသဖြင့် ဘာမျှ အသိမပေးပါ။ ခွဲခြားနည်းကို ရေးပါ",
        source_stable="ရင်းမြစ် {subject} ၏ စာရင်းများကို ပြန်ခွဲခြားနိုင်ပါပြီ",
        message_failed="{subject} သို့ စာ ပို့၍ မရပါ",
        messages_failed="{subject} သို့ စာ {count} စောင် ပို့၍ မရပါ",
        recipient_well="{subject} သို့ စာ ပြန်ပို့၍ ရပါပြီ",
        recipient_gone="လက်ခံသူ {subject} သည် ဆက်တင်တွင် မရှိတော့ပါ",
        recipient_blocked="{subject} သို့ ပို့၍ မရတော့သဖြင့် ရပ်ထားပါသည်။ လိပ်စာ မှန်သလား ကြည့်ပါ",
        recipient_unblocked="လက်ခံသူ {subject} သို့ ပြန်ပို့နေပါပြီ",
        channel_parked="ချန်နယ် {subject} သည် ယခု စာ လက်မခံပါ။ စာများ စောင့်ပါမည် သို့မဟုတ် အရန်လက်ခံသူထံ ပို့ပါမည်",
        channel_open="ချန်နယ် {subject} သည် စာ ပြန်လက်ခံပါပြီ",
        channel_gone="ချန်နယ် {subject} သည် ဆက်တင်တွင် မရှိတော့ပါ",
        quota_low="ချန်နယ် {subject} ၏ ယခုလ စာအရေအတွက် ကုန်ခါနီးပါပြီ",
        quota_well="ချန်နယ် {subject} တွင် စာအရေအတွက် ပြန်လုံလောက်ပါပြီ",
        and_more="နောက်ထပ် {count} ခု",
        moved="{source} သည် {host} သို့ အပြီးအပိုင် ပြောင်းသွားပါပြီ။ ယခု ထိုနေရာမှ ဖတ်နေပါသည်။ ဆက်တင်ရှိ လိပ်စာကို ပြောင်းပါ။",
        distrusted="{source} ၏ ဆာဗာသည် ပြောင်းလဲမှုရှိသော်လည်း မရှိဟု ပြောပါသည်။ ယခုမှစ၍ အကြိမ်တိုင်း အားလုံးကို ဖတ်ပါမည်။",
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


def moved(language: str, *, source: str, host: str) -> str:
    """The note of a source that is permanently redirected. The host alone: an address may hold a secret."""
    return _words(language).moved.format(source=source, host=host)


def distrusted(language: str, *, source: str) -> str:
    """The note of a source whose server answered "unchanged" though something had changed."""
    return _words(language).distrusted.format(source=source)


def alert_heading(language: str, *, service: str, over: bool) -> str:
    """The first line of an alert; `over`: it tells of nothing new that is wrong."""
    words = _words(language)
    return (words.all_clear if over else words.alert).format(service=service)


def jobs_failed(language: str, subject: str, *, count: int, last: int | None) -> str:
    """Jobs of this type failed; `last` is the id of the latest."""
    words = _words(language)
    return (words.job_failed if count == 1 else words.jobs_failed).format(subject=subject, count=count, last=last)


def source_failing(language: str, subject: str, *, count: int) -> str:
    """So many rounds of this source failed in a row."""
    return _words(language).source_failing.format(subject=subject, count=count)


def source_state(language: str, kind: str, subject: str, *, count: int) -> str:
    """What is wrong with a source that answers; `count` are the rounds of a blind one, the days of a silent one."""
    words = _words(language)
    told = {
        "source_blind": words.source_blind,
        "source_silent": words.source_silent,
        "source_unstable": words.source_unstable,
    }
    return told[kind].format(subject=subject, count=count)


def messages_failed(language: str, subject: str, *, count: int) -> str:
    """Messages to this recipient were given up."""
    words = _words(language)
    return (words.message_failed if count == 1 else words.messages_failed).format(subject=subject, count=count)


def not_reached(language: str, kind: str, subject: str) -> str:
    """What keeps messages from a recipient or a channel: nobody is there, it takes nothing, or soon will not."""
    words = _words(language)
    told = {
        "recipient_blocked": words.recipient_blocked,
        "channel_parked": words.channel_parked,
        "quota_low": words.quota_low,
    }
    return told[kind].format(subject=subject)


def over(language: str, kind: str, subject: str, *, healed: bool) -> str:
    """Why an alert of that kind, one of `domain.alerts.Kind`, is closed: it goes well, or nothing is left of it."""
    words = _words(language)
    well, gone = {
        "job_failed": (words.jobs_well, words.jobs_gone),
        "source_failing": (words.source_well, words.source_gone),
        "message_failed": (words.recipient_well, words.recipient_gone),
        "source_blind": (words.source_lists, words.source_gone),
        "source_silent": (words.source_has_news, words.source_gone),
        "source_unstable": (words.source_stable, words.source_gone),
        "recipient_blocked": (words.recipient_unblocked, words.recipient_gone),
        "channel_parked": (words.channel_open, words.channel_gone),
        "quota_low": (words.quota_well, words.channel_gone),
    }[kind]
    return (well if healed else gone).format(subject=subject)


def kept(language: str, count: str) -> str:
    """So many failed jobs are left; a count that is not known may end with a sign."""
    words = _words(language)
    return words.one_kept if count == "1" else words.many_kept.format(count=count)


def and_more(language: str, count: int) -> str:
    """What stands for the lines that were left out."""
    return _words(language).and_more.format(count=count)


def _words(language: str) -> Words:
    """English for a language that is not spoken: better told in another language than not at all."""
    return WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])
