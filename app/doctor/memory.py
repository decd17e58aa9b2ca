"""Redis or Valkey, where conversations are remembered there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.clients import redis_server
from app.doctor.looks import Look

if TYPE_CHECKING:
    from app.settings import Settings


def looks(settings: Settings) -> list[Look]:
    """One, where there is one."""
    url = settings.environment.redis_url
    return [] if url is None else [Look(name="redis", work=partial(redis_server.look, url))]
