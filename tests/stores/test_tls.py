"""How a connection is secured, by libpq's rules, against a PostgreSQL with an authority of its own."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from sqlalchemy import text

from app.domain.errors import DatabaseUnavailable
from app.stores import database as module
from app.stores.database import connect
from tests.fakes.debian import PROGRAMS, debian

pytestmark = [
    pytest.mark.skipif(PROGRAMS is None, reason="needs PostgreSQL, of Debian's package of that name"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, of Debian's package of that name"),
]

SECURED = text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")

RULES = """
local     all all   trust
hostssl   all tls   127.0.0.1/32 trust
hostnossl all plain 127.0.0.1/32 trust
host      all either  127.0.0.1/32 trust
hostssl   all known 127.0.0.1/32 cert
host      all asked 127.0.0.1/32 scram-sha-256
"""
"""Who comes in how: `tls` only secured, `plain` only unsecured, `known` with a certificate, `asked` with a password."""


@dataclass(frozen=True)
class Server:
    port: int
    files: Path
    admin: str

    def url(self, user: str, keys: str, *, host: str = "localhost") -> str:
        return f"postgresql://{user}@{host}:{self.port}/postgres?{keys.format(files=self.files)}"

    async def secured(self, url: str) -> bool:
        """Whether the connection that comes about is."""
        async with connect(url).held() as database:
            [row] = await database.fetch(SECURED)
            return bool(row["ssl"])

    async def tls(self, state: str) -> None:
        """`on` or `off`, for whoever connects from now on."""
        sql = await asyncpg.connect(self.admin)
        try:
            await sql.execute(f"ALTER SYSTEM SET ssl = {state}")
            await sql.execute("SELECT pg_reload_conf()")
            while await sql.fetchval("SHOW ssl") != state:  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.01)
        finally:
            await sql.close()

    def attempts(self) -> int:
        """Connections that the server has logged so far."""
        folder = Path(parse_qs(urlsplit(self.admin).query)["host"][0])
        return (folder / "log").read_text().count("connection received: host=127.0.0.1")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with certificates() as files, socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
        reserved.close()
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "hba_file": str(files / "rules"),
            "ssl_ca_file": str(files / "authority.crt"),
            "ssl_cert_file": str(files / "server.crt"),
            "ssl_key_file": str(files / "server.key"),
            "log_connections": "on",
        }
        with debian(**options) as admin:
            server = Server(port=port, files=files, admin=f"{admin}&port={port}")
            asyncio.run(prepared(server))
            yield server


async def prepared(server: Server) -> None:
    sql = await asyncpg.connect(server.admin)
    for user in ("tls", "plain", "either", "known"):
        await sql.execute(f"CREATE ROLE {user} LOGIN")
    await sql.execute("CREATE ROLE asked LOGIN PASSWORD 'right'")
    await sql.close()
    await server.tls("on")


@contextmanager
def certificates() -> Iterator[Path]:
    """An authority's, a server's of the name localhost, a client's of `known`, a stranger's; and who comes in."""
    folder = Path(tempfile.mkdtemp(prefix="wakebell-tls-"))  # not pytest's: PostgreSQL may be somebody else
    try:
        folder.chmod(0o755)
        for name, subject in (("authority", "Authority"), ("stranger", "Stranger")):
            openssl(
                folder, "req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={subject}"
            )
        for name, subject in (("server", "localhost"), ("client", "known")):
            openssl(folder, "req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={subject}")
            (folder / f"{name}.ext").write_text(f"subjectAltName=DNS:{subject}\n")
            signed = ("-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial", "-extfile", f"{name}.ext")
            openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
        (folder / "rules").write_text(RULES)
        if os.geteuid() == 0:
            os.chown(folder / "server.key", pwd.getpwnam("postgres").pw_uid, -1)
        yield folder
    finally:
        shutil.rmtree(folder)


KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tries to connect follow each other without a wait."""
    monkeypatch.setattr(module, "CONNECT_WAITS", (0, 0, 0))


