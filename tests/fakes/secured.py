"""A host that speaks TLS by a certificate of its own, and a proxy that lets people through to it."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path


def certificate(folder: Path, *, days: int = 30, name: str = "IP:127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """What a server speaks with, and the file that vouches for it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", key, "-out", cert, "-days", str(days)),
            *("-subj", "/CN=bell.test", "-addext", f"subjectAltName={name}"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return context, cert


@asynccontextmanager
async def listening(
    answer: bytes = b"", *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """The port of a server that says `answer` to the first thing that it hears, and what it has heard."""
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):  # the latter: the test is over
            said = await reader.read(65_536)
            if said:
                heard.append(said)
                writer.write(answer)
                await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], heard
    finally:
        server.close()


@asynccontextmanager
async def proxy(*, refuses: bytes = b"") -> AsyncIterator[tuple[int, list[bytes]]]:
    """The port of a proxy, and the requests that it has had. It answers each with `refuses`, where that is given."""
    asked: list[bytes] = []
    pipes: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        if refuses:
            writer.write(refuses)
            await writer.drain()
            writer.transport.abort()
            return
        host, _, port = asked[-1].split(b" ")[1].decode().rpartition(":")
        beyond_reader, beyond_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for ends in ((reader, beyond_writer), (beyond_reader, writer)):
            pipes.add(asyncio.create_task(pipe(*ends)))

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        for one in pipes:
            one.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
