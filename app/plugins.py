"""A kind is a file name: `load("app.channels", "slack")` is `app/channels/slack.py`.

No registry and no decorator: what is in the folder is there, and a kind that nobody names is never imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from app.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def kinds(package: str) -> list[str]:
    """The names of the files in a package's folder, sorted. Imports the package, none of the files."""
    module = importlib.import_module(package)
    return sorted(found.name for found in pkgutil.iter_modules(module.__path__) if not found.name.startswith("_"))


def load(package: str, kind: str) -> Any:
    """The module of a kind.

    Raises:
        KeyError: there is no such file; `kinds` lists what there is.
    """
    if kind not in kinds(package):
        raise KeyError(kind)
    return importlib.import_module(f"{package}.{kind}")


USERS_PACKAGE = "wakebell_handlers"
"""The package that the files of a user's folder belong to: `from ._shared import ...` works among them."""


def load_folder(folder: Path) -> dict[str, ModuleType]:
    """The modules of a user's folder by file name, imported from their paths. A missing folder holds none.

    Files whose names begin with `_` are for the others to import. Loading again reads every file again.

    Raises:
        ConfigError: a file does not import; every such file is named with its reason.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == USERS_PACKAGE]:
        del sys.modules[name]
    package = ModuleType(USERS_PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[USERS_PACKAGE] = package
    modules: dict[str, ModuleType] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.py")):
        if path.stem.startswith("_"):
            continue
        try:
            modules[path.stem] = _import_path(path)
        except Exception as error:  # noqa: BLE001 - a user's file may raise anything at all
            reason = f"{type(error).__name__}: {error}"
            problems.append(f"{folder.name}/{path.name}: cannot be imported: {reason}; mend the file or move it away")
    if problems:
        raise ConfigError(problems)
    return modules


def _import_path(path: Path) -> ModuleType:
    name = f"{USERS_PACKAGE}.{path.stem}"
    if name in sys.modules:  # another file of the folder has imported it
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look up the names in annotations there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
