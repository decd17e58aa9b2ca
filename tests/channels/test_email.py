from __future__ import annotations

import asyncio
import ssl
import subprocess
from datetime import UTC, datetime, timedelta, timezone
from email import message_from_bytes, policy
from uuid import UUID

import httpx
import pytest
from aiosmtpd.smtp import AuthResult
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.channels import email
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered
from app.domain.messages import Digest, DigestItem, Message
from tests.channels.smtp_server import Mailbox, listening

KEY = UUID("5f1a2b3c-0000-4000-8000-000000000001")
FIRST_TRIED_AT = datetime(2026, 11, 30, 16, 5, tzinfo=timezone(timedelta(hours=7)))


def options(port: int = 1, **more) -> email.Options:
    plain = {"host": "127.0.0.1", "port": port, "sender": "Wakebell <bell@example.com>", "security": "none"}
    return email.Options.model_validate(plain | more)


def digest(*titles: str, to: str = "me@example.org", language: str = "en") -> Digest:
    items = tuple(
        DigestItem(title=title, link="https://e.test/1", source="board", subscriptions=("python",)) for title in titles
    )
    return Digest(items=items, to=to, language=language)


def message(told: Digest, **more) -> Message:
    (body,) = email.compose(told, options(**more))
    return Message(id=1, recipient="me", channel="mail", body=body.body, retry_key=KEY, first_tried_at=FIRST_TRIED_AT)


def parsed(raw: bytes):
    return message_from_bytes(raw, policy=policy.SMTP)


def text_of(raw: bytes):
    return parsed(raw).get_content().replace("\r\n", "\n").rstrip("\n")


async def send(told: Message, chosen: email.Options):
    async with httpx.AsyncClient() as http:
        return await email.send(told, chosen, http)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", key, "-out", cert, "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return context, cert


def password_check(server, session, envelope, mechanism, data):
    right = data.login == b"bell" and data.password == b"right"
    return AuthResult(success=right, handled=False, auth_data=data)


async def test_a_mail_arrives_as_it_was_composed():
    mailbox = Mailbox()
    told = digest("งานเขียนบอท 👩‍👩‍👧", "Cook", language="th")

    async with listening(mailbox) as port:
        receipt = await send(message(told), options(port))

    (envelope,) = mailbox.envelopes
    mail = parsed(envelope.content)
    assert receipt.provider_id == "queued as 4711"
    assert (envelope.mail_from, envelope.rcpt_tos) == ("bell@example.com", ["me@example.org"])
    assert mail["Subject"] == "มีรายการใหม่ 2 รายการ: งานเขียนบอท 👩‍👩‍👧"
    assert (mail["From"], mail["To"]) == ("Wakebell <bell@example.com>", "me@example.org")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert text_of(envelope.content) == email.compose(told, options())[0].text


async def test_every_try_has_the_same_bytes():
    mailbox = Mailbox()
    told = message(digest("Dev"))

    async with listening(mailbox) as port:
        await send(told, options(port))
        await send(told, options(port, sender="someone@else.test"))

    first, second = mailbox.envelopes
    assert first.content == second.content
    assert first.mail_from == second.mail_from
    assert parsed(first.content)["Message-ID"] == f"<{KEY}@example.com>"
    assert parsed(first.content)["Date"].datetime == datetime(2026, 11, 30, 9, 5, tzinfo=UTC)


async def test_lines_that_begin_with_a_dot_arrive():
    mailbox = Mailbox()

    async with listening(mailbox) as port:
        await send(message(digest(".hidden", ".", "..")), options(port))

    assert "\n\n.hidden\n" in text_of(mailbox.envelopes[0].content)
    assert "\n\n.\n" in text_of(mailbox.envelopes[0].content)


@pytest.mark.parametrize(
    ("replies", "failure", "words"),
    [
        ({"rcpt": "550 no such user"}, PermanentFailure, "550: no such user; check the recipient's `to`"),
        ({"rcpt": "451 greylisted"}, TemporaryFailure, "451: greylisted"),
        ({"mail": "553 not yours"}, PermanentFailure, "`sender` must be an address this account may send from"),
        ({"mail": "421 busy"}, TemporaryFailure, "421: busy"),
        ({"data": "554 spam"}, PermanentFailure, "554: spam; the server does not take this mail"),
        ({"data": "452 full"}, TemporaryFailure, "452: full"),
        ({"data": "hang up"}, Unanswered, "127.0.0.1 did not say whether it took the mail"),
    ],
)
async def test_a_reply_decides_whether_to_try_again(replies, failure, words):
    async with listening(Mailbox(**replies)) as port:
        with pytest.raises(failure) as caught:
            await send(message(digest("Dev")), options(port))

    assert type(caught.value) is failure
    assert words in str(caught.value)


@pytest.mark.parametrize("reply", ["hang up", "500 what"])
async def test_a_mail_that_was_taken_is_sent_whatever_the_farewell(reply):
    mailbox = Mailbox(quit=reply)

    async with listening(mailbox) as port:
        receipt = await send(message(digest("Dev")), options(port))

    assert receipt.provider_id == "queued as 4711"


async def test_a_server_that_is_not_there_is_temporary():
    async with listening(Mailbox()) as port:
        pass

    with pytest.raises(TemporaryFailure, match=r"127\.0\.0\.1 could not be reached") as caught:
        await send(message(digest("Dev")), options(port))

    assert type(caught.value) is TemporaryFailure


async def test_a_silent_server_is_given_up_in_time(monkeypatch):
    monkeypatch.setattr(email, "TIMEOUT_SECONDS", 0.05)
    left = asyncio.Event()

    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()
        left.set()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        with pytest.raises(TemporaryFailure, match="did not answer in time"):
            await send(message(digest("Dev")), options(server.sockets[0].getsockname()[1]))
        await left.wait()


