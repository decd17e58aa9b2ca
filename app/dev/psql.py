"""`make psql`: a prompt on the embedded PostgreSQL while it runs. Starts nothing, so that nothing is left running."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from app.dev import postgres
from app.domain.errors import ServiceError


def main() -> NoReturn:
    """Becomes psql; the arguments are handed on. Exit status 1 and a sentence where there is no server."""
    try:
        url = postgres.find().url
    except ServiceError as error:
        sys.exit(f"wakebell: {error}")
    program = str(postgres.programs() / "psql")
    os.execv(program, [program, url, *sys.argv[1:]])  # noqa: S606 - a program of the wheel, without a shell


if __name__ == "__main__":
    main()
