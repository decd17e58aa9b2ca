from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app import plugins
from app.domain.errors import SignatureError
from app.hooks import Malformed, Received, Told, github, standard, stripe
from tests.hooks import senders

NOW = 1_800_000_000.0
HOUR = 3600.0

Sign = Callable[..., tuple[bytes, dict[str, str]]]

KINDS: dict[str, tuple[Any, Sign, str]] = {
    "standard": (standard, senders.standard, senders.STANDARD),
    "stripe": (stripe, senders.stripe, senders.STRIPE),
    "github": (github, senders.github, senders.GITHUB),
}
EVENT = {"id": "evt_1", "type": "invoice.paid", "data": {"amount": 7}}


def received(sign: Sign, body: Any = EVENT, **how: Any) -> Received:
    raw, headers = sign(body, **how)
    return Received(headers=senders.lower(headers), body=raw)


def look(kind: str, given: Received, *, secrets: tuple[str, ...] | None = None, now: float = NOW) -> None:
    module, _, secret = KINDS[kind]
    keys = [module.key(one) for one in secrets or (secret,)]
    module.verify(given, keys, now=now, tolerance=300)


def changed(given: Received, body: bytes | None = None, **headers: bytes | None) -> Received:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {name: value for name, value in {**given.headers, **told}.items() if value is not None}
    return Received(headers=kept, body=given.body if body is None else body)


def at(kind: str, when: float = NOW) -> dict[str, float]:
    return {"at": when} if KINDS[kind][0].TIMED else {}


@pytest.mark.parametrize("kind", plugins.kinds("app.hooks"))
def test_a_kind_has_what_it_takes(kind: str):
    module = plugins.load("app.hooks", kind)

    assert module.SECRET
    assert isinstance(module.TIMED, bool)
    assert all(callable(getattr(module, name)) for name in ("key", "signed", "verify", "document", "told"))
    assert kind in KINDS, "give it a sender, so that what follows is asked of it too"


