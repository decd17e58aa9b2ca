"""Debian's nginx with one of the project's own configurations, and a name server for the one that asks for names."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")

NEEDED = "needs nginx, of Debian's package of that name"

DEPLOY = Path(__file__).parents[2] / "deploy"

SECONDS = 30.0
"""Until it listens; no measure, only an end."""

MAIN = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    log_format upstream '$upstream_addr $status';
    access_log {folder}/access.log upstream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {included}
}}
"""


class Balancer:
    """A running nginx."""

    def __init__(self, port: int, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._folder = folder

    def served(self) -> Counter[str]:
        """How many requests each replica has answered, by its address."""
        lines = (self._folder / "access.log").read_text().splitlines()
        return Counter(line.split()[-2] for line in lines if line.split()[-1] != "502")


@asynccontextmanager
async def balancer(configuration: str, changes: Mapping[str, str]) -> AsyncIterator[Balancer]:
    """nginx with `deploy/<configuration>`, in which each of these texts, which must be there, is another one."""
    folder = _folder()
    port = free_port()
    changes = {**changes, "listen 8080;": f"listen 127.0.0.1:{port};"}
    process = await _run(folder, _written(configuration, changes))
    try:
        await _listens(process, port, folder)
        yield Balancer(port, folder)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


async def accepted(configuration: str) -> bool:
    """Whether nginx takes `deploy/<configuration>` as it is: what a person asks by `nginx -t`."""
    folder = _folder()
    try:
        process = await _run(folder, _written(configuration, {}), "-t")
        return await process.wait() == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _written(configuration: str, changes: Mapping[str, str]) -> str:
    written = (DEPLOY / configuration).read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in written, old
        written = written.replace(old, new)
    return written


async def _run(folder: Path, included: str, *more: str) -> asyncio.subprocess.Process:
    assert PROGRAM is not None
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, included=included))
    return await asyncio.create_subprocess_exec(
        *(PROGRAM, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log"), *more),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="wakebell-nginx-"))
    folder.chmod(0o777)  # its workers are somebody else
    return folder


@asynccontextmanager
async def name_server(addresses: list[str]) -> AsyncIterator[int]:
    """The port of one that answers every question for an IPv4 address with these, which may change meanwhile."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Names(addresses), local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


class _Names(asyncio.DatagramProtocol):
    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """RFC 1035, sections 4.1.1 to 4.1.3: the question is repeated, each answer points at its name."""
        end = data.index(b"\x00", 12) + 5
        records = b"".join(
            b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(address) for address in self._addresses
        )
        head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, len(self._addresses), 0, 0)
        self._transport.sendto(head + data[12:end] + records, addr)


async def _listens(process: asyncio.subprocess.Process, port: int, folder: Path) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            log = folder / "error.log"
            assert process.returncode is None, log.read_text() if log.exists() else "it has ended"
            try:
                _, wire = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
                continue
            wire.close()
            return


def free_port(host: str = "127.0.0.1") -> int:
    """One at which nobody listens just now."""
    with socket.socket() as listening:
        listening.bind((host, 0))
        port: int = listening.getsockname()[1]
        return port
