"""What the doors are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request

from app.stores import Stores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.context import Service


async def the_service(request: Request) -> Service:
    """What lives as long as the process."""
    return cast("Service", request.app.state.service)


async def the_stores(request: Request) -> AsyncIterator[Stores]:
    """The database, its schema looked at, held while the endpoint runs.

    Raises:
        DatabaseUnavailable: it cannot be reached.
        SchemaOutdated: `wakebell migrate` is to be run first.
    """
    stores = (await the_service(request)).stores
    async with stores.database.held():
        await stores.require_schema()
        yield stores


# Let go before the answer leaves: what a host does after the answer may be frozen, with the connection open.
HeldStores = Annotated[Stores, Depends(the_stores, scope="function")]