@pytest.mark.parametrize("kind", KINDS)
def test_what_its_provider_has_signed_is_taken(kind: str):
    _, sign, _ = KINDS[kind]

    look(kind, received(sign, **at(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_its_headers_alone_look_signed_and_none_do_not(kind: str):
    module, sign, _ = KINDS[kind]

    assert module.signed(received(sign).headers)
    assert not module.signed({})


@pytest.mark.parametrize("kind", KINDS)
def test_one_letter_more_is_refused(kind: str):
    _, sign, _ = KINDS[kind]
    given = received(sign, **at(kind))

    with pytest.raises(SignatureError):
        look(kind, changed(given, given.body + b" "))


@pytest.mark.parametrize("kind", KINDS)
def test_another_secret_is_refused(kind: str):
    module, sign, secret = KINDS[kind]
    key = module.key(secret)

    with pytest.raises(SignatureError):
        module.verify(received(sign, **at(kind)), [key[::-1]], now=NOW, tolerance=300)


@pytest.mark.parametrize("kind", KINDS)
def test_while_a_secret_is_changed_both_count(kind: str):
    module, sign, secret = KINDS[kind]
    key = module.key(secret)

    module.verify(received(sign, **at(kind)), [key[::-1], key], now=NOW, tolerance=300)


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_headers_nothing_is_believed(kind: str):
    _, sign, _ = KINDS[kind]
    given = received(sign, **at(kind))

    for name in given.headers:
        if "signature" in name or "timestamp" in name:
            with pytest.raises(SignatureError, match=f"{name} must be there, once"):
                look(kind, changed(given, **{name.replace("-", "_"): None}))


@pytest.mark.parametrize("kind", ["standard", "stripe"])
@pytest.mark.parametrize(("away", "told"), [(-HOUR, "too old"), (HOUR, "too far in the future")])
def test_an_old_or_a_future_time_is_refused(kind: str, away: float, told: str):
    _, sign, _ = KINDS[kind]

    with pytest.raises(SignatureError, match=told):
        look(kind, received(sign, **at(kind, NOW + away)))


@pytest.mark.parametrize("kind", ["standard", "stripe"])
def test_a_time_within_the_tolerance_is_taken(kind: str):
    _, sign, _ = KINDS[kind]

    look(kind, received(sign, **at(kind, NOW - 300)))
    look(kind, received(sign, **at(kind, NOW + 300)))


@pytest.mark.parametrize("wrong", [b"yesterday", b"1e9", b"-5", b"\xb2", b"9" * 40, b" 1"])
def test_a_time_that_is_none_is_refused(wrong: bytes):
    of_standard = changed(received(senders.standard, at=NOW), webhook_timestamp=wrong)
    of_stripe = changed(received(senders.stripe, at=NOW), stripe_signature=b"t=" + wrong + b",v1=00")

    for kind, given in (("standard", of_standard), ("stripe", of_stripe)):
        with pytest.raises(SignatureError, match="timestamp must be a number of seconds"):
            look(kind, given)


def test_of_several_signatures_of_the_standard_one_is_enough():
    given = received(senders.standard, at=NOW)
    several = b"v1,AAAA v1a,BBBB " + given.headers["webhook-signature"]

    look("standard", changed(given, webhook_signature=several))


def test_the_standard_goes_by_svix_own_names_too():
    look("standard", received(senders.standard, at=NOW, begins="svix"))


def test_of_several_signatures_of_stripe_one_is_enough_and_a_test_scheme_counts_for_nothing():
    given = received(senders.stripe, at=NOW, more="v1=00ff,")
    look("stripe", given)

    with pytest.raises(SignatureError):
        look("stripe", changed(given, stripe_signature=given.headers["stripe-signature"].replace(b"v1=", b"v0=")))


def test_two_times_of_stripe_are_none():
    given = received(senders.stripe, at=NOW, more="t=1800000000,")

    with pytest.raises(SignatureError, match="t in stripe-signature must be there, once"):
        look("stripe", given)


def test_githubs_documented_example_is_taken():
    """docs.github.com, "Validating webhook deliveries": secret, payload and signature as they stand there."""
    signature = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    given = Received(headers={"x-hub-signature-256": signature}, body=b"Hello, World!")

    look("github", given)


def test_githubs_older_signature_counts_for_nothing():
    given = received(senders.github)
    older = changed(given, x_hub_signature=b"sha1=00", x_hub_signature_256=None)

    with pytest.raises(SignatureError, match="x-hub-signature-256"):
        look("github", older)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("standard", Told(id="msg_1", type="invoice.paid")),
        ("stripe", Told(id="evt_1", type="invoice.paid")),
        ("github", Told(id="72d3162e-cc78-11e3-81ab-4c9367dc0958", type="push")),
    ],
)
def test_each_says_what_it_is_in_its_own_place(kind: str, told: Told):
    module, sign, _ = KINDS[kind]

    assert module.told(received(sign, **at(kind)), EVENT) == told


def test_the_standard_may_leave_the_type_out():
    assert standard.told(received(senders.standard), [1]) == Told(id="msg_1", type=None)


@pytest.mark.parametrize(
    ("kind", "body", "how"),
    [
        ("standard", EVENT, {"name": "x" * 256}),
        ("standard", {"type": 7}, {}),
        ("stripe", [], {}),
        ("stripe", {"type": "invoice.paid"}, {}),
        ("stripe", {"id": 7, "type": "invoice.paid"}, {}),
        ("stripe", {"id": "a\x00", "type": "invoice.paid"}, {}),
        ("stripe", {"id": "\ud800", "type": "invoice.paid"}, {}),
        ("github", {}, {"name": None}),
        ("github", {}, {"name": "a\tb"}),
    ],
)
def test_an_event_without_a_name_of_its_own_is_malformed(kind: str, body: Any, how: dict[str, Any]):
    module, sign, _ = KINDS[kind]

    with pytest.raises(Malformed, match="must be a"):
        module.told(received(sign, body, **how), body)


def test_githubs_form_holds_its_json():
    raw, headers = senders.github(b"payload=%7B%22zen%22%3A+%22%E0%B9%84%E0%B8%97%E0%B8%A2%22%7D")
    form = {**senders.lower(headers), "content-type": b"application/x-www-form-urlencoded"}

    assert github.document(Received(headers=form, body=raw)) == '{"zen": "ไทย"}'.encode()


@pytest.mark.parametrize("body", [b"", b"zen=1", b"payload=1&payload=2", b"payload", b"\xff", b"a=1&" * 3])
def test_another_form_is_malformed_and_says_what_to_choose(body: bytes):
    form = Received(headers={"content-type": b"application/x-www-form-urlencoded; charset=utf-8"}, body=body)

    with pytest.raises(Malformed, match="choose the content type application/json"):
        github.document(form)


@pytest.mark.parametrize(("kind", "secret"), [("standard", "short"), ("stripe", "whsec_short"), ("github", "short")])
def test_a_weak_secret_is_none(kind: str, secret: str):
    with pytest.raises(ValueError, match="must"):
        KINDS[kind][0].key(secret)
