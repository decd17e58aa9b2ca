from __future__ import annotations

import httpx
from fastapi import FastAPI

from app import __version__
from app.api import front


async def test_a_browser_is_told_where_to_look():
    app = FastAPI()
    app.include_router(front.router)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://wakebell.test") as http:
        answer = await http.get("/")
        head = await http.head("/")

    assert (answer.status_code, head.status_code) == (200, 200)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == "Wakebell is running; its status page comes with a later version, see /api/health\n"
    assert __version__ not in str(answer.headers)
