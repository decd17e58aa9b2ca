"""A program that has imported the service and bears processes of it by fork: each costs no start of its own.

Standard input has one JSON object a line: {"arguments", "environ", "folder", "log", "die_at"}. Standard output has
`born PID` for each, and `ended PID STATUS` once one is over, below zero for the signal that killed it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, NoReturn

from app import cli, main, plugins, server  # noqa: F401 - what `serve` imports late
from tests.flow import clocks
from tests.flow.killable import die_at

for _package in ("app.channels", "app.handlers", "app.plans", "app.sources"):
    for _kind in plugins.kinds(_package):
        plugins.load(_package, _kind)


def bear(order: dict[str, Any]) -> None:
    if clocks.VARIABLE in order["environ"]:
        clocks.import_those_that_ask()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # nobody ends before it was born
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        live(order)
    tell(f"born {child}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def live(order: dict[str, Any]) -> NoReturn:
    status = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor, instead in ((0, nothing), (1, log), (2, log)):
            os.dup2(instead, descriptor)
        os.environ.clear()
        os.environ.update(order["environ"])
        os.chdir(order["folder"])
        if clocks.VARIABLE in os.environ:
            clocks.follow(os.environ[clocks.VARIABLE])
        count = None if order["die_at"] is None else die_at(order["die_at"])
        status = cli.main(order["arguments"])
        if count is not None:
            sys.stdout.write(f"steps: {count.steps}\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def reap(*_: object) -> None:
    while True:
        try:
            child, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if child == 0:
            return
        tell(f"ended {child} {os.waitstatus_to_exitcode(ended)}")


def tell(words: str) -> None:
    os.write(1, f"{words}\n".encode())


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, reap)
    for line in sys.stdin:
        bear(json.loads(line))
