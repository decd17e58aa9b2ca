"""E-mail over SMTP.

Source: RFC 5321, RFC 5322; aiosmtplib's documentation. SMTP takes no idempotency key: the `Message-ID` is the same at
every try, so that a copy can be told.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from contextlib import suppress
from datetime import UTC, timedelta
from email import message_from_string, policy
from email.errors import MessageError
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING, Annotated, Literal, Self

import aiosmtplib
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from app.clients.http import TOLD_LENGTH, printable
from app.domain import digests, textcut, words
from app.domain.errors import Failure, PermanentFailure, TemporaryFailure, Unanswered
from app.domain.findings import Finding, ok, warn
from app.domain.messages import Body, Digest, Message, Receipt

if TYPE_CHECKING:
    import httpx

REPEATABLE_FOR: timedelta | None = None
"""SMTP knows no key: a message whose answer was lost may arrive twice."""

TIMEOUT_SECONDS = 18
"""For all of connecting, greeting and sending; with the farewell it stays below the 20 seconds a send may take."""

FAREWELL_SECONDS = 1

SUBJECT_CLUSTERS = 80
"""Of the first title: more is not shown in any list of mails."""

ASCII_MAIL = policy.SMTP.clone(cte_type="7bit", max_line_length=76)
"""Nothing but ASCII on the wire: every server takes it, and the frozen text is the bytes. Lines of RFC 2045, 6.7."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
DOMAIN = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f.:]+\]")

TEMPORARY_REPLIES = range(400, 500)
"""RFC 5321, 4.2.1: a 4yz reply asks to try again, a 5yz reply not to."""

NOT_OFFERED = (aiosmtplib.SMTPNotSupported, aiosmtplib.SMTPException)
"""What the library raises where a server has no STARTTLS or no AUTH; every other error has a class of its own."""


def _host(value: str) -> str:
    host = value.strip()
    try:
        host.encode("idna")
    except UnicodeError:
        host = ""
    if not host:
        raise ValueError("the host must be the name or the address of an SMTP server")
    return host


class Options(BaseModel):
    """`[channels.x] kind = "email"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    host: Annotated[str, AfterValidator(_host)]

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """None: 465 with `security = "tls"`, else 587."""

    username: str | None = None
    password: SecretStr | None = None

    sender: Annotated[str, AfterValidator(lambda value: str(_sender(value)))]
    """`bell@example.com`, or with a name: `Wakebell <bell@example.com>`."""

    security: Literal["starttls", "tls", "none"] = "starttls"

    @model_validator(mode="after")
    def _secrets_travel_encrypted(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("`username` and `password` go together: give both or neither")
        if self.security == "none" and self.password is not None and not _is_loopback(self.host):
            raise ValueError('`security = "none"` would send the password in the clear: use "starttls" or "tls"')
        return self


def check_address(to: str) -> str | None:
    """Why no mail can be sent there; None: it is an address."""
    return None if _address(to) is not None else "is no e-mail address; write one such as name@example.com"


def compose(digest: Digest, options: Options) -> list[Body]:
    """One mail with the whole digest; none for an empty one.

    An address that cannot be mailed to leaves the mail without one: its sending says so, and nothing else stops.
    """
    text = digests.as_text(digest)
    if not text:
        return []
    recipient = _address(digest.to)
    headers = {
        "From": _mailbox(_sender(options.sender)),
        "To": _mailbox(recipient) if recipient is not None else "undisclosed-recipients:;",
        "Subject": _encoded(_subject(digest)),
        "Auto-Submitted": "auto-generated",  # RFC 3834: no out-of-office answers, please
    }
    content = EmailMessage(policy=ASCII_MAIL)
    content.set_content(text)
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    shown = tuple(range(len(digest.items)))
    return [Body(body="".join(lines) + content.as_bytes().decode("ascii"), text=text, items=shown)]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:  # noqa: ARG001 - as every channel
    """Hand the frozen mail to the server, under the same `Message-ID` and `Date` at every try."""
    sender, recipient = _envelope(message.body)
    domain = sender.partition("@")[2]
    mail = (
        f"Message-ID: <{message.retry_key}@{domain}>\r\n"
        f"Date: {format_datetime(message.first_tried_at.astimezone(UTC))}\r\n"
        f"{message.body}"
    )
    client = _client(options, greeting=domain)
    handed_over = False
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await client.connect()
            await client.mail(sender)
            await client.rcpt(recipient)
            handed_over = True
            reply = await client.data(mail.encode("ascii"))
        await _farewell(client)
    except (aiosmtplib.SMTPException, OSError) as error:
        raise _failure(error, options, handed_over=handed_over) from error
    finally:
        client.close()
    return Receipt(provider_id=printable(reply.message)[:TOLD_LENGTH] or None)


async def probe(options: Options, http: httpx.AsyncClient) -> list[Finding]:  # noqa: ARG001 - as every channel
    """Whether the server can be spoken to as `security` says, and takes the login. No mail is begun.

    Raises:
        Failure: it does not, or cannot be reached.
    """
    client = _client(options, greeting=_sender(options.sender).domain)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await client.connect()
            await client.noop()
        await _farewell(client)
    except (aiosmtplib.SMTPException, OSError) as error:
        raise _failure(error, options, handed_over=False) from error
    finally:
        client.close()
    if options.security == "none":
        return [warn("the server answers, and nothing on the way to it is encrypted", 'try `security = "starttls"`')]
    login = "" if options.username is None else ", and takes the login"
    return [ok(f"the server answers by {'TLS' if options.security == 'tls' else 'STARTTLS'}{login}")]


def origin(options: Options) -> str:
    """Its server."""
    return f"smtp://{options.host}:{_port(options)}"


async def _farewell(client: aiosmtplib.SMTP) -> None:
    """Ends the session politely. The mail is taken by now, and nothing here can change that."""
    with suppress(aiosmtplib.SMTPException, OSError):
        async with asyncio.timeout(FAREWELL_SECONDS):
            await client.quit()


def _client(options: Options, *, greeting: str) -> aiosmtplib.SMTP:
    """A client for one mail. It greets with the sender's domain: asking the resolver for our own name can take long."""
    return aiosmtplib.SMTP(
        hostname=options.host,
        port=_port(options),
        username=options.username,
        password=options.password.get_secret_value() if options.password is not None else None,
        local_hostname=greeting,
        timeout=TIMEOUT_SECONDS,
        use_tls=options.security == "tls",
        start_tls=options.security == "starttls",
    )


