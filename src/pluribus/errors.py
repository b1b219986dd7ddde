"""Everything that can go wrong, and whether asking again may help.

PluribusError
├── UsageError            the user's input is wrong; exit code 2
│   ├── UnknownName       no such method, task, model, …; lists what there is
│   ├── ConfigError       a council file or flag
│   ├── DataError         a data file: names file and line
│   ├── MissingDependency an extra is not installed
│   ├── CodeNotAllowed    model-written programs would run, and nobody allowed it
│   └── MissingSandbox    … and this machine has no jail for them
├── BackendError          a model call gave no completion
│   ├── RateLimited       429; may carry retry_after_s           (retryable)
│   ├── ServerError       5xx                                    (retryable)
│   ├── ConnectionLost    refused or cut                         (retryable)
│   ├── CallTimeout       no reply in time                       (retryable)
│   ├── BadReply          not JSON, no choices, no text          (retryable)
│   ├── WrongModel        the service answered with, or knows, another model
│   ├── Refused           4xx: bad request, authentication, context too long
│   └── NotRecorded       replay: this (question, sample) is not in the file
├── BudgetExceeded        the next call could pass the budget; nothing was sent
├── ProtocolError         a method can not go on (every seat failed, …)
├── TrainingStopped       a training can not go on (the loss is no number, …); its checkpoints are kept
├── BadForm               a reply is not in the form it was asked for; a record in its turn, seldom raised further
└── StoreError            the workspace's database
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from pluribus.types import Failure


class PluribusError(Exception):
    """Base of all errors raised on purpose. `hint` says what to do; `retryable` whether asking again may help."""

    retryable = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}; {self.hint}" if self.hint else message


class UsageError(PluribusError):
    pass


class UnknownName(UsageError):
    """
    >>> print(UnknownName("method", "vot", ["debate", "vote"]))
    unknown method 'vot'; did you mean 'vote'? there are: debate, vote
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {what} {name!r}", hint=f"{guess}there are: {', '.join(names) or 'none'}")


class ConfigError(UsageError):
    pass


class DataError(UsageError):
    """A malformed line or file; `place` is `file:line`."""

    def __init__(self, place: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{place}: {message}", hint=hint)
        self.place = place


class MissingDependency(UsageError):
    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}", hint=f"install it with: pip install 'pluribus[{extra}]'"
        )


class CodeNotAllowed(UsageError):
    """
    >>> print(CodeNotAllowed("task humaneval runs programs that models write"))
    task humaneval runs programs that models write; allow it with --allow-code-execution
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="allow it with --allow-code-execution")


class MissingSandbox(UsageError):
    pass


class BackendError(PluribusError):
    pass


class RateLimited(BackendError):
    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class ServerError(BackendError):
    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class ConnectionLost(BackendError):
    retryable = True


class CallTimeout(BackendError):
    retryable = True


class BadReply(BackendError):
    retryable = True


class WrongModel(BackendError):
    pass


class Refused(BackendError):
    pass


class NotRecorded(BackendError):
    pass


class BudgetExceeded(PluribusError):
    pass


class ProtocolError(PluribusError):
    pass


class TrainingStopped(PluribusError):
    pass


class BadForm(PluribusError):
    pass


class StoreError(PluribusError):
    pass


def failure(error: PluribusError) -> Failure:
    """The record of an error.

    >>> failure(CallTimeout("no reply in 5 s")).kind
    'call_timeout'
    """
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    return Failure(kind=kind, message=str(error), retryable=error.retryable)


def first_of(error: BaseException) -> BaseException:
    """The first error inside groups of errors: a caller knows how to meet one, not a group.

    >>> first_of(ExceptionGroup("both", [ConfigError("one"), ConfigError("other")]))
    ConfigError('one')
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
