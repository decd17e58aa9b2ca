"""A real browser before the service: Debian's chromium, by Playwright, that nothing outside of it is let out of."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from app import main
from app.context import Service
from tests.api.doors import API_TOKEN

PROGRAM = shutil.which("chromium")
NEEDED = "needs Debian's chromium: apt-get install chromium"
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu", "--disable-dev-shm-usage"]

PHONE = {"width": 360, "height": 780}
DESK = {"width": 1280, "height": 900}


@dataclass
class Visit:
    """One browser window, and what it complained of."""

    page: Page
    url: str
    folder: Path
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def elsewhere(self) -> list[str]:
        """Requests that left the service."""
        return [url for url in self.asked if not url.startswith((self.url, "data:"))]

    async def go(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def log_in(self, token: str = API_TOKEN) -> None:
        await self.go("/")
        await self.page.get_by_label("API_TOKEN").fill(token)
        await self.page.get_by_role("button", name="Log in").click()
        await self.page.wait_for_load_state()

    async def keep(self, name: str) -> Path:
        """A picture of the whole page, for who looks at it."""
        path = self.folder / f"{name}.png"
        await self.page.screenshot(path=path, full_page=True)
        return path


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[str]:
    """The service at a port of this machine."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(main.create_app(service), log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    server.capture_signals = suppress  # type: ignore[method-assign,assignment] # they are pytest's
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield f"http://localhost:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await task
        listening.close()
        await service.stores.database.dispose()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def window(browser: Browser, url: str, folder: Path, **how: Any) -> AsyncIterator[Visit]:
    context: BrowserContext = await browser.new_context(**{"viewport": DESK, "timezone_id": "Europe/Berlin", **how})
    page = await context.new_page()
    visit = Visit(page, url, folder)
    page.on("console", lambda said: visit.complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.on("request", lambda request: visit.asked.append(request.url))
    try:
        yield visit
    finally:
        await context.close()
