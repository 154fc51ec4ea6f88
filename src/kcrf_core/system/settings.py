"""Settings that are declared once: the kind of value with its limits, the default and its help.

Keys of a configuration and their checks, options of the command line, parameters of `KernelCRF`, `--dump-config` and
the manual all come from these declarations. A kind is called with what YAML or an option gave and returns the value
that is meant; its error continues the name of the setting: "'degree' must be at least 1, not 0".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import ConfigError, suggestion

AUTO = "auto"  # stands for what is decided by the data
LEAST_TOLERANCE = 1e-12  # relative: sums in double precision are rounded by about a tenth of that


@dataclass(frozen=True)
class DeclaredSetting:
    """A value that a configuration may give.

    Its help names other settings in backticks, `sigma2`, which the command line turns into flags. Without a help it is
    no option, but a key of a configuration alone.
    """

    kind: Callable[[Any], Any]
    default: Any = None
    help: str = ""
    metavar: str | None = None  # of the option; None for that of the kind
    needed: str | None = None  # how an error goes on where it is missing; None if it may be
    section: str | None = None  # the group of options that it belongs to; None for that of its class
    option: str | None = None  # its name as an option, if it is not that of the key
    text: Callable[[str], Any] | None = None  # reads the value of the option, where that is not written as in YAML
    heading: str | None = None  # the section of the help that lists the option; None for that of `section`
    common: bool = False  # the short help lists the option, too


def declared(kind: Callable[[Any], Any], default: Any = None, help: str = "", **more: Any) -> Any:
    """Return the field of a dataclass that declares a setting."""
    return field(default=default, metadata={"setting": DeclaredSetting(kind, default, help, **more)})


def settings_of(kind: Any) -> dict[str, DeclaredSetting]:
    """Return the settings that the fields of a dataclass declare, by name."""
    return {item.name: item.metadata["setting"] for item in fields(kind) if "setting" in item.metadata}


@dataclass(frozen=True)
class Number:
    """A number within limits; where it is `automatic`, the word auto and nothing at all are None."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False  # the lower limit itself is too small
    below: bool = False  # the upper limit itself is too large
    automatic: bool = False
    infinite: bool = False  # inf is a value

    def __call__(self, value: Any) -> float | None:
        if self.automatic and (value is None or value == AUTO):
            return None
        if self.infinite and not isinstance(value, bool) and value in ("inf", ".inf", math.inf):
            return math.inf
        number = finite(value)
        if self.below and not self.least <= number < self.most:
            raise ConfigError(f"must be at least {self.least:g} and below {self.most:g}, not {value}")
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


@dataclass(frozen=True)
class Automatic:
    """A value of a kind; the word auto and nothing at all are None."""

    kind: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return None if value is None or value == AUTO else self.kind(value)


@dataclass(frozen=True)
class OneOf:
    """A name out of some; those of a registry, or of a function, are looked up when they are needed."""

    names: Iterable[str] | Callable[[], Iterable[str]]
    hint: str = ""  # about names that are not among them

    def __iter__(self) -> Iterator[str]:
        return iter(self.names() if callable(self.names) else self.names)

    def __call__(self, value: Any) -> str:
        choices = tuple(self)
        if value not in choices:
            shown = value if isinstance(value, str) else repr(value)
            hint = suggestion(shown, choices) or (f" ({self.hint})" if self.hint else "")
            raise ConfigError(f"must be one of {', '.join(choices)}, not '{shown}'{hint}")
        return value


def boolean(value: Any) -> bool:
    """Check a truth value."""
    if not isinstance(value, bool):
        raise ConfigError(f"must be true or false, not {described(value)}")
    return value


def finite(value: Any) -> float:
    """Check a finite number."""
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
    """Describe a value that is not what it should be."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "nothing" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)
