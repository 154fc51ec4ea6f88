"""Errors, one class per exit code; the command line maps them in one place.

Every message says where, what, and what to do, in one line. Settings have the names that configurations and Python have
for them; an error lists those that it is about, so that the command line can add its own names.
"""

from __future__ import annotations

from collections.abc import Iterable


class KcrfError(Exception):
    """Base of every error this library raises on purpose; `settings` are the names of those that it is about."""

    def __init__(self, *arguments: object, settings: Iterable[str] = ()):
        super().__init__(*arguments)
        self.settings = tuple(settings)


class ConfigError(KcrfError, ValueError):
    """An option, a configuration file or a template that cannot be meant."""


class DataError(KcrfError, ValueError):
    """Input data that cannot be read as what it should be.

    `path` is the name shown to the user, `line` counts from 1; both may be unknown.
    """

    def __init__(self, message: str, path: str | None = None, line: int | None = None, *, settings: Iterable[str] = ()):
        self.message, self.path, self.line = message, path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message, settings=settings)

    # Exception's own would take the whole text for the message, out of a worker process.
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.path, self.line), self.__dict__


class FileFormatError(KcrfError):
    """An `.npz` file that is not ours, is damaged, or does not fit the others."""


def damaged(program: str, source: str, what: str) -> FileFormatError:
    """Return the error for a file that no version of the program writes."""
    return FileFormatError(f"{source}: a damaged {program} model: {what}")


class Interrupted(KcrfError):
    """A run was asked to end before there was anything to keep."""


class NumericError(KcrfError):
    """The arithmetic broke down; the message names the cause and the remedy."""


class ClusterError(KcrfError):
    """A cluster that cannot be reached, is gone, or cannot do what it is asked for."""


class DeviceError(KcrfError):
    """A device that cannot be used, or has too little memory for what it is asked for."""


class NoRoomError(KcrfError, MemoryError):
    """Too little address space is left for a library."""


class BelowTarget(KcrfError):
    """A figure is below what was asked for."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """The known word that comes closest, as a question to put behind an error; empty where none does."""
    import difflib  # takes as long as the rest of this module

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f" (did you mean '{close[0]}'?)" if close else ""
