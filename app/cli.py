"""The `wakebell` command."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import os
import signal
import sys
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TextIO

from app import (
    __version__,
    commands_alerts,
    commands_conversations,
    commands_doctor,
    commands_jobs,
    commands_preview,
    commands_queues,
    commands_reach,
    commands_schedules,
    commands_start,
    commands_status,
    logs,
    settings,
)
from app.domain.errors import ConfigError, ServiceError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from app.context import Service
    from app.front import Front
    from app.server import Server
    from app.settings import Settings

log = logging.getLogger(__name__)

# Everything else is imported by the command that needs it: `wakebell --help` is to come at once.


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit status 0, or 1 when it failed: then one sentence for each problem is on stderr."""
    args = _parser().parse_args(argv)
    try:
        command: Callable[[argparse.Namespace], int] = args.run
        status = command(args)
        sys.stdout.flush()
    except ConfigError as error:
        print("\n".join(error.problems), file=sys.stderr)
        commands_start.tell_no_start(args, error)
    except ServiceError as error:
        print(f"wakebell: {error}", file=sys.stderr)
        commands_start.tell_no_start(args, error)
    except BrokenPipeError:  # who reads has read enough: `wakebell check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # whoever runs a command is told in one sentence
        log.debug("command crashed", exc_info=True)
        words = " ".join(str(error).split())[:300]
        print(
            f"wakebell: a bug, or something that nobody thought of: {type(error).__name__}: {words}; "
            "LOG_LEVEL=DEBUG logs where",
            file=sys.stderr,
        )
    else:
        return status
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wakebell", description="One bounded batch of work each time somebody rings.")
    parser.add_argument("--version", action="version", version=f"wakebell {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
        added.set_defaults(run=run, command=name)
        return added

    command("serve", _serve, "Answer HTTP until told to stop.")
    command("dev", _dev, "Embedded PostgreSQL, a sample source, two first ticks; then serve.")
    tick = command("tick", _tick, "Run one batch without HTTP. Exit status 1 when it failed.")
    tick.add_argument("--budget", type=_between(1, 300), metavar="S", help="seconds, 1 to 300")
    tick.add_argument("--max-jobs", type=_between(1, 1000), metavar="N", help="jobs of your own types, 1 to 1000")
    work = command("work", _work, "Tick on its own schedule and run jobs as they come, until told to stop.")
    work.add_argument(
        "--every",
        type=_seconds(1, 86400),
        metavar="S",
        help="seconds from tick to tick; default: as expected in [tick]",
    )
    work.add_argument("--poll", type=_seconds(0.1, 60), default=2.0, metavar="S", help="seconds, default 2")
    migrate = command("migrate", _migrate, "Bring the database's schema up to this release.")
    send_test = command("send-test", _send_test, "Send one real message now, and tell what the provider said.")
    send_test.add_argument("recipient", metavar="RECIPIENT", help="a name in [recipients.*]")
    commands_preview.add(command)
    check = command("check", _check, "Tell every problem of configuration, secrets and database at once.")
    commands_doctor.add(command, _database)
    commands_jobs.add(command, _database_alone, lambda: _configured(quiet_stdout=True))
    commands_queues.add(command, _database_alone)
    commands_status.add(command, _database_alone, lambda: _configured(quiet_stdout=True))
    commands_alerts.add(command, _database_alone)
    commands_reach.add(command, lambda: _configured(quiet_stdout=True))
    commands_conversations.add(command, lambda: _configured(quiet_stdout=True))
    commands_schedules.add(command, lambda: _configured(quiet_stdout=True))
    for printing in (tick, migrate, check):
        printing.add_argument("--json", action="store_true", help="print data as JSON")
    return parser


def _between(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")
        return int(text)

    return number


def _seconds(least: float, most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not least <= seconds <= most:
            raise argparse.ArgumentTypeError(f"must be a number of seconds from {least:g} to {most:g}")
        return seconds

    return number


def _serve(_: argparse.Namespace) -> int:
    """The port first, the rest while `/healthz` is answered already; what is wrong with the rest still ends it all."""
    from app.front import Front  # noqa: PLC0415
    from app.server import Server, bind  # noqa: PLC0415

    with ExitStack() as stack:
        address = settings.listening(settings.from_process())
        if address is None:  # nowhere to listen: all that is wrong is told
            address = _address(stack.enter_context(_configured(need={"CRON_SECRET"})))
        host, port = address
        listening = bind(host, port)

        def load() -> Any:
            configured = stack.enter_context(_configured(need={"CRON_SECRET"}))
            from app import main as service_main  # noqa: PLC0415

            service = service_main.build(configured)
            doors = service_main.Doors(service)
            service_main.tell_start(service, host, port)
            return doors

        front = Front(load)
        server = Server(front, front)
        front.on_failure(server.end)
        asyncio.run(_served(server, listening, front))
        if front.failure is not None:
            raise front.failure
    return 0


def _address(configured: Settings) -> tuple[str, int]:
    return configured.environment.host, configured.environment.port


async def _worked(working: Coroutine[Any, Any, None]) -> None:
    await working
    _leave_what_does_not_end(0)


async def _served(server: Server, listening: socket.socket, front: Front) -> None:
    await server.serve(sockets=[listening])
    if front.failure is None:
        _leave_what_does_not_end(0)


def _leave_what_does_not_end(status: int) -> None:
    """Ends the process at once where a handler swallowed its cancellation: the event loop would wait for ever."""
    stuck = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("job ")]
    if stuck:
        log.error("jobs do not let themselves be stopped", extra={"jobs": stuck})
        logging.shutdown()
        sys.stdout.flush()
        os._exit(status)


def _dev(_: argparse.Namespace) -> int:
    try:
        from app.dev import session  # noqa: PLC0415

        asyncio.run(session.run())
    except KeyboardInterrupt:  # before the session listens, or after
        print("wakebell: stopping")
    return 0


def _tick(args: argparse.Namespace) -> int:
    with _configured(quiet_stdout=True) as configured:
        from app import main as service_main  # noqa: PLC0415

        service = service_main.build(configured)
        return asyncio.run(_rung(service, args))


async def _rung(service: Service, args: argparse.Namespace) -> int:
    from app import tick  # noqa: PLC0415

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, service.stopping.request)
    bounds = service.settings.tick
    summary = await tick.run(
        service,
        budget=timedelta(seconds=args.budget) if args.budget else bounds.budget,
        max_jobs=args.max_jobs or bounds.max_jobs,
        trigger="cli",
    )
    print(json.dumps(summary, ensure_ascii=False) if args.json else _told(summary))
    status = 1 if summary["status"] == "failed" else 0
    _leave_what_does_not_end(status)
    return status


def _work(args: argparse.Namespace) -> int:
    with _configured() as configured:
        from app import main as service_main  # noqa: PLC0415
        from app import work  # noqa: PLC0415

        service = service_main.build(configured)
        every = timedelta(seconds=args.every) if args.every else configured.tick.expected_every
        asyncio.run(_worked(work.run(service, every=every, poll=timedelta(seconds=args.poll))))
    return 0


def _told(summary: Mapping[str, Any]) -> str:
    """The summary in lines: the counters that are not zero."""
    lines = [f"tick {summary['tick']} {summary['status']} in {summary['duration_ms']} ms"]
    for section, counters in summary.items():
        if isinstance(counters, dict) and any(counters.values()):
            told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counters.items() if count)
            lines.append(f"  {section}: {told}")
    return "\n".join([*lines, *(f"  {error}" for error in summary["errors"])])


