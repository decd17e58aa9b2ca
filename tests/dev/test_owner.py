from __future__ import annotations

from pathlib import Path

import pytest

from app.dev import owner
from app.domain.errors import ServiceError


def test_there_is_one_at_a_time(tmp_path: Path):
    path = tmp_path / ".wakebell" / "dev.lock"

    with owner.owned(path) as first:
        with pytest.raises(ServiceError, match="already running in this folder: stop it first"), owner.owned(path):
            pass
        first.serves(8081)
        with pytest.raises(ServiceError, match="already running in this folder, on port 8081: stop"), owner.owned(path):
            pass
    with owner.owned(path):
        assert path.read_text() == ""


def test_its_presence_is_seen_without_a_trace(tmp_path: Path):
    path = tmp_path / ".wakebell" / "dev.lock"

    assert not owner.present(path)
    assert not path.exists()
    with owner.owned(path):
        assert owner.present(path)
    assert not owner.present(path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / ".wakebell").write_text("")

    with pytest.raises(ServiceError, match="cannot be written"), owner.owned(tmp_path / ".wakebell" / "dev.lock"):
        pass
