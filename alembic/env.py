"""How Alembic runs here: inside the transaction that `app.stores.migrations` began, which also locks and closes."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table_schema="wakebell",
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
