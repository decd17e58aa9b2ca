from __future__ import annotations

import logging
from pathlib import Path

import pytest

from app import main
from tests.fakes.batches import a_service

CONFIGURATION = """
[sources.board]
kind = "feed"
url = "https://board.example/feed.xml?key=s3cr3t"
"""


async def test_a_start_says_in_one_line_what_it_has_read(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    service = a_service(database_url, tmp_path, CONFIGURATION)

    with caplog.at_level(logging.INFO):
        main.tell_start(service, "0.0.0.0", 8080)

    [record] = caplog.records
    told = vars(record)
    assert (record.levelname, record.message) == ("INFO", "serving")
    assert (told["host"], told["port"], told["sources"], told["channels"]) == ("0.0.0.0", 8080, 1, 1)
    assert told["handlers"] == sorted(service.handlers)
    assert "s3cr3t" not in str(told)
