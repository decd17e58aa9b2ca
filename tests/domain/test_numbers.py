"""Numbers as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.numbers import Span, span_of

THAI = str.maketrans("0123456789", "๐๑๒๓๔๕๖๗๘๙")
BURMESE = str.maketrans("0123456789", "၀၁၂၃၄၅၆၇၈၉")
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (500, 500),
        (0, 0),
        (2.5, 2.5),
        ("500", 500),
        ("1,500", 1500),
        ("1.200", 1200),
        ("1 200", 1200),
        ("1'200", 1200),
        ("1\u2019200.\u2013 CHF", 1200),
        ("1\N{NARROW NO-BREAK SPACE}500 €", 1500),
        ("1,200.50", 1200.5),
        ("1.200,50 €", 1200.5),
        ("1 200,50 zł", 1200.5),
        ("1'200.50", 1200.5),
        ("1.200.000", 1_200_000),
        ("15,000,000đ", 15_000_000),
        ("1,50,000.75 INR", 150_000.75),
        ("12,5", 12.5),
        ("0,500", 0.5),
        ("0.125", 0.125),
        ("1500,500", 1500.5),
        ("1,5000", 1),
        ("$1,500.50 fixed", 1500.5),
        ("$31,2k", 31_200),
        ("฿ 15,000 / เดือน", 15000),
        ("Rs.5000", 5000),
        ("US$ 40.50 per hour", 40.5),
        ("$60k", 60_000),
        ("S$60K", 60_000),
        ("10k a month", 10_000),
        ("1.5M", 1_500_000),
        ("1.234M", 1_234_000),
        ("$5 M", 5_000_000),
        ("2 million dollars", 2_000_000),
        ("5 triệu", 5_000_000),
        ("1,5 triệu", 1_500_000),
        ("5tr", 5_000_000),
        ("5tr5", 5_500_000),
        ("500 nghìn đồng", 500_000),
        ("3 lakh kyats", 300_000),
        ("₹12 LPA", 1_200_000),
        ("1 lakh 50 thousand", 150_000),
        ("5 แสนบาท", 500_000),
        ("2 ล้าน 5 แสน", 2_500_000),
        ("๕๐๐ บาท", 500),
        ("၅ သိန်း", 500_000),
        ("သိန်း ၅၀", 5_000_000),
        ("၅၀၀,၀၀၀ ကျပ်", 500_000),
        ("٥٠٠٫٥", 500.5),
        ("١٬٥٠٠", 1500),
        ("５００", 500),
        ("-20", -20),
        ("\N{MINUS SIGN}$20", -20),
        ("$-20", -20),
        ("5 kids", 5),
        ("3 months", 3),
        ("5 m", 5),
        ("10m2", 10),
        ("2 positions, ฿15,000", 15_000),
        ("40 hours at $25", 25),
        ("2026-11-30", 2026),
        ("8000-5000", 8000),
        ("", None),
        ("soon", None),
        ("ตามตกลง", None),
        (None, None),
        (True, None),
        ([500], None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("9" * 400, 10.0**200),
    ],
)
def test_one_number_is_read(value: Any, number: float | None):
    span = span_of(value)

    assert span == (None if number is None else Span(number, number))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("฿5,000-8,000", 5000, 8000),
        ("5,000-8,000 THB", 5000, 8000),
        ("5,000 บาท - 8,000 บาท", 5000, 8000),
        ("25.000\u201330.000 บาท", 25000, 30000),
        ("1 200 - 1 500 €", 1200, 1500),
        ("1.200 - 1.500,50 €", 1200, 1500.5),
        ("$60-$80", 60, 80),
        ("60-$80", 60, 80),
        ("$60k to $80k", 60000, 80000),
        ("$60K\u2014$80K", 60000, 80000),
        ("$60k-80", 60000, 80000),
        ("5-8k", 5000, 8000),
        ("500-1k", 500, 1000),
        ("$20/hr - $30/hr", 20, 30),
        ("£35 per day to £40 per day", 35, 40),
        ("20-30 triệu", 20_000_000, 30_000_000),
        ("0.5-1 lakh", 50_000, 100_000),
        ("๕๐๐ ถึง ๘๐๐ บาท", 500, 800),
        ("သိန်း ၅၀-၆၀", 5_000_000, 6_000_000),
        ("၅၀၀,၀၀၀-၈၀၀,၀၀၀ ကျပ်", 500_000, 800_000),
        ("2 people, 300-500 USD", 300, 500),
    ],
)
def test_a_range_has_two_ends(text: str, low: float, high: float):
    assert span_of(text) == Span(low, high)


AMOUNTS = st.integers(min_value=0, max_value=10**12)


@pytest.mark.parametrize("separator", [",", ".", " ", "'", "\N{NO-BREAK SPACE}", "\u2019"])
@given(amount=AMOUNTS)
def test_a_grouped_number_is_the_number(separator: str, amount: int):
    assert span_of(f"{amount:,}".replace(",", separator)) == Span(amount, amount)


@pytest.mark.parametrize(("group", "point"), [(",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ",")])
@given(amount=AMOUNTS, cents=st.integers(min_value=0, max_value=99))
def test_two_decimals_are_read_whatever_parts_them(group: str, point: str, amount: int, cents: int):
    written = f"{amount:,}".replace(",", group) + f"{point}{cents:02}"

    span = span_of(written)

    assert span is not None
    assert span.low == span.high == pytest.approx(float(f"{amount}.{cents:02}"))


@pytest.mark.parametrize("digits", [THAI, BURMESE, ARABIC])
@given(amount=AMOUNTS)
def test_digits_of_every_script_are_the_same(digits: dict[int, int], amount: int):
    assert span_of(f"{amount:,}".translate(digits)) == span_of(f"{amount:,}")


@given(low=AMOUNTS, more=AMOUNTS, currency=st.sampled_from(["฿{}", "{} USD", "{} บาท", "{} €", "{}"]))
def test_the_ends_of_a_range_are_its_numbers(low: int, more: int, currency: str):
    written = currency.format(f"{low:,}-{low + more:,}")

    assert span_of(written) == Span(low, low + more)


@given(st.text() | st.text(alphabet="0123456789.,' -kKmM$฿€๕၅သိန်းtrlakh", max_size=60) | st.floats() | st.integers())
def test_whatever_is_read_has_its_low_end_below_its_high_one(value: Any):
    span = span_of(value)

    assert span is None or span.low <= span.high
