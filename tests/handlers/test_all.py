from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from app import handlers, plugins
from app.domain.errors import ConfigError
from app.domain.jobs import BUILT_IN
from app.domain.limits import DEFAULT_TIMEOUT

BUDGET = timedelta(seconds=25)
MOST = timedelta(seconds=20)
MOST_BY_TYPE = {"answer_message": timedelta(seconds=60)}
"""What makes an answer may take as long as the chat's own budget."""

GREET = """
from datetime import timedelta
from pydantic import BaseModel

class Payload(BaseModel):
    name: str

async def handle(payload, ctx):
    pass
"""


@pytest.mark.parametrize("name", plugins.kinds("app.handlers"))
def test_a_handler_of_the_service_has_what_it_takes(name: str):
    runnable = handlers.all_types({})[name]

    assert runnable.own is (name not in BUILT_IN)
    assert issubclass(runnable.module.Payload, BaseModel)
    assert list(inspect.signature(runnable.module.handle).parameters) == ["payload", "ctx"]
    assert inspect.iscoroutinefunction(runnable.module.handle)
    assert timedelta(0) < runnable.timeout <= MOST_BY_TYPE.get(name, MOST)
    assert runnable.after <= set(plugins.kinds("app.handlers")) - {name}


def users(folder: Path, **files: str) -> dict[str, handlers.Runnable]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return handlers.users(folder, budget=BUDGET)


def problems(folder: Path, **files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        users(folder, **files)
    return caught.value.problems


def test_a_file_is_a_type(tmp_path: Path):
    found = users(tmp_path, greet=GREET, _shared="MORE = 1")

    assert list(found) == ["greet"]
    greet = found["greet"]
    assert (greet.type, greet.own, greet.timeout, greet.delays, greet.after) == (
        "greet",
        False,
        DEFAULT_TIMEOUT,
        None,
        frozenset(),
    )


def test_a_file_may_say_how_long_and_how_often(tmp_path: Path):
    more = "TIMEOUT = timedelta(seconds=25)\nRETRY = (timedelta(0), timedelta(days=1))\n"

    greet = users(tmp_path, greet=GREET + more)["greet"]

    assert greet.timeout == timedelta(seconds=25)
    assert greet.delays == (timedelta(0), timedelta(days=1))


def test_a_missing_folder_has_no_types(tmp_path: Path):
    assert handlers.users(tmp_path / "nowhere", budget=BUDGET) == {}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("send_message", GREET, "is one of the service's own job types; rename the file"),
        ("send-Mail", GREET, "the name is that of the job type: lower-case letters, digits and _; rename the file"),
        ("greet", GREET.replace("Payload", "Load"), "needs `class Payload(pydantic.BaseModel)`"),
        ("greet", GREET.replace("(BaseModel)", ""), "needs `class Payload(pydantic.BaseModel)`"),
        ("greet", GREET.replace("handle", "run"), "needs `async def handle(payload, ctx)`"),
        ("greet", GREET + "TIMEOUT = 5", "TIMEOUT must be a datetime.timedelta above zero"),
        ("greet", GREET + "TIMEOUT = timedelta(0)", "TIMEOUT must be a datetime.timedelta above zero"),
        ("greet", GREET + "TIMEOUT = timedelta(seconds=26)", "TIMEOUT is 26 s, above the tick's budget of 25 s"),
        ("greet", GREET + "RETRY = ()", "RETRY must be a tuple of datetime.timedelta"),
        ("greet", GREET + "RETRY = (60,)", "RETRY must be a tuple of datetime.timedelta"),
        ("greet", GREET + "RETRY = timedelta(1)", "RETRY must be a tuple of datetime.timedelta"),
        ("greet", GREET + "import nothing_of_the_kind", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_file_that_is_no_handler_is_told_by_name(tmp_path: Path, name: str, text: str, told: str):
    [problem] = problems(tmp_path, **{name: text})

    assert f"{name}.py" in problem
    assert told in problem


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path):
    assert len(problems(tmp_path, one="", two="TIMEOUT = 1")) == 5


def test_own_and_users_types_stand_together(tmp_path: Path):
    together = handlers.all_types(users(tmp_path, greet=GREET))

    assert set(together) == {*plugins.kinds("app.handlers"), "greet"}
