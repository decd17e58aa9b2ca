"""The pages in a real browser. Pictures are kept in the test's folder; `pytest -rP` prints where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from app.pages import login
from tests.fakes.feeds import Feeds
from tests.pages.browsing import NEEDED, PHONE, PROGRAM, Visit, chromium, serving, window
from tests.pages.visits import LONG, page_service, something_of_everything

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)

LOCAL = """
[sources.local]
kind = "feed"
url = "{url}"
"""


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


async def test_somebody_logs_in_and_looks_after_what_failed(
    tmp_path: Path, database_url: str, sql: asyncpg.Connection, browser: Browser, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(login, "WRONG_SECONDS", 0.0)
    async with Feeds() as feeds:
        feed = feeds.add("local", "A bot <b>for</b> LINE")
        service = page_service(tmp_path, database_url, more=LOCAL.format(url=feed.url))
        ids = await something_of_everything(sql, service)
        async with serving(service) as url, window(browser, url, tmp_path) as visit:
            page = visit.page
            await visit.log_in("a-wrong-word-of-thirty-letters")
            await expect(page.get_by_role("alert")).to_have_text("That is not the token.")
            assert visit.complaints == [
                "Failed to load resource: the server responded with a status of 401 (Unauthorized)"
            ]
            visit.complaints.clear()

            await visit.log_in()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Something needs a look")
            await expect(page.get_by_role("img", name="New items, by the hour")).to_be_visible()
            await expect(page.locator("#zone")).to_have_text("your clock (Europe/Berlin)")
            await page.get_by_role("button", name="Acknowledge").click()
            await expect(page.get_by_role("status")).to_contain_text("Taken on")
            await expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)

            await page.get_by_role("link", name=f"Job {ids['failed']}", exact=True).click()
            await page.get_by_role("button", name="Run again").click()
            await expect(page.get_by_role("status")).to_contain_text("The job is due again")
            assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE id = $1", ids["failed"]) == "pending"

            await page.get_by_role("link", name="Sources").click()
            await page.get_by_role("button", name="Preview of local").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Preview of local")
            await expect(page.get_by_role("heading", name="A bot")).to_be_visible()
            await visit.keep("preview")

            await page.get_by_role("button", name="Log out").click()
            await expect(page.get_by_label("API_TOKEN")).to_be_focused()
            assert (visit.complaints, visit.elsewhere) == ([], [])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("phone", {"viewport": PHONE}),
        ("dark", {"color_scheme": "dark"}),
    ],
)
async def test_every_page_can_be_read_by_everybody(  # noqa: PLR0917
    tmp_path: Path, database_url: str, sql: asyncpg.Connection, browser: Browser, name: str, how: dict[str, object]
):
    """By axe-core, whatever strangers have written; nothing is wider than the window, and nothing breaks a rule."""
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service, text=LONG)
    paths = ["/", "/sources", "/queues"]  # in the dark, all parts in their other colours
    if name == "phone":
        paths += ["/messages", "/jobs", "/schedules", "/bookings"]
    found: dict[str, object] = {}
    async with serving(service) as url, window(browser, url, tmp_path, **how) as visit:
        await visit.go("/")
        found["login"] = await faults(visit.page)
        await visit.log_in()
        for path in (*paths, f"/jobs/{ids['failed']}", f"/messages/{ids['message']}"):
            await visit.go(path)
            found[path] = await faults(visit.page)
            print(await visit.keep(f"{name}{path.replace('/', '-')}"))  # noqa: T201 - for who looks at them
        assert (visit.complaints, visit.elsewhere) == ([], [])

    assert {path: fault for path, fault in found.items() if fault} == {}


async def faults(page: Page) -> list[str]:
    width, room = await page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    wide = [f"{width} pixels wide in a window of {room}"] if width > room else []
    answer = await Axe().run(page)
    assert len(answer.response["passes"]) > 15, "axe-core has looked"
    return [*wide, *(f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in answer.response["violations"])]


async def test_the_keyboard_is_enough(tmp_path: Path, database_url: str, sql: asyncpg.Connection, browser: Browser):
    service = page_service(tmp_path, database_url)
    await something_of_everything(sql, service)
    async with serving(service) as url, window(browser, url, tmp_path) as visit:
        page = visit.page
        await visit.go("/")
        await page.keyboard.type("an-api-token-of-thirty-letters")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Something needs a look")

        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        assert await outlined(visit)
        await page.keyboard.press("Enter")
        await until_focused(visit, "Acknowledge")
        assert await outlined(visit)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("Taken on")


async def outlined(visit: Visit) -> bool:
    """Whether one sees where one is."""
    style = await visit.page.evaluate("getComputedStyle(document.activeElement).outline")
    return "3px" in style and await visit.page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0


async def until_focused(visit: Visit, name: str) -> None:
    for _ in range(20):
        await visit.page.keyboard.press("Tab")
        if await visit.page.evaluate("document.activeElement.textContent.trim()") in {name, f"{name} alert 1"}:
            return
    raise AssertionError(f"{name} is not reached by Tab")


async def test_it_works_without_scripts(tmp_path: Path, database_url: str, sql: asyncpg.Connection, browser: Browser):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service)
    async with serving(service) as url, window(browser, url, tmp_path, java_script_enabled=False) as visit:
        await visit.log_in()
        await expect(visit.page.locator("#zone")).to_have_text("Asia/Bangkok")
        await expect(visit.page.get_by_role("checkbox")).to_have_count(0)
        await visit.go(f"/jobs/{ids['pending']}")
        await visit.page.get_by_role("button", name="Cancel").click()
        await expect(visit.page.get_by_role("status")).to_contain_text("cancelled")


async def test_the_first_page_reloads_for_who_asks_for_it_alone(tmp_path: Path, database_url: str, browser: Browser):
    service = page_service(tmp_path, database_url)
    async with serving(service) as url, window(browser, url, tmp_path) as visit:
        await visit.page.clock.install()
        await visit.log_in()
        box = visit.page.get_by_role("checkbox", name="Reload every minute")
        await expect(box).not_to_be_checked()
        asked = len(visit.asked)
        await visit.page.clock.run_for(600_000)
        assert len(visit.asked) == asked

        await box.check()
        async with visit.page.expect_navigation():
            await visit.page.clock.run_for(61_000)
        await expect(box).to_be_checked()
