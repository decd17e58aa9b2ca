"""Every error the service raises on purpose.

    ServiceError
    |-- ConfigError              wakebell.toml or a secret is wrong; nothing starts
    |-- DatabaseUnavailable      PostgreSQL cannot be reached now; answered 503
    |-- SchemaOutdated           `wakebell migrate` has not been run; answered 503
    |-- MemoryUnavailable        Redis cannot be asked now; PostgreSQL does without it
    |-- LeaseLost                another tick has taken the job; nothing was written
    |-- SignatureError           a webhook is not from who it says; answered 401
    `-- Failure                  a source, channel or handler could not do its work
        |-- TemporaryFailure     try again later; costs one attempt
        |   |-- Unanswered       it was sent, no answer came: it may have arrived
        |   |-- Moved            whom it was for is reached at another address now
        |   |-- RateLimited      refused, since it was too much at once: the whole channel waits; costs no attempt
        |   |-- QuotaSpent       refused, since this month's messages are used up: the whole channel waits
        |   `-- NothingListed    a source lists nothing, and does not say so itself
        |-- QueryFailure         a query of the user's own did not give what it should
        `-- PermanentFailure     trying again cannot help; failed at once
            `-- Blocked          nor can any other message to this recipient

An author of a source, a channel or a handler needs TemporaryFailure and PermanentFailure, and nothing else.
Any other exception out of their code is a bug: logged with its traceback, and retried.
"""

from __future__ import annotations

from datetime import timedelta  # noqa: TC003 - annotations are read at runtime by users


class ServiceError(Exception):
    """The root: catch it to catch all that is told in one sentence."""


class ConfigError(ServiceError):
    """What is wrong with the configuration, all of it at once.

    `problems` holds one sentence each: where it is, what is wrong, what to change.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DatabaseUnavailable(ServiceError):
    """PostgreSQL did not take the connection, or dropped it; the text says what to look at."""


class SchemaOutdated(ServiceError):
    """The database's schema is older than this release needs."""


class MemoryUnavailable(ServiceError):
    """Redis or Valkey did not answer; whatever it is for, the database does as well."""


class LeaseLost(ServiceError):
    """The job's lease ran out and another tick has it: what was being written is rolled back."""


class SignatureError(ServiceError):
    """A webhook is not from who it says, or too old; the text says which of its headers tells so, never a secret."""


class Failure(ServiceError):
    """A source, channel or handler could not do its work."""


class TemporaryFailure(Failure):
    """Try again later. `retry_after`, where given, is what the other side asked for."""

    def __init__(self, reason: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Unanswered(TemporaryFailure):
    """A request left and no answer came: whether the other side has acted is not known."""


class Moved(TemporaryFailure):
    """The recipient's address is another one by now. `to` is the new one; nothing has arrived at either."""

    def __init__(self, reason: str, *, to: str) -> None:
        super().__init__(reason)
        self.to = to


class RateLimited(TemporaryFailure):
    """The provider refuses for a while, whatever it is and whomever it is for. Nothing has arrived."""


class QuotaSpent(TemporaryFailure):
    """The provider takes nothing more until there is room in its allowance. Nothing has arrived."""


class QueryFailure(Failure):
    """A query of the user's own failed, or gave something else than it should; the text says what to change."""


class NothingListed(TemporaryFailure):
    """A source answers and lists nothing, and should: its list may look otherwise by now."""


class PermanentFailure(Failure):
    """Trying again cannot help: given up at once, kept for a person to see."""


class Blocked(PermanentFailure):
    """Whoever it is for will get nothing more on this channel until a person has changed something."""
