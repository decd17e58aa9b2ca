"""Numbers as people write them: `฿5,000-8,000`, `1.200,50 €`, `$60k`, `၅ သိန်း`, `๕๐๐ บาท`.

    1,200.50    1.200,50    1 200,50    1'200.50    1,50,000    separators are told apart by what stands around them
    60k    1.5M    5 triệu    5tr5    2 ล้าน 5 แสน    3 lakh    words that multiply
    5-8k    $60k to $80k    $20/hr - $30/hr    ๕๐๐ ถึง ๘๐๐      a range has a low and a high end

A separator before exactly three digits groups: `1.200` is 1200, as nobody writes a price with three decimals. It does
not behind a single zero, nor does a point before an English multiple: `1.234M`. Where a text holds several numbers,
the first beside a currency counts, else the first of all.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

# ruff: noqa: RUF001 - words of many languages

LOOKED_AT = 200
"""Characters of a text in which a number is looked for."""

ENGLISH = {1e3: "k thousand", 1e6: "m mn million millions", 1e9: "bn billion"}
OTHERS = {
    1e3: "nghìn ngàn ribu rb тыс",
    1e5: "lakh lakhs lac lacs lpa",
    1e6: "triệu trieu tr juta jt mio млн",
    1e7: "crore crores cr",
    1e9: "tỷ tỉ mrd млрд",
}
SPACELESS = {
    1e3: "พัน ထောင် 천",
    1e4: "หมื่น သောင်း 万 萬 만",
    1e5: "แสน သိန်း",
    1e6: "ล้าน သန်း",
    1e8: "億 亿 억",
}
"""Of scripts without spaces, where the next word may follow at once: `5 แสนบาท`."""

FIRST = "သောင်း သိန်း သန်း"
"""In Burmese a round amount has the word before it: `သိန်း ၅၀` is fifty lakh."""

FRACTIONED = "triệu trieu tr"
"""What follows at once is a fraction: `5tr5` is 5.5 million."""

CURRENCIES = (
    "aud bdt brl cad chf cny czk dkk eur gbp hkd idr inr jpy khr krw lak mmk mxn myr nok nzd php pkr pln rmb rub sar"
    " sek sgd thb try twd uah usd usdt vnd zar baht dollar dollars dong euro euros kip kr kyat kyats ks peso pesos"
    " pound pounds rm rp rs ringgit rupees rupiah vnđ yen yuan zł đ đồng руб"
)
CURRENCIES_SPACELESS = "บาท ကျပ် เหรียญ ดอลลาร์ 円 元 원"
SIGNS = "$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0"
"""Characters of Unicode's category "currency symbol", as a set of a regular expression."""


def _any_of(words: str) -> str:
    return "|".join(sorted(map(re.escape, words.split()), key=len, reverse=True))


def _times(*tables: dict[float, str]) -> dict[str, float]:
    return {word: times for table in tables for times, words in table.items() for word in words.split()}


TIMES_BY_WORD = _times(ENGLISH, OTHERS, SPACELESS)
ENGLISH_WORDS = frozenset(_times(ENGLISH))
WESTERN_WORDS = " ".join(word for word in _times(ENGLISH, OTHERS) if len(word) > 1)

NUMBER = re.compile(
    r"0[.,]\d+"
    r"|(?P<grouped>\d{1,2}(?:,\d\d)+,\d{3}(?!\d)"
    r"|(?!0[ '])\d{1,3}(?P<group>[., '])\d{3}(?!\d)(?:(?P=group)\d{3}(?!\d))*)"
    r"(?:(?!(?P=group))[.,](?P<fraction>\d+))?"
    r"|(?P<whole>\d+)(?:\.(?P<decimals>\d+)|,(?P<few>\d{1,2}(?!\d))|(?<=\d{4}),(?P<many>\d+))?"
)
MULTIPLE = re.compile(
    rf"(?:(?P<letter>[kKmM]| [KM])| ?(?i:(?P<word>{_any_of(WESTERN_WORDS)})))(?![^\W_])"
    rf"| ?(?i:(?P<fractioned>{_any_of(FRACTIONED)}))(?P<tail>\d{{1,3}})(?!\d)"
    rf"| ?(?P<spaceless>{_any_of(' '.join(SPACELESS.values()))})"
)
FIRST_WORD = re.compile(rf"(?<!\d)(?<!\d )(?P<word>{_any_of(FIRST)}) ?$")

CURRENCY = (
    rf"(?:(?:US|S|A|C|R|HK|NT|NZ)?[{SIGNS}]|(?<![^\W\d_])(?i:{_any_of(CURRENCIES)})(?![^\W\d_])\.?"
    rf"|{_any_of(CURRENCIES_SPACELESS)})"
)
BEFORE = re.compile(rf"{CURRENCY} ?$")
BEHIND = re.compile(rf" ?{CURRENCY}")
NEGATIVE = re.compile(rf"-(?:{CURRENCY} ?)?|{CURRENCY} ?-")