async def test_the_right_password_is_taken():
    mailbox = Mailbox()

    async with listening(mailbox, authenticator=password_check, auth_require_tls=False) as port:
        await send(message(digest("Dev")), options(port, username="bell", password="right"))

    assert mailbox.users == [b"bell"]


async def test_a_wrong_password_is_permanent_and_never_told():
    async with listening(Mailbox(), authenticator=password_check, auth_require_tls=False) as port:
        with pytest.raises(PermanentFailure) as caught:
            await send(message(digest("Dev")), options(port, username="bell", password="hunter2"))

    assert "check the channel's `username` and `password`" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_mail_travels_encrypted(security, certificate, monkeypatch):
    context, cert = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    mailbox = Mailbox()
    settings = {"tls": context} if security == "tls" else {"tls_context": context, "require_starttls": True}

    async with listening(mailbox, **settings) as port:
        await send(message(digest("Dev")), options(port, security=security))

    assert len(mailbox.envelopes) == 1


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_nobody_vouches_for_is_refused(security, certificate):
    context, _ = certificate
    mailbox = Mailbox()
    settings = {"tls": context} if security == "tls" else {"tls_context": context}

    async with listening(mailbox, **settings) as port:
        with pytest.raises(TemporaryFailure, match="certificate"):
            await send(message(digest("Dev")), options(port, security=security))

    assert mailbox.envelopes == []


async def test_without_starttls_nothing_is_sent():
    mailbox = Mailbox()

    async with listening(mailbox) as port:
        with pytest.raises(PermanentFailure, match='try `security = "tls"`'):
            await send(message(digest("Dev")), options(port, security="starttls"))

    assert mailbox.envelopes == []


@pytest.mark.parametrize(
    "to",
    [
        *(
            "",
            "me",
            "@",
            "a@b..org",
            "a b@example.org",
            "ü@example.org",
            "\ud800@example.org",
            "a@example.org\0",
            "M\0e <a@b.org>",
        ),
        *("a@example.org, b@example.org", "a@example.org\nBcc: b@example.org"),
    ],
)
async def test_an_address_that_cannot_be_mailed_to_is_told_when_sending(to):
    told = message(digest("Dev", to=to))

    with pytest.raises(PermanentFailure, match="`to` is not an e-mail address"):
        await send(told, options())


@pytest.mark.parametrize(
    ("to", "envelope"),
    [
        ("Me <me@example.org>", "me@example.org"),
        ("นัท <nat@example.org>", "nat@example.org"),
        ("me@bücher.example", "me@xn--bcher-kva.example"),
        ('"a b"@example.org', '"a b"@example.org'),
        ("me@mailhost", "me@mailhost"),
        ('"Doe, Jane" <jane@example.org>', "jane@example.org"),
        (f"{'ที่ ' * 40}<long@example.org>", "long@example.org"),
    ],
)
def test_an_address_may_have_a_name_and_any_domain(to, envelope):
    (body,) = email.compose(digest("Dev", to=to), options())

    assert body.body.isascii()
    assert email._envelope(body.body) == ("bell@example.com", envelope)


def test_the_subject_of_one_item_tells_its_title():
    (body,) = email.compose(digest("Dev"), options())

    assert parsed(body.body.encode())["Subject"] == "1 new item: Dev"


def test_a_long_subject_is_shortened():
    (body,) = email.compose(digest("ที่" * 200), options())

    assert parsed(body.body.encode())["Subject"] == f"1 new item: {'ที่' * 79}…"


@given(st.text(max_size=200) | st.just("=?utf-8?q?no_encoded_word?= =?x?="), st.sampled_from(["en", "th", "vi", "my"]))
def test_any_title_is_ascii_on_the_wire_and_itself_again(title, language):
    told = digest(title, "Cook", language=language)

    (body,) = email.compose(told, options())

    assert body.body.isascii()
    assert max(map(len, body.body.split("\r\n"))) <= 998
    assert "\n" not in body.body.replace("\r\n", "")
    assert text_of(body.body.encode()) == body.text.rstrip("\n")
    assert parsed(body.body.encode())["Subject"] == email._subject(told)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sender": "nobody"}, "the sender must be one e-mail address"),
        ({"sender": "a@example.com\nBcc: b@example.com"}, "the sender must be one e-mail address"),
        ({"host": " "}, "the host must be the name or the address"),
        ({"host": "a..b"}, "the host must be the name or the address"),
        ({"port": 0}, "greater than or equal to 1"),
        ({"security": "ssl"}, "'starttls', 'tls' or 'none'"),
        ({"username": "bell"}, "`username` and `password` go together"),
        ({"host": "mx.example.com", "username": "bell", "password": "hunter2"}, "send the password in the clear"),
        ({"base_url": "https://x.test"}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(change, words):
    with pytest.raises(ValidationError) as caught:
        options(**change)

    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 587)])
def test_the_port_goes_with_the_security(security, port):
    chosen = options(security=security).model_copy(update={"port": None})

    assert email._client(chosen, greeting="example.com").port == port


@pytest.mark.parametrize("to", ["me@example.com", "Me <me@example.com>", "me@localhost", "me@บริษัท.example"])
def test_an_address_may_be_right(to: str):
    assert email.check_address(to) is None


@pytest.mark.parametrize("to", ["me", "@example.com", "a@example.com, b@example.com", "U" + "0" * 32, "me@"])
def test_what_is_no_address_is_told(to: str):
    assert email.check_address(to) == "is no e-mail address; write one such as name@example.com"
