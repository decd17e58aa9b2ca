from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from app import stores
from app.stores import sql as statements

FOLDER = Path(stores.__file__).parent
STATEMENTS = [
    (path.stem, name, statement)
    for path in sorted(FOLDER.glob("*.sql"))
    for name, statement in statements.load(path.stem).items()
]


def test_every_store_with_statements_is_looked_at():
    assert {store for store, _, _ in STATEMENTS} == {path.stem for path in FOLDER.glob("*.sql")} != set()


async def test_postgres_can_prepare_every_statement(sql: asyncpg.Connection):
    refused = [(store, name, told) for store, name, text in STATEMENTS if (told := await refusal(sql, text))]

    assert refused == []


async def refusal(sql: asyncpg.Connection, statement: statements.Statement) -> str:
    try:
        await sql.prepare(statement.driver[0])
    except asyncpg.PostgresError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("store", "name", "statement"), STATEMENTS, ids=[f"{s}/{n}" for s, n, _ in STATEMENTS])
def test_a_statement_casts_and_qualifies(store: str, name: str, statement: statements.Statement):
    assert "::" not in statement.text, "SQLAlchemy misreads the parameter before it: write CAST(...)"
    assert "wakebell." in statement.text, "a search_path does not survive a pooler"
