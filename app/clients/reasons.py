"""Why a connection did not come about, in words, and what to change: one place for all that look at the way out."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING

import httpx

from app.domain import pace
from app.domain.errors import Failure, QuotaSpent, RateLimited, TemporaryFailure
from app.domain.findings import Finding, fail, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CAUSES = 20

NO_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})

NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL})

CLOCK = "look at the clock of this machine"
ITS_OWN = "it has trouble of its own: try again in a minute, and look at its status page"

BY_VERIFY_CODE = {
    9: ("its certificate is not valid yet", CLOCK),  # the codes are OpenSSL's, X509_V_ERR_…
    10: ("its certificate has expired", f"renew it, or {CLOCK}"),
    18: ("its certificate is signed by itself", "use one that is signed publicly, or trust it on this machine"),
    19: ("its certificate is signed by somebody whom nobody here trusts", "trust that authority on this machine"),
    20: (
        "its certificate is signed by nobody who is trusted here",
        "have it send the whole chain; where a proxy looks into TLS, trust its authority on this machine",
    ),
    62: ("its certificate is for another name", "write the name that the certificate is for, or have it issued anew"),
}


class ProxyRefused(OSError):
    """The proxy does not let it through."""


def why(error: BaseException) -> tuple[str, str]:
    """What hindered a connection, and what to change."""
    chain = list(_chain(error))
    for cause in chain:
        found = _certificate(cause) or _proxy(cause) or _name(cause) or _way(cause)
        if found is not None:
            return found
    if any(isinstance(cause, TimeoutError | httpx.TimeoutException) for cause in chain):
        return "it did not answer in time", "look whether a firewall is between, and whether it is up"
    if any(isinstance(cause, OSError | EOFError | httpx.TransportError) for cause in chain):
        return "the connection broke off", "try again; if it stays so, look whether a firewall or a proxy is between"
    return f"it failed ({type(chain[0]).__name__})", "try again"


def finding_of(failure: Failure, *, name: str = "") -> Finding:
    """A failure in one line: not reached and refused are faults here, a provider's own trouble is none."""
    if failure.__cause__ is not None and isinstance(failure, TemporaryFailure):
        reason, change = why(failure.__cause__)
        return fail(f"{failure}: {reason}", change, name=name)
    match failure:
        case QuotaSpent():
            return warn(str(failure), name=name)
        case RateLimited(retry_after=None):
            return warn(str(failure), "it asks for fewer requests: wait some minutes", name=name)
        case TemporaryFailure(retry_after=None):
            return warn(str(failure), ITS_OWN, name=name)
        case TemporaryFailure(retry_after=wait) if wait is not None:
            return warn(str(failure), f"it wants to be left alone for {pace.told(wait)}", name=name)
        case _:
            return fail(str(failure), name=name)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it came of, and so on; of several at once each."""
    waiting, seen = [error], 0
    while waiting and seen < MOST_CAUSES:
        cause = waiting.pop(0)
        seen += 1
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
        below = cause.__cause__ or cause.__context__  # httpcore hides the latter, and it is what one wants to know
        if below is not None:
            waiting.append(below)


def _certificate(error: BaseException) -> tuple[str, str] | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        usual = (f"its certificate is not trusted ({error.verify_message})", "have it issued anew")
        return BY_VERIFY_CODE.get(error.verify_code, usual)
    if isinstance(error, ssl.SSLError):
        if error.reason in {"WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}:
            return "it does not speak TLS at this port", "check scheme and port of the address"
        return f"both sides do not agree on TLS ({error.reason or 'no reason is given'})", "update the older side"
    return None


def _proxy(error: BaseException) -> tuple[str, str] | None:
    if isinstance(error, ProxyRefused | httpx.ProxyError):
        return f"the proxy of the environment refused it ({error})", "check HTTPS_PROXY and NO_PROXY"
    return None


def _name(error: BaseException) -> tuple[str, str] | None:
    if isinstance(error, socket.gaierror):
        if error.errno in NO_NAME:
            return "its name is not found", "check the name"
        return "no name server answers", "check the name servers of this machine (/etc/resolv.conf)"
    if isinstance(error, UnicodeError):
        return "its name is none", "check the name"
    return None


def _way(error: BaseException) -> tuple[str, str] | None:
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there", "check the port, and whether it is up"
    if isinstance(error, OSError) and error.errno in NO_WAY:
        return "there is no way to its address", "it may have an IPv6 address alone, and this machine none: see its dns"
    return None
