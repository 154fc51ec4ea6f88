"""Kinds of values of a configuration: each checks a value of YAML or of an option and returns its meaning.

Messages continue the name of the key, as those of all kinds do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..corpora import TOKEN_RULES
from ..errors import ConfigError, suggestion
from ..system import AUTO, LEAST_TOLERANCE, Number, Whole, described

positive = Number(0, above=True)
not_negative = Number(0)
fraction = Number(0, 1, below=True)
tolerance = Number(LEAST_TOLERANCE)
# Of a prior: a number above zero, auto, or inf where an L1 penalty takes its place.
variance = Number(0, above=True, automatic=True, infinite=True)

WIDEST_WINDOW = 100
offset = Whole(-WIDEST_WINDOW, WIDEST_WINDOW)
CONJUNCTION_PART = re.compile(r"(.+?)(?:\[\s*([+-]?[0-9]{1,9})\s*\])?", re.DOTALL)
RANGE = re.compile(r"(.*?)(\d+)\.\.(.*?)(\d+)")
MOST_COLUMNS = 10_000_000


def text(value: Any) -> str:
    """Check a word; a number is one, too."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"must be a word, not {described(value)}")
    return value


def conjunction_part(text: str) -> tuple[str, int]:
    """Return the name and the offset of a part of a conjunction, as `word` or `word[-1]`.

    Names may have brackets; `x[1]` is the value of x at the next position, and `x[1][0]` that of x[1] here.
    """
    parts = CONJUNCTION_PART.fullmatch(text)
    return (text, 0) if parts is None else (parts[1], int(parts[2] or 0))


def part_text(name: str, offset: int) -> str:
    """Return a part of a conjunction as text, so that `conjunction_part` returns the name and the offset."""
    return name if offset == 0 and conjunction_part(name) == (name, 0) else f"{name}[{offset}]"


def names(value: Any) -> tuple[str, ...]:
    """Check a list of words, or one word."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError(f"must be a list of names, not {described(value)}")
    return tuple(text(item) for item in value)


LOOKUPS = EMBEDDINGS, CLUSTERS = "embeddings", "clusters"  # names of lookups beside those of lexicons
LEXICON_NAME = re.compile(r"\w[\w-]*")


def lexicons(value: Any) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    """Check lexicons by name, each a file or a list of entries."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value or ()
    if not isinstance(pairs, (list, tuple)) or not all(isinstance(pair, (list, tuple)) for pair in pairs):
        raise ConfigError(f"must name files, as {{city: cities.txt}}, not {described(value)}")
    out: dict[str, str | tuple[str, ...]] = {}
    for name, given in pairs:
        if not LEXICON_NAME.fullmatch(text(name)) or name in LOOKUPS:
            raise ConfigError(f"has '{name}', which is no name for a lexicon: give another word, such as city")
        if name in out:
            raise ConfigError(f"has '{name}' twice: give each lexicon a name of its own")
        out[text(name)] = names(given) if isinstance(given, (list, tuple)) else text(given)
    return tuple(out.items())


def named_file(written: str) -> list[tuple[str, Any]]:
    """Split NAME=FILE, the value of an option."""
    name, equals, path = written.partition("=")
    if not (name.strip() and equals and path):
        raise ConfigError(f"'{written}' is not NAME=FILE, such as city=cities.txt")
    return list(lexicons([(name.strip(), path)]))


def comma_separated(text: str) -> list[str]:
    """Split the value of an option at its commas."""
    return [item.strip() for item in text.split(",")]


def comma_separated_names(text: str) -> list[str]:
    """Split the value of an option at its commas into names, none of which may be empty."""
    found = comma_separated(text)
    if not all(found):
        raise ConfigError(f"'{text}' has an empty name")
    return found


UNSEEN = "unseen"  # stands for all transitions that the training data lacks


def numbered(value: Any) -> tuple[str, ...]:
    """Check labels with a number each, as `LABEL=N` or {LABEL: N}."""
    if isinstance(value, dict):
        value = [f"{label}={number}" for label, number in value.items()]
    found = names(value)
    for item in found:
        label, _, number = item.rpartition("=")
        if not label or not number.isdecimal() or int(number) >= 1 << 16:
            raise ConfigError(f"must be like LABEL=2, with a number of runs from 0 to 65535, not '{item}'")
    return found


SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def separator(value: Any) -> str | None:
    """Check one character, or a name for it; None leaves it to the file."""
    if value is None or value == AUTO:
        return None
    found = SEPARATORS.get(value, value) if isinstance(value, str) else value
    if not isinstance(found, str) or len(found) != 1 or not found.isascii() or found.isalnum() or found in '"\r\n\0':
        raise ConfigError(f"must be one character such as , or ; (or tab, space), not {described(value)}")
    return found


def token_rule(value: Any) -> str:
    """Check the name of a rule for tokens, or an expression."""
    rule = text(value)
    if rule.isalpha() and rule not in TOKEN_RULES and (hint := suggestion(rule.lower(), TOKEN_RULES)):
        raise ConfigError(f"must be one of {', '.join(TOKEN_RULES)} or a regular expression: '{rule}' is none{hint}")
    try:
        if re.compile(rule).match("") and rule not in TOKEN_RULES:
            raise ConfigError(f"must match at least one character, and '{rule}' matches none")
    except re.error as error:
        raise ConfigError(f"must be one of {', '.join(TOKEN_RULES)} or a regular expression: {error}") from None
    return rule


def marks(value: Any) -> tuple[str, ...]:
    """Check texts that may be empty: a list of them, or one text with commas between them."""
    if value == "indicator":
        raise ConfigError("lists the marks of missing values, as [NA, -999]; 'missing_indicator: true' adds columns")
    if isinstance(value, str):
        value = [item.strip(" ") for item in value.split(",")]
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f"must be a list of texts such as [NA, -999], not {described(value)}")
    return tuple(dict.fromkeys("" if item in ("", None) else text(item) for item in value))


def column_names(value: Any) -> tuple[str, ...]:
    """Check names of columns, in which `v1..v300` stands for v1, v2 and so on up to v300."""
    return tuple(name for written in names(value) for name in _range(written))


def _range(written: str) -> Iterable[str]:
    found = RANGE.fullmatch(written)
    if found is None:
        return (written,)
    stem, first, other, last = found.groups()
    if stem != other:
        raise ConfigError(
            f"has the range '{written}': both ends must have the same word before the number, as v1..v300"
        )
    if not 0 <= int(last) - int(first) < MOST_COLUMNS:
        raise ConfigError(f"has the range '{written}', which must run from the smaller to the larger number")
    digits = len(first) if first.startswith("0") else 1  # v001..v300
    return (f"{stem}{number:0{digits}}" for number in range(int(first), int(last) + 1))


def window(value: Any) -> tuple[int, ...]:
    """Check a window such as `[-1, 0, 1]`, `-1..1` or, in steps, `-20..20/2`."""
    if isinstance(value, str) and ".." in value:
        span, slash, step = value.partition("/")
        first, _, last = span.partition("..")
        try:
            ends, size = [int(first), int(last)], int(step) if slash else 1
        except ValueError:
            raise ConfigError(f"must be like -2..2, or -20..20/2 in steps of 2, not '{value}'") from None
        if ends[0] > ends[1]:
            raise ConfigError(f"must run from the smaller to the larger offset, not '{value}'")
        least, most = map(offset, ends)
        if size < 1 or (most - least) % size:
            raise ConfigError(f"has the step {size}, which does not lead from {least} to {most}")
        value = list(range(least, most + 1, size))
    if isinstance(value, str) and ":" in value:
        raise ConfigError(f"must be a list of offsets such as [-1, 0, 1], or a range such as -2..2, not '{value}'")
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError("must be a list of offsets such as [-1, 0, 1], or a range such as -2..2")
    offsets = tuple(sorted(offset(item) for item in value))
    if len(set(offsets)) < len(offsets):
        raise ConfigError("names an offset twice")
    return offsets


def window_range(written: str) -> list[int]:
    """Check the value of an option, which is a range; one offset alone would be a slip."""
    if re.fullmatch(r"\s*[+-]?\d+\s*", written) and int(written):
        only, away = int(written), abs(int(written))
        raise ConfigError(
            f"'{written}' is no range: {-away}..{away} is all up to {away} away, {only}..{only} that one alone"
        )
    return list(window(written))
