from __future__ import annotations

from datetime import timedelta

import pytest

from app.domain import errors


def test_all_problems_of_a_configuration_are_one_error():
    error = errors.ConfigError(["one: is wrong", "two: is wrong too"])

    assert error.problems == ["one: is wrong", "two: is wrong too"]
    assert str(error) == "one: is wrong\ntwo: is wrong too"


def test_a_temporary_failure_may_say_when_to_come_back():
    assert errors.TemporaryFailure("429", retry_after=timedelta(seconds=30)).retry_after == timedelta(seconds=30)
    assert errors.TemporaryFailure("503").retry_after is None


def test_an_unanswered_request_is_worth_another_try():
    error = errors.Unanswered("no answer")

    assert isinstance(error, errors.TemporaryFailure)
    assert error.retry_after is None


@pytest.mark.parametrize("kind", [errors.TemporaryFailure, errors.PermanentFailure, errors.Unanswered])
def test_a_source_a_channel_and_a_handler_fail_in_one_family(kind: type[Exception]):
    assert issubclass(kind, errors.Failure)
    assert not issubclass(kind, errors.DatabaseUnavailable | errors.LeaseLost)


@pytest.mark.parametrize(
    "name", [name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, Exception)]
)
def test_every_error_is_caught_by_the_root(name: str):
    assert issubclass(getattr(errors, name), errors.ServiceError)