def _migrate(args: argparse.Namespace) -> int:
    with _database() as environ:
        from app.stores.migrations import migrate  # noqa: PLC0415

        address = settings.load_database(environ)
        name = "MIGRATION_DATABASE_URL" if address.migration_url else "DATABASE_URL"
        migrated = asyncio.run(migrate(address.migration_url or address.url or "", name=name))
    if args.json:
        print(json.dumps({"before": migrated.before, "after": migrated.after}, ensure_ascii=False))
    elif migrated.before == migrated.after:
        print(f"the schema is at {migrated.after} already")
    else:
        print(f"the schema went from {migrated.before or 'nothing'} to {migrated.after}")
    return 0


def _send_test(args: argparse.Namespace) -> int:
    from app import send_test  # noqa: PLC0415

    configured = settings.load(settings.from_process())
    with _configured() if send_test.stays_here(configured, args.recipient) else nullcontext(configured) as configured:
        _log_as_wanted(configured, sys.stderr)
        print(asyncio.run(send_test.run(configured, args.recipient)))
    return 0


def _check(args: argparse.Namespace) -> int:
    from app import check  # noqa: PLC0415

    environ: Mapping[str, str] = settings.from_process()
    # Where there is no configuration this may be any folder, and no database is made in it.
    usable = settings.load_database(environ).url is not None or check.loads(environ)
    with ExitStack() as stack:
        missing: list[str] = []
        try:
            environ = stack.enter_context(_database()) if usable else environ
        except ConfigError:
            raise
        except ServiceError as error:  # no database at all is one problem among others
            missing = [str(error)]
        found = asyncio.run(check.run(environ, missing, database=usable))
    if args.json:
        print(json.dumps({"problems": found.problems, "found": found.lines}, ensure_ascii=False))
    else:
        for line in found.lines:
            print(line)
        for problem in found.problems:
            print(problem, file=sys.stderr)
    return 1 if found.problems else 0


@contextmanager
def _configured(*, need: set[str] | None = None, quiet_stdout: bool = False) -> Iterator[Settings]:
    """The whole configuration, and logs as it wants them; on stderr where stdout is to hold data alone."""
    environ = settings.from_process()
    configured = settings.load(environ, need=need or set())  # first: no database is made where it cannot be read
    with _database() as complete:
        if complete != environ:
            configured = settings.load(complete, need=need or set())
        _log_as_wanted(configured, sys.stderr if quiet_stdout else sys.stdout)
        yield configured


def _log_as_wanted(configured: Settings, stream: TextIO) -> None:
    environment = configured.environment
    logs.configure(style=environment.log_format, level=environment.log_level, stream=stream, mask=configured.mask)


@contextmanager
def _database_alone() -> Iterator[Mapping[str, str]]:
    """`_database`, for commands that read no configuration; where there is none, no database is made."""
    environ = settings.from_process()
    if settings.load_database(environ).url is None:
        settings.load(environ)
    with _database() as complete:
        yield complete


@contextmanager
def _database() -> Iterator[Mapping[str, str]]:
    """The environment with a DATABASE_URL in it: where none is set, the embedded PostgreSQL's, while it is needed."""
    environ = settings.from_process()
    if settings.load_database(environ).url is not None:
        yield environ
        return
    from app.dev import owner, postgres  # noqa: PLC0415

    server = postgres.start()
    try:
        yield {**environ, "DATABASE_URL": server.url}
    finally:
        if server.started and not owner.present():
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
