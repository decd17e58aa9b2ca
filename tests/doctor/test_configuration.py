"""What is told of the file and of the secrets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.doctor import configuration
from app.domain.findings import Finding, Status

Environ = Callable[..., dict[str, str]]

GOOD = "0123456789abcdef0123456789abcdef"


async def secrets(environ: dict[str, str]) -> list[Finding]:
    return await configuration._secrets(environ)


async def test_a_file_is_told_in_short(environ: Environ):
    file = '[channels.line]\nkind = "line"\ntoken = "x"\n[sources.a]\nkind = "feed"\nurl = "https://a.test"\n'
    file += 'every_minutes = 30\n[sources.b]\nkind = "feed"\nurl = "https://b.test"\nevery_minutes = 30\n'

    [full] = await configuration._configuration(environ(file))
    [empty] = await configuration._configuration(environ())

    assert (full.status, full.found) == ("ok", "2 sources, 1 channel")
    assert (empty.status, empty.found) == ("ok", "nothing is configured")


async def test_of_several_problems_the_first_is_told_and_where_the_others_are(environ: Environ):
    [one] = await configuration._configuration(environ("[tick]\nmax_jobs = 0\n"))
    [more] = await configuration._configuration(environ("[tick]\nmax_jobs = 0\nnothing = 1\n", PORT="zero"))

    assert one.status == more.status == "fail"
    assert "max_jobs" in one.found
    assert one.change == "`wakebell check` tells it in full"
    assert more.found.endswith(", and 2 more")


async def test_a_handler_that_cannot_be_imported_is_told(environ: Environ, tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "broken.py").write_text("import nothing_of_the_kind")

    [found] = await configuration._configuration(environ())

    assert found.status == "fail"
    assert "handlers/broken.py: cannot be imported" in found.found


@pytest.mark.parametrize(
    ("secret", "status", "words"),
    [
        (GOOD, "ok", "it has 32 characters"),
        ("sixteen-letters!", "warn", "it has 16 characters, and may be guessed; make one with: openssl"),
        ("abababababababababababababab", "warn", "it is made of few different characters, and may be guessed; make"),
    ],
)
async def test_a_secret_that_may_be_guessed_is_told_and_none_is_shown(
    environ: Environ, secret: str, status: Status, words: str
):
    cron, _ = await secrets(environ(CRON_SECRET=secret))

    assert cron.status == status
    assert words in cron.sentence
    assert secret not in cron.sentence


async def test_without_a_secret_it_does_not_start(environ: Environ):
    cron, api = await secrets(environ(CRON_SECRET=""))

    assert cron.sentence.startswith("it is not set, and without it the service does not start; make one")
    assert cron.status == "fail"
    assert (api.status, api.change) == ("skipped", "set it to use them")


async def test_the_other_tokens_are_looked_at_too(environ: Environ):
    _, previous, api = await secrets(environ(CRON_SECRET_PREVIOUS=GOOD, API_TOKEN="b" * 30))

    assert previous.name == "CRON_SECRET_PREVIOUS"
    assert previous.sentence == ("it is still taken as well; remove it once every scheduler rings with the new one")
    assert (api.name, api.status) == ("API_TOKEN", "warn")
    assert api.found == "it is made of few different characters, and may be guessed"
