"""Links as published and as keys: what is shown is never changed, what is compared is made the same."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit, urlunsplit

from app.domain.text import clean

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

KEY_LIMIT = 1_000
LINK_LIMIT = 4_000
"""Longer than what browsers and chat services open; no item is worth such a link."""

TRACKING = frozenset(
    {
        *("fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "ysclid", "twclid", "ttclid"),
        *("igshid", "igsh", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok", "oly_anon_id", "oly_enc_id", "_hsenc"),
        *("_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking", "vero_id", "vero_conv", "s_cid", "wickedid"),
        *("rb_clickid", "irclickid", "_openstat", "ncid", "cmpid", "spm", "scm", "at_medium", "at_campaign"),
    }
)
"""Parameters that tell where a click came from and never what is shown."""

TRACKING_PREFIXES = ("utm_", "mtm_", "pk_", "matomo_", "piwik_")

ABSOLUTE = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?:[/?#].*)?")

DEFAULT_PORTS = {"http": 80, "https": 443}


def absolute(link: str, base: str) -> str | None:
    """The link as a browser would open it from the document at `base`; None when it is no http or https address.

    Only the path of `base` is taken: its query may hold a secret.
    """
    link = clean(link).replace(" ", "%20")
    if not link or len(link) > LINK_LIMIT:
        return None
    if ABSOLUTE.fullmatch(link):  # most of a feed's links, which need no closer look
        return link
    try:
        whole = urljoin(_without_query(base), link)
        parts = urlsplit(whole)
        usable = parts.scheme in DEFAULT_PORTS and parts.hostname
    except ValueError:
        return None
    return whole if usable else None


def canonical(link: str, ignored: AbstractSet[str] = frozenset()) -> str:
    """The link as a key: equal for links that differ in tracking, in the order of parameters, or in the host's case.

    `ignored` are names of further parameters that do not count, in lower case.

    The fragment stays (`#/job/12` is another job than `#/job/13`), and so does each repeated or empty parameter.
    """
    try:
        parts = urlsplit(link)
        port = parts.port
        host = parts.hostname or ""
    except ValueError:
        return link
    if port and port != DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    kept = sorted(part for part in parts.query.split("&") if part and not _tracks(part, ignored))
    return urlunsplit((parts.scheme, host, parts.path or "/", "&".join(kept), parts.fragment))


def key(text: str) -> str:
    """The text as a key; one that is too long is replaced by its SHA-256."""
    cleaned = clean(text)
    return cleaned if len(cleaned) <= KEY_LIMIT else sha256(cleaned.encode()).hexdigest()


@lru_cache(maxsize=8)
def _without_query(base: str) -> str:
    return urlunsplit(urlsplit(base)._replace(query="", fragment=""))


def _tracks(parameter: str, ignored: AbstractSet[str]) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in TRACKING or name in ignored or name.startswith(TRACKING_PREFIXES)