def _port(options: Options) -> int:
    return options.port or (465 if options.security == "tls" else 587)


def _failure(error: Exception, options: Options, *, handed_over: bool) -> Failure:
    """The library's errors as ours, with what to do about them."""
    match error:
        case aiosmtplib.SMTPException(message=told) if type(error) in NOT_OFFERED:
            return PermanentFailure(
                f"{options.host} does not offer what `security` and `password` need ({printable(told)}): "
                'try `security = "tls"` with port 465'
            )
        case aiosmtplib.SMTPResponseException():
            reply = f"{options.host} answered {error.code}: {printable(error.message)[:TOLD_LENGTH]}"
            if error.code in TEMPORARY_REPLIES:
                return TemporaryFailure(reply)
            return PermanentFailure(f"{reply}; {_advice(error)}")
        case _ if handed_over:
            return Unanswered(f"{options.host} did not say whether it took the mail ({type(error).__name__})")
        case TimeoutError():
            return TemporaryFailure(f"{options.host} did not answer in time ({type(error).__name__})")
        case _:
            return TemporaryFailure(f"{options.host} could not be reached ({printable(str(error))[:TOLD_LENGTH]})")


def _advice(error: aiosmtplib.SMTPResponseException) -> str:
    match error:
        case aiosmtplib.SMTPAuthenticationError():
            return "check the channel's `username` and `password`; some providers want an app password here"
        case aiosmtplib.SMTPSenderRefused():
            return "the channel's `sender` must be an address this account may send from"
        case aiosmtplib.SMTPRecipientRefused():
            return "check the recipient's `to`"
        case _:
            return "the server does not take this mail"


def _envelope(frozen: str) -> tuple[str, str]:
    """From whom and to whom, out of the frozen mail: what `wakebell.toml` says now must not change a repeat."""
    mail = message_from_string(frozen.partition("\r\n\r\n")[0], policy=ASCII_MAIL)
    sender, recipient = (_address(mail.get(name, "")) for name in ("From", "To"))
    if sender is None or recipient is None:
        raise PermanentFailure("the recipient's `to` is not an e-mail address: put one such as name@example.com")
    return sender.addr_spec, recipient.addr_spec


def _subject(digest: Digest) -> str:
    if digest.note is not None:
        return _shortened(digests.plain_title(digests.note_text(digest.note).partition("\n")[0]))
    heading = words.new_items(digest.language, digest.count)
    if not digest.items:
        return heading
    title = digests.plain_title(digest.items[0].title) or words.untitled(digest.language)
    return f"{heading}: {_shortened(title)}"


def _shortened(title: str) -> str:
    return textcut.shorten(title, limit=SUBJECT_CLUSTERS, characters=SUBJECT_CLUSTERS * 4)


def _mailbox(address: Address) -> str:
    if address.display_name.isascii():
        return str(address)
    return f"{_encoded(address.display_name)} <{address.addr_spec}>"


def _encoded(text: str) -> str:
    """A header's text in ASCII, folded. Python's newer `EmailMessage` loses spaces between long encoded words."""
    charset = "us-ascii" if text.isascii() and "=?" not in text else "utf-8"
    return Header(text, charset, header_name="Subject").encode(linesep="\r\n")


def _sender(value: str) -> Address:
    address = _address(value)
    if address is None:
        raise ValueError('the sender must be one e-mail address, such as "Wakebell <bell@example.com>"')
    return address


def _address(value: str) -> Address | None:
    """One address that any server can be given, its domain in ASCII; None where there is none to be read."""
    mail = EmailMessage(policy=ASCII_MAIL)
    try:
        mail["To"] = value.strip()
        (address,) = mail["To"].addresses
        domain = address.domain.encode("idna").decode("ascii")
        found = Address(address.display_name, address.username, domain)
    except (MessageError, ValueError, IndexError):
        return None
    if (
        CONTROL.search(value.strip())
        or mail["To"].defects
        or not (found.username.isascii() and DOMAIN.fullmatch(domain))
    ):
        return None
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
