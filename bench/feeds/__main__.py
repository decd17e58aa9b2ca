"""`python -m bench.feeds PATH...`: the feeds in these directories, read by feedparser, fastfeedparser and ours."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from bench.feeds.rightness import agreed, checks, kept

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "bench" / "requirements-feeds.txt"
SUFFIXES = frozenset({".xml", ".rss", ".atom", ".rdf", ".json"})

OURS = "Wakebell"
READERS = {OURS: "wakebell", "feedparser": "feedparser_alone", "fastfeedparser": "fastfeedparser_alone"}


def main() -> None:
    """Prints one table for each path. Files are never written, and nothing of them is shown but their names."""
    parser = argparse.ArgumentParser(prog="python -m bench.feeds", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a directory of feeds, or one feed")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest is told")
    parser.add_argument("--show", action="store_true", help="name the files in which ours differs from both others")
    args = parser.parse_args()
    peers = _peers()
    for path in args.paths:
        files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES) if path.is_dir() else [path]
        if not files:
            parser.error(f"{path} holds no feed ({', '.join(sorted(SUFFIXES))})")
        told = {
            reader: _ask([sys.executable] if reader == OURS else peers, module, files, args.rounds)
            for reader, module in READERS.items()
        }
        print(_table(path.resolve().name, files, told, show=args.show))  # noqa: T201 - a command prints


def _ask(command: list[str], module: str, files: list[Path], rounds: int) -> dict[str, Any]:
    child = subprocess.run(  # noqa: S603 - ourselves
        [*command, "-m", "bench.feeds.child", module, str(rounds)],
        input="".join(f"{file.resolve()}\n" for file in files),
        check=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer


def _table(name: str, files: list[Path], told: dict[str, dict[str, Any]], *, show: bool) -> str:
    bodies = [file.read_bytes() for file in files]
    expected = [list(checks(body)) for body in bodies]
    lines = [
        f"{name}: {len(files):,} files, {sum(map(len, bodies)) / 1e6:.1f} MB",
        "",
        "| | read | agrees with another | expectations met | CPU s | import s | peak MiB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    alone = []
    for reader, answer in told.items():
        others = [other["read"] for peer, other in told.items() if peer != reader]
        right = [any(agreed(read, other[at]) for other in others) for at, read in enumerate(answer["read"])]
        met = sum(map(kept, answer["read"], expected))
        read = sum(not isinstance(found, str) for found in answer["read"])
        wanted = sum(map(len, expected))
        lines.append(
            f"| {reader} | {read:,} | {sum(right):,} | {met:,} of {wanted:,} | {answer['seconds']:.2f} "
            f"| {answer['import']:.2f} | {answer['peak_kib'] / 1024:.0f} |"
        )
        if reader == OURS:
            alone = [file.name for file, agrees in zip(files, right, strict=True) if not agrees]
    if show and alone:
        lines += ["", "Ours alone differs in: " + ", ".join(alone)]
    return "\n".join(lines) + "\n"


def _peers() -> list[str]:
    """The others' environment, made once under `.wakebell/bench` and kept."""
    version = "{}.{}".format(*sys.version_info)
    folder = ROOT / ".wakebell" / "bench" / f"feeds-{version}"
    stamp = folder / "made-from"
    command = [str(folder / "bin" / "python")]
    made_from = f"{version} {zlib.crc32(REQUIREMENTS.read_bytes())}"
    if not (stamp.exists() and stamp.read_text() == made_from):
        print(f"making {folder.relative_to(ROOT)}", file=sys.stderr, flush=True)  # noqa: T201
        quiet = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)  # noqa: S603
        subprocess.run([*command, "-m", "pip", "install", *quiet, "-r", str(REQUIREMENTS)], check=True)  # noqa: S603
        stamp.write_text(made_from)
    return command


if __name__ == "__main__":
    main()
