"""How each source is, how its rounds have been, and what it would tell now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import preview
from app.api.sources import told
from app.domain import pace
from app.pages import charts
from app.pages.asking import Shown, Trouble

if TYPE_CHECKING:
    from app.pages.asking import Asked


async def show(asked: Asked) -> Shown:
    """Every configured source in the file's order."""
    configured = asked.settings.sources
    states = await asked.stores.listings.list_sources(list(configured))
    rounds = await asked.stores.history.rounds()
    listed = [
        {
            **told(source, states.get(name)),
            "every": pace.told(source.every),
            "history": charts.of_rounds(rounds.get(name, [])),
        }
        for name, source in configured.items()
    ]
    return Shown(template="sources.html", values={"sources": listed})


async def preview_one(asked: Asked) -> Shown:
    """A dry run, which asks no database and sends nothing."""
    try:
        found = await preview.run(asked.settings, asked.form.get("source", ""))
    except preview.UnknownSource as error:
        raise Trouble(404, f"{error}.") from None
    return Shown(template="preview.html", values={"preview": found})
