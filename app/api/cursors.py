"""Pages: so many rows, and an opaque cursor to the next ones. Rows that are added meanwhile shift nothing."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from app.api.errors import Problem
from app.domain.shown import instant, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.stores.listings import Page

__all__ = ["MOST_ID", "PageQuery", "answer", "instant", "told"]

MOST_ID = 2**63 - 1


class PageQuery(BaseModel):
    """The part of the query that every listing has; each adds its filters. A key that is not there is refused."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Annotated[str, Field(max_length=200)] | None = None

    def before(self, listing: str) -> int | None:
        """The id that the page's rows are below; None for the first page.

        Raises:
            Problem: 422, the cursor is not one of this listing.
        """
        return None if self.cursor is None else _id(self.cursor, listing)


def answer(listing: str, page: Page[Any], show: Callable[[Any], dict[str, Any]] = told) -> JSONResponse:
    """`{<listing>: [...], "next_cursor": ...}`; the cursor is null on the last page. Rows have an `id`."""
    following = _cursor(listing, page.rows[-1].id) if page.more else None
    return JSONResponse({listing: [show(row) for row in page.rows], "next_cursor": following})


def _cursor(listing: str, last: int) -> str:
    return base64.urlsafe_b64encode(f"{listing}:{last}".encode()).decode().rstrip("=")


def _id(cursor: str, listing: str) -> int:
    try:
        decoded = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        name, _, last = decoded.decode("ascii").partition(":")
    except (ValueError, binascii.Error):
        name, last = "", ""
    if name != listing or not last.isdigit() or int(last) > MOST_ID:
        detail = f"cursor: is none of this listing; pass the `next_cursor` of a page of {listing} as it is, or none"
        raise Problem(422, "Unprocessable Content", detail)
    return int(last)