RANGE = re.compile(
    r"(?: ?(?:/|per ) ?[^\W\d_]+\.?)?"
    r" ?(?:[-\u2010-\u2015~\u223c\u301c]{1,2}|to|until|đến|tới|bis|до|sampai|hingga|ถึง|မှ) ?",
    re.IGNORECASE,
)

ALIKE = str.maketrans(
    {"\u066b": ".", "\u066c": ",", "\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "`": "'", "\u2212": "-"}
)
"""Separators of Arabic, all that looks like an apostrophe, and the minus sign."""


@dataclass(frozen=True, slots=True)
class Span:
    """The low and the high end of what a number says: one number, where there is no range."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amount:
    """One number of a text."""

    bare: float
    """Without the word that multiplies it."""

    times: float
    start: int
    end: int
    """With all that belongs to it."""

    money: bool
    """A currency stands beside it."""

    @property
    def value(self) -> float:
        # As a decimal: 1.1 times a million would else be 1100000.0000000002.
        return float(f"{self.bare * self.times:.12g}") if self.times > 1 else self.bare


def span_of(value: Any) -> Span | None:
    """The number that a value is or that a text holds; None where there is none, and for true and false."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _span(value, value)
    return _read(value[:LOOKED_AT]) if isinstance(value, str) else None


@lru_cache(maxsize=1024)
def _read(written: str) -> Span | None:
    text = _plain(written)
    amounts = _summed(text, [_amount(text, number) for number in NUMBER.finditer(text)])
    at = next((n for n, amount in enumerate(amounts) if amount.money), 0)
    if at and RANGE.fullmatch(text, amounts[at - 1].end, amounts[at].start):  # `5,000-8,000 THB`
        at -= 1
    return _from(text, amounts[at:])


def _plain(written: str) -> str:
    """Digits of every script as ours; separators and spaces of one kind each."""
    text = unicodedata.normalize("NFKC", written.translate(ALIKE)).translate(ALIKE)
    text = "".join(str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text)
    return " ".join(text.split())


def _amount(text: str, found: re.Match[str]) -> _Amount:
    """The number that was found, with its multiple, its currency and its sign."""
    bare, times = _number(found), 1.0
    start, end = found.span()
    if (multiple := MULTIPLE.match(text, end)) is not None:
        word = next(multiple[name] for name in ("letter", "word", "fractioned", "spaceless") if multiple[name])
        word = word.strip().lower()
        times, end = TIMES_BY_WORD[word], multiple.end()
        if word in ENGLISH_WORDS and found["group"] == "." and found[0].count(".") == 1 and not found["fraction"]:
            bare = float(found[0])
        if multiple["tail"]:
            bare += float(f"0.{multiple['tail']}")
    elif (first := FIRST_WORD.search(text, max(0, start - 10), start)) is not None:
        times, start = TIMES_BY_WORD[first["word"]], first.start()
    before = BEFORE.search(text, max(0, start - 12), start)
    behind = BEHIND.match(text, end)
    return _Amount(
        bare=-bare if NEGATIVE.fullmatch(text, 0, start) else bare,
        times=times,
        start=before.start() if before else start,
        end=behind.end() if behind else end,
        money=bool(before or behind),
    )


def _number(found: re.Match[str]) -> float:
    if found["grouped"]:
        return float(f"{re.sub('[., ]', '', found['grouped'].replace(chr(39), ''))}.{found['fraction'] or 0}")
    if found["whole"]:
        return float(f"{found['whole']}.{found['decimals'] or found['few'] or found['many'] or 0}")
    return float(found[0].replace(",", "."))


def _summed(text: str, amounts: list[_Amount]) -> list[_Amount]:
    """`2 ล้าน 5 แสน` as one amount."""
    summed: list[_Amount] = []
    for amount in amounts:
        last = summed[-1] if summed else None
        if last and last.times > amount.times > 1 and not text[last.end : amount.start].strip():
            bare = last.bare + amount.value / last.times
            summed[-1] = replace(last, bare=bare, end=amount.end, money=last.money or amount.money)
        else:
            summed.append(amount)
    return summed


def _from(text: str, amounts: list[_Amount]) -> Span | None:
    """The first amount, with the second as the high end where they are a range."""
    if not amounts:
        return None
    low = amounts[0]
    if len(amounts) == 1 or not RANGE.fullmatch(text, low.end, amounts[1].start):
        return _span(low.value, low.value)
    high = amounts[1]
    if abs(low.bare) <= high.bare:  # `5-8k`, `$60k-80`; but `500-1k` has two numbers of their own
        low = replace(low, times=high.times) if low.times == 1 else low
        high = replace(high, times=low.times) if high.times == 1 else high
    # Where the second is smaller it is no range: a date, a telephone number.
    return _span(low.value, max(high.value, low.value))


def _span(low: float, high: float) -> Span | None:
    try:
        return Span(float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None
    except OverflowError:  # a whole number with hundreds of digits
        return None
