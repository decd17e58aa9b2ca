"""Spendings: what each person has used up today of what may be asked of models, in whatever conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.stores import sql
from app.stores.text import clean

if TYPE_CHECKING:
    from app.stores.database import Database

SQL = sql.load("spendings")

PERSON_LENGTH = 600


class Spendings:
    """One row a person. A person is a kind of chat and the provider's id there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, kind: str, person: str, *, most_tries: int, most_tokens: int) -> bool:
        """Count one more try of today. False: there have been as many, or they have cost as much, as there may."""
        params = {**_who(kind, person), "most_tries": most_tries, "most_tokens": most_tokens}
        return bool(await self._database.fetch(SQL["begin"], params))

    async def charge(self, kind: str, person: str, *, tokens: int) -> None:
        """What a try that was begun has cost."""
        await self._database.fetch(SQL["charge"], {**_who(kind, person), "tokens": tokens})

    async def prune(self, *, most: int) -> int:
        """Forget at most `most` people's days that are over."""
        return len(await self._database.fetch(SQL["prune"], {"most": most}))


def _who(kind: str, person: str) -> dict[str, str]:
    return {"kind": kind, "person": clean(person, limit=PERSON_LENGTH)}
