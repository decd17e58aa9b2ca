"""The command `doctor`: what is wrong around the service, from where it runs."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.commands import columns
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from app.commands import AddCommand, Database
    from app.domain.findings import Finding

# Everything else is imported when it is needed: `wakebell --help` is to come at once.


def add(command: AddCommand, database: Database) -> None:
    """Add the command's parser."""
    about = "Look at database, network, channels, chats and scheduler from here; tell what to change. Sends nothing."
    doctor = command("doctor", lambda args: _doctor(args, database), about)
    doctor.add_argument("--json", action="store_true", help="print data as JSON")


def _doctor(args: argparse.Namespace, database: Database) -> int:
    from app import check, settings  # noqa: PLC0415
    from app.domain.findings import worst  # noqa: PLC0415

    environ: Mapping[str, str] = settings.from_process()
    # Where there is no configuration this may be any folder, and no database is made in it.
    usable = settings.load_database(environ).url is not None or check.loads(environ)
    missing: list[str] = []
    with ExitStack() as stack:
        try:
            environ = stack.enter_context(database()) if usable else environ
        except ServiceError as error:  # no database at all is one finding among others
            missing = [str(error)]
        found = asyncio.run(_looked(environ, missing))
    if args.json:
        print(json.dumps({"status": worst(found), "checks": [asdict(one) for one in found]}, ensure_ascii=False))
    else:
        print("\n".join(columns([(one.status, one.name, one.sentence) for one in found])))
    return 1 if worst(found) == "fail" else 0


async def _looked(environ: Mapping[str, str], missing: Sequence[str]) -> list[Finding]:
    from app import doctor  # noqa: PLC0415

    asyncio.get_running_loop().set_default_executor(_Unwaited())
    return await doctor.run(environ, missing)


class _Unwaited(ThreadPoolExecutor):
    """Threads that keep no process from ending: a resolver may take minutes to say that nobody answers it."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Begin the call at once."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **named))
            except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
                future.set_exception(error)

        threading.Thread(target=work, name="looking", daemon=True).start()
        return future