OURS = "&sslrootcert={files}/authority.crt"
NOT_OURS = "&sslrootcert={files}/stranger.crt"


@pytest.mark.parametrize(
    ("user", "keys", "secured"),
    [
        ("plain", "sslmode=disable", False),
        ("either", "sslmode=disable", False),
        ("either", "sslmode=allow", False),
        ("tls", "sslmode=allow", True),
        ("either", "sslmode=prefer", True),
        ("tls", "sslmode=prefer", True),
        ("plain", "sslmode=prefer", False),
        ("either", f"sslmode=prefer{NOT_OURS}", True),
        ("either", "sslmode=require", True),
        ("either", f"sslmode=require{OURS}", True),
        ("either", f"sslmode=verify-ca{OURS}", True),
        ("either", f"sslmode=verify-full{OURS}", True),
        ("known", "sslmode=require&sslcert={files}/client.crt&sslkey={files}/client.key", True),
        ("known", f"sslmode=verify-full{OURS}&sslcert={{files}}/client.crt&sslkey={{files}}/client.key", True),
    ],
)
async def test_a_connection_is_as_safe_as_its_mode_says(server: Server, user: str, keys: str, secured: bool):  # noqa: FBT001
    assert await server.secured(server.url(user, keys)) == secured


@pytest.mark.parametrize(
    ("user", "keys", "told"),
    [
        ("tls", "sslmode=disable", "takes no unencrypted connection; set sslmode=require in DATABASE_URL"),
        ("plain", "sslmode=require", "lets this user in from other places only"),
        ("either", f"sslmode=require{NOT_OURS}", "nothing that is trusted vouches for its certificate"),
        ("either", f"sslmode=verify-ca{NOT_OURS}", "nothing that is trusted vouches for its certificate"),
        ("either", f"sslmode=verify-full{NOT_OURS}", "nothing that is trusted vouches for its certificate"),
        ("either", "sslmode=verify-full", "name its authority's file as sslrootcert in DATABASE_URL"),
        ("either", "sslrootcert=system", "nothing that is trusted vouches for its certificate"),
        ("known", "sslmode=require", "refused the sign-in"),
    ],
)
async def test_what_is_not_as_safe_is_refused_at_the_first_try(server: Server, user: str, keys: str, told: str):
    before = server.attempts()

    with pytest.raises(DatabaseUnavailable, match=told):
        await server.secured(server.url(user, keys))

    assert server.attempts() == before + 1


async def test_the_hosts_name_is_looked_at_by_verify_full_alone(server: Server):
    assert await server.secured(server.url("either", f"sslmode=verify-ca{OURS}", host="127.0.0.1"))
    assert await server.secured(server.url("either", f"sslmode=require{OURS}", host="127.0.0.1"))
    with pytest.raises(DatabaseUnavailable, match="its certificate is for another host"):
        await server.secured(server.url("either", f"sslmode=verify-full{OURS}", host="127.0.0.1"))


async def test_a_wrong_password_is_tried_once(server: Server):
    assert await server.secured(server.url("asked:right", "sslmode=require"))
    before = server.attempts()

    with pytest.raises(DatabaseUnavailable, match="refused the sign-in; check user and password in DATABASE_URL"):
        await server.secured(server.url("asked:wrong", "sslmode=require"))

    assert server.attempts() == before + 1


@pytest.fixture
async def without_tls(server: Server) -> AsyncIterator[Server]:
    await server.tls("off")
    yield server
    await server.tls("on")


async def test_a_server_without_tls_is_used_where_that_will_do(without_tls: Server):
    for mode in ("disable", "allow", "prefer"):
        assert not await without_tls.secured(without_tls.url("either", f"sslmode={mode}"))

    for keys in ("sslmode=require", f"sslmode=verify-ca{OURS}", f"sslmode=verify-full{OURS}"):
        with pytest.raises(DatabaseUnavailable, match=r"do not agree on TLS: it offers none; .* set sslmode=disable"):
            await without_tls.secured(without_tls.url("either", keys))
