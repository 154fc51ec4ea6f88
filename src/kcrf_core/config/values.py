"""Values of a configuration: each function takes what YAML or an option gave and returns what is meant.

The messages go on from the name of the key: "'degree' must be at least 1, not 0".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError, suggestion
from .config import AUTO, LARGEST_SIDE, WIDEST_WINDOW


def text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"must be a word, not {kind(value)}")
    return value


def names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError(f"must be a list of names, not {kind(value)}")
    return tuple(text(item) for item in value)


def finite(value: Any) -> float:
    # YAML 1.1 reads 1e-3 (no dot) as a string: take it for the number that is meant.
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ConfigError(f"must be a number, not '{value}'") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"must be a number, not {kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ConfigError("is too large a number") from None
    if not math.isfinite(number):
        raise ConfigError(f"must be a finite number, not {value}")
    return number


def positive(value: Any) -> float:
    number = finite(value)
    if number <= 0:
        raise ConfigError(f"must be greater than 0, not {value}")
    return number


def up_to(most: float) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        number = positive(value)
        if number > most:
            raise ConfigError(f"must be at most {most:g}, not {value}")
        return number

    return convert


def not_negative(value: Any) -> float:
    number = finite(value)
    if number < 0:
        raise ConfigError(f"must be at least 0, not {value}")
    return number


def fraction(value: Any) -> float:
    number = finite(value)
    if not 0 <= number < 1:
        raise ConfigError(f"must be at least 0 and below 1, not {value}")
    return number


def integer(least: int, most: int | None = None) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = finite(value)
        if number != int(number):
            raise ConfigError(f"must be a whole number, not {value}")
        if number < least or (most is not None and number > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ConfigError(f"must be {limits}, not {value}")
        return value if isinstance(value, int) else int(number)  # not every integer is a float

    return convert


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"must be true or false, not {kind(value)}")
    return value


def shape(value: Any) -> tuple[int, int]:
    """`[16, 8]` or `16x8`."""
    sides = value.lower().split("x") if isinstance(value, str) else value
    if not isinstance(sides, (list, tuple)) or len(sides) != 2:
        raise ConfigError(f"must be rows and columns such as [16, 8] or 16x8, not {kind(value)}")
    rows, columns = (integer(1, LARGEST_SIDE)(side) for side in sides)
    return rows, columns


def automatic(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None or value == AUTO else convert(value)


def choice(*choices: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in choices:
            shown = value if isinstance(value, str) else repr(value)
            raise ConfigError(f"must be one of {', '.join(choices)}, not '{shown}'{suggestion(shown, choices)}")
        return value

    return convert


def window(value: Any) -> tuple[int, ...]:
    """`[-1, 0, 1]` or `-1..1`."""
    if isinstance(value, str) and ".." in value:
        first, _, last = value.partition("..")
        try:
            ends = [int(first), int(last)]
        except ValueError:
            raise ConfigError(f"must be like -2..2, not '{value}'") from None
        if ends[0] > ends[1]:
            raise ConfigError(f"must run from the smaller to the larger offset, not '{value}'")
        least, most = (integer(-WIDEST_WINDOW, WIDEST_WINDOW)(end) for end in ends)
        value = list(range(least, most + 1))
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError("must be a list of offsets such as [-1, 0, 1], or a range such as -2..2")
    offsets = tuple(sorted(integer(-WIDEST_WINDOW, WIDEST_WINDOW)(item) for item in value))
    if len(set(offsets)) < len(offsets):
        raise ConfigError("names an offset twice")
    return offsets


def kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "nothing" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)
