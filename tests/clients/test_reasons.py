from __future__ import annotations

import errno
import socket
import ssl
from datetime import timedelta

import httpx
import pytest

from app.clients.reasons import ProxyRefused, finding_of, why
from app.domain.errors import (
    Failure,
    PermanentFailure,
    QuotaSpent,
    RateLimited,
    TemporaryFailure,
    Unanswered,
)
from app.domain.findings import Status


def certificate(code: int, words: str = "some reason") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, words)
    error.verify_code, error.verify_message = code, words
    return error


def tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


def wrapped(error: BaseException) -> BaseException:
    """As httpx wraps what httpcore hides."""
    try:
        try:
            raise error  # noqa: TRY301
        except BaseException:  # noqa: BLE001
            raise OSError("All connection attempts failed") from None
    except OSError as inner:
        outer = httpx.ConnectError("All connection attempts failed")
        outer.__cause__ = inner
        return outer


@pytest.mark.parametrize(
    ("error", "reason", "change"),
    [
        (certificate(9), "its certificate is not valid yet", "look at the clock of this machine"),
        (certificate(10), "its certificate has expired", "renew it, or look at the clock"),
        (certificate(18), "its certificate is signed by itself", "use one that is signed publicly"),
        (certificate(19), "somebody whom nobody here trusts", "trust that authority"),
        (certificate(20), "signed by nobody who is trusted here", "where a proxy looks into TLS"),
        (certificate(62), "its certificate is for another name", "have it issued anew"),
        (certificate(99, "path length"), "its certificate is not trusted (path length)", "have it issued anew"),
        (tls("WRONG_VERSION_NUMBER"), "it does not speak TLS at this port", "check scheme and port"),
        (tls("TLSV1_ALERT"), "both sides do not agree on TLS (TLSV1_ALERT)", "update the older side"),
        (socket.gaierror(socket.EAI_NONAME, "x"), "its name is not found", "check the name"),
        (socket.gaierror(socket.EAI_AGAIN, "x"), "no name server answers", "/etc/resolv.conf"),
        (UnicodeError("label too long"), "its name is none", "check the name"),
        (ConnectionRefusedError(), "nobody listens there", "check the port, and whether it is up"),
        (OSError(errno.ENETUNREACH, "x"), "there is no way to its address", "it may have an IPv6 address alone"),
        (OSError(errno.EHOSTUNREACH, "x"), "there is no way to its address", "IPv6"),
        (ProxyRefused("407 Proxy Authentication Required"), "refused it (407 Proxy", "check HTTPS_PROXY"),
        (httpx.ProxyError("403 Forbidden"), "refused it (403 Forbidden)", "check HTTPS_PROXY"),
        (TimeoutError(), "it did not answer in time", "firewall"),
        (httpx.ConnectTimeout("x"), "it did not answer in time", "firewall"),
        (ConnectionResetError(), "the connection broke off", "firewall or a proxy"),
        (EOFError(), "the connection broke off", "firewall or a proxy"),
        (KeyError("x"), "it failed (KeyError)", "try again"),
    ],
)
def test_each_reason_is_told_with_what_to_change_however_deep_it_lies(error: Exception, reason: str, change: str):
    for seen in (error, wrapped(error)) if not isinstance(error, KeyError) else (error,):
        told, advised = why(seen)

        assert reason in told
        assert change in advised


def test_of_several_addresses_each_reason_is_looked_at():
    several = OSError("All connection attempts failed")
    several.__cause__ = ExceptionGroup("x", [ConnectionRefusedError(), ConnectionRefusedError()])

    assert why(several)[0] == "nobody listens there"


def reached_not(cause: Exception) -> Failure:
    failure = TemporaryFailure("api.test could not be reached (ConnectError)")
    failure.__cause__ = cause
    return failure


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        (reached_not(ConnectionRefusedError()), "fail", "api.test could not be reached (ConnectError): nobody listens"),
        (PermanentFailure("api.test answered 401: x; make a new token"), "fail", "answered 401: x; make a new token"),
        (TemporaryFailure("api.test answered 503"), "warn", "answered 503; it has trouble of its own"),
        (Unanswered("api.test did not answer"), "warn", "did not answer; it has trouble of its own"),
        (
            TemporaryFailure("api.test answered 503", retry_after=timedelta(minutes=2)),
            "warn",
            "it wants to be left alone for 2 minutes",
        ),
        (RateLimited("api.test answered 429"), "warn", "it asks for fewer requests: wait some minutes"),
        (QuotaSpent("used up: wait for the next month"), "warn", "used up: wait for the next month"),
    ],
)
def test_a_refusal_is_a_fault_here_and_a_providers_own_trouble_is_none(failure: Failure, status: Status, words: str):
    found = finding_of(failure, name="quota")

    assert (found.status, found.name) == (status, "quota")
    assert words in found.sentence
