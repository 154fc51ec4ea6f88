"""Settings that a part of the program declares: the kind of value with its limits, the default and a line of help.

Whoever reads configurations, makes options of the command line or checks what stands in a file takes them from here. A
kind is called with what YAML or an option gave and returns the value that is meant; its error goes on from the name of
the setting: "'degree' must be at least 1, not 0".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError

AUTO = "auto"  # stands for what is decided by the data
LEAST_TOLERANCE = 1e-12  # relative: sums in double precision are rounded by about a tenth of that


@dataclass(frozen=True)
class DeclaredSetting:
    """A value that a configuration may give."""

    kind: Callable[[Any], Any]
    default: Any = None
    help: str = ""  # of the option that has its name
    metavar: str | None = None  # of the same; None for that of the kind
    needed: str | None = None  # how an error goes on where it is missing; None if it may be


@dataclass(frozen=True)
class Number:
    """A finite number within limits; where it is `automatic`, the word auto and nothing at all are None."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False  # the limit itself is too small
    automatic: bool = False

    def __call__(self, value: Any) -> float | None:
        if self.automatic and (value is None or value == AUTO):
            return None
        number = finite(value)
        if number < self.least or (self.above and number == self.least):
            raise ConfigError(f"must be {'greater than' if self.above else 'at least'} {self.least:g}, not {value}")
        if number > self.most:
            raise ConfigError(f"must be at most {self.most:g}, not {value}")
        return number


@dataclass(frozen=True)
class Whole:
    """A whole number within limits."""

    least: int
    most: int | None = None

    def __call__(self, value: Any) -> int:
        number = finite(value)
        if number != int(number):
            raise ConfigError(f"must be a whole number, not {value}")
        if number < self.least or (self.most is not None and number > self.most):
            limits = f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
            raise ConfigError(f"must be {limits}, not {value}")
        return value if isinstance(value, int) else int(number)  # not every integer is a float


def finite(value: Any) -> float:
    # Numbers of a configuration that are not written as Python would write them, such as 1e-3 and 1.50, are still text.
    if isinstance(value, str):
        named = value.lstrip("+-").lower() in (".inf", ".nan")  # YAML's names of what is not finite
        try:
            value = float(value.replace(".", "") if named else value)
        except ValueError:
            raise ConfigError(f"must be a number, not '{value}'") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"must be a number, not {described(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ConfigError("is too large a number") from None
    if not math.isfinite(number):
        raise ConfigError(f"must be a finite number, not {value}")
    return number


def described(value: Any) -> str:
    """What to call a value that is not what it should be."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "nothing" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)
