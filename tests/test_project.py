"""What holds for the repository as a whole."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock")

# Parted, so that this file does not hold what it looks for.
OF_ONE_MACHINE = re.compile(
    r"(?:file:/[/]|(?<![\w.:/~*-]))/(?:roo[t]|wor[k]|hom[e]|User[s]|op[t]|tm[p])/[\w.-]+"  # a path
    r"|--(?:extra-)?index-ur[l]\b|pypi\.or[g]/simple"  # an index
)
FLAG_AGAINST_IT = "--no-emit-index-url"

# FastAPI and Pydantic hand these on as their own.
PARTS_OF_OTHERS = {"starlette", "pydantic_core"}


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("needs a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_holds_an_address_or_a_path_of_one_machine():
    found = []
    for path in tracked():
        try:
            lines = path.read_text("utf-8").replace(FLAG_AGAINST_IT, "").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if OF_ONE_MACHINE.search(line)
        ]
    assert found == []


@pytest.mark.parametrize("name", LOCKS)
def test_each_requirement_of_a_lock_file_has_a_version_and_hashes(name: str):
    logical = (ROOT / name).read_text("utf-8").replace("\\\n", " ").splitlines()
    requirements = [line for line in logical if line.strip() and not line.lstrip().startswith("#")]
    assert len(requirements) > 10
    assert [line for line in requirements if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)] == []


def test_the_lock_files_agree():
    runtime, everything = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text("utf-8"), re.MULTILINE)) for name in LOCKS
    )
    assert runtime.items() <= everything.items()


def test_the_lock_files_hold_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for name, asked in zip(LOCKS, (project["dependencies"], extras["dev"] + extras["embedded"]), strict=True):
        locked = set(re.findall(r"^([\w.-]+)==", (ROOT / name).read_text("utf-8"), re.MULTILINE))
        assert {re.split(r"[\[>]", requirement)[0] for requirement in asked} <= locked


def test_what_the_service_imports_is_asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    asked = project["dependencies"] + optional["embedded"] + optional["apprise"]
    names = {re.split(r"[\[>]", requirement)[0].replace("-", "_") for requirement in asked}
    imported = set()
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    assert imported - sys.stdlib_module_names - names - {"app", *PARTS_OF_OTHERS} == set()


def test_the_folder_of_migrations_is_no_package():
    assert list((ROOT / "alembic").rglob("__init__.py")) == []


def test_the_wheel_holds_the_migrations_inside_the_package(tmp_path: Path):
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout
    (wheel,) = tmp_path.glob("wakebell-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    outside = {str(path.relative_to(ROOT / "alembic")) for path in (ROOT / "alembic").rglob("*") if path.is_file()}
    wanted = {f"app/_alembic/{name}" for name in outside if "__pycache__" not in name}
    assert {name for name in names if name.startswith("app/_alembic/")} == wanted
    assert "app/_alembic/env.py" in wanted
    for kind in ("sql", "html", "css", "js", "svg"):
        assert {str(path.relative_to(ROOT)) for path in (ROOT / "app").rglob(f"*.{kind}")} <= names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"app"}
