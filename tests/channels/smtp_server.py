"""A real SMTP server in the test's own loop."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import Any

from aiosmtpd.smtp import SMTP


class Mailbox:
    """What a server does: keeps mails, or answers with the reply it is given for a command."""

    def __init__(self, **replies: str) -> None:
        self.replies = replies
        self.envelopes: list[Any] = []
        self.users: list[bytes | None] = []

    async def handle_MAIL(self, server, session, envelope, address, options):
        envelope.mail_from = address
        return self.replies.get("mail", "250 OK")

    async def handle_RCPT(self, server, session, envelope, address, options):
        envelope.rcpt_tos.append(address)
        return self.replies.get("rcpt", "250 OK")

    async def handle_DATA(self, server, session, envelope):
        self.envelopes.append(envelope)
        self.users.append(session.auth_data.login if session.authenticated else None)
        if self.replies.get("data") == "hang up":
            server.transport.abort()
        return self.replies.get("data", "250 queued as 4711")

    async def handle_QUIT(self, server, session, envelope):
        if self.replies.get("quit") == "hang up":
            server.transport.abort()
        return self.replies.get("quit", "221 Bye")


@asynccontextmanager
async def listening(mailbox: Mailbox, *, tls: ssl.SSLContext | None = None, **settings):
    """The port of a real SMTP server in this loop."""
    loop = asyncio.get_running_loop()
    transports: list[asyncio.Transport] = []

    class Server(SMTP):
        def connection_made(self, transport):
            transports.append(transport)
            super().connection_made(transport)

    def connect() -> Server:
        return Server(mailbox, hostname="mx.test", loop=loop, **settings)

    server = await loop.create_server(connect, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()
        for transport in transports:
            transport.abort()
        for _ in range(3):  # an aborted transport closes its socket in the loop's next rounds
            await asyncio.sleep(0)
