"""AnyStyle's observations of tokens, by the definitions in a clone of its repository.

The list of features is read from `lib/anystyle/parser.rb`. Most of them are one `case` over regular expressions, in
`lib/anystyle/feature/NAME.rb`: `read_cases` reads these, and `compiled` translates Ruby's expressions for Python. Five
have code of their own there (canonical form, category, affixes, dictionary, position), and here.

Ruby's \\d, \\s and \\w are of ASCII alone and \\b is not. Letters are Unicode's general categories here, where Ruby
has derived properties (\\p{Alpha}), which differ for vowel signs and circled letters. URI.regexp, an expression of
Ruby's library, may have nothing behind the scheme: it finds what `SCHEME` finds.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

SCHEME = r"[A-Za-z][-+.A-Za-z0-9]*:"  # of a URI
PROPERTIES = {"Alpha": ("L", "Nl"), "Alnum": ("L", "Nl", "Nd"), "Upper": ("Lu",), "Lower": ("Ll",), "Mark": ("M",)}
ASCII = {r"\d": "0-9", r"\s": r" \t\r\n\f\v", r"\w": "A-Za-z0-9_"}
LITERAL = re.compile(r"/((?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+)/([a-z]*)|'([^']*)'|(URI\.regexp)")
RESULT = re.compile(r":'?([\w-]+)'?\s*$|'(\w+)'\s*$")
NEW = re.compile(r"Feature::(\w+)\.new(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\))?")

Observe = Callable[[Sequence[str], int], list[str]]  # tokens of a reference and a place: values of columns
Case = tuple[str, list[re.Pattern[str]], str]  # what is looked at, expressions, and the value if one is found


@cache
def members(name: str, negated: bool) -> str:
    """Return the characters of a property, or all others, as ranges for a class of Python."""
    kinds = PROPERTIES.get(name, (name,))
    has = [unicodedata.category(chr(code)).startswith(kinds) != negated for code in range(sys.maxunicode + 1)]
    edges = [code for code, own in enumerate(has) if own != (code > 0 and has[code - 1])] + [len(has)] * has[-1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return "".join(f"\\U{first:08x}-\\U{last - 1:08x}" for first, last in pairs)


@cache
def compiled(text: str, flags: str = "") -> re.Pattern[str]:
    """Return an expression of Ruby as one of Python."""
    out, inside = [], False
    for found in re.finditer(r"\\p\{(\^?)(\w+)\}|\\.|.", text, re.DOTALL):
        part = members(found[2], bool(found[1])) if found[2] else ASCII.get(found[0], found[0])
        if part in ("[", "]"):
            inside = part == "["
        out.append(part if inside or part == found[0] else f"[{part}]")
    return re.compile("".join(out), re.IGNORECASE if "i" in flags else 0)


def read_cases(source: str) -> tuple[list[Case], str]:
    """Return the cases of a feature in order, and the value if none is found; a `case` in an `else` goes on."""
    lines = [line.strip() for line in source.splitlines() if line.strip() and not line.strip().startswith("#")]
    cases: list[Case] = []
    subject, tests, other, waiting = "", None, "", False
    for line in lines:
        if found := re.match(r"case (\w+)$", line):
            subject, tests = found[1], None
        elif line.startswith("when ") or waiting:
            new = [compiled(re.escape(word) + r"\Z") if word else compiled(SCHEME if uri else text, flags)
                   for text, flags, word, uri in LITERAL.findall(line)]  # fmt: skip
            tests, waiting = (tests or []) + new if waiting else new, line.endswith(",")
        elif line == "else":
            tests = []
        elif tests is not None and (found := RESULT.match(line)):
            value = found[1] or found[2]
            if tests:
                cases.append((subject, tests, value))
            else:
                other = value
            tests = None
    return cases, other


def scrubbed(text: str) -> str:
    """Return letters and digits alone, as `StringUtils.scrub` does."""
    return re.sub(f"[{members('Alnum', True)}{members('Lm', False)}]", "", text)


def canonical(tokens: Sequence[str], at: int) -> list[str]:
    plain = re.sub(f"[{members('Mark', False)}]", "", unicodedata.normalize("NFKD", scrubbed(tokens[at])))
    return [scrubbed(plain).lower() if scrubbed(tokens[at]) else "BLANK"]


def position(tokens: Sequence[str], at: int) -> list[str]:
    """The first, the last, or tenths of the reference, rounded as Ruby does."""
    last = len(tokens) - 1
    if at in (0, last):
        return ["only" if not last else "first" if at == 0 else "last"]
    return [str(math.floor(at / len(tokens) * 10 + 0.5))]


def affixes(options: Mapping[str, Any]) -> Observe:
    sizes = range(1, int(options.get("size", 4)) + 1)
    if options.get("suffix") == "true":
        return lambda tokens, at: [tokens[at][-size:] for size in sizes]
    return lambda tokens, at: [tokens[at][:size] for size in sizes]


def by_cases(cases: Sequence[Case], other: str) -> Callable[[str], str]:
    @cache
    def observe(token: str) -> str:
        seen = {"alpha": scrubbed(token)}
        for subject, tests, value in cases:
            if any(test.search(seen.get(subject, token)) for test in tests):
                return value
        return other

    return observe


@dataclass(frozen=True)
class Dictionary:
    """Words in lower case with their tags; `tags` in the order of the columns."""

    tags: tuple[str, ...]
    words: dict[str, set[str]]

    @classmethod
    def read(cls, code: str, text: str) -> Dictionary:
        """Read the list of tags from `dictionary.rb`, and words from lines under `#! TAG`; a weight may follow."""
        listed = re.search(r"@tags = \[([^]]*)\]", code)
        assert listed
        words: dict[str, set[str]] = {}
        tag = ""
        for line in map(str.strip, text.splitlines()):
            if found := re.match(r"#! (\w+)", line, re.IGNORECASE):
                tag = found[1]
            elif not line.startswith("#"):
                words.setdefault(re.split(r"\s+[0-9]+\.[0-9]+\s*$", line)[0], set()).add(tag)
        return cls(tuple(re.findall(r":(\w+)", listed[1])), words)

    def observe(self, tokens: Sequence[str], at: int) -> list[str]:
        found = self.words.get(scrubbed(tokens[at]).lower(), ())
        return ["T" if tag in found else "F" for tag in self.tags]


def read_features(files: Mapping[str, str], dictionary: Dictionary) -> list[Observe]:
    """Return what the parser observes, in the order of its columns, by files of `lib/anystyle`."""
    parser = files["parser.rb"]
    listed = parser[parser.index("@features = [") : parser.index("@normalizers = [")]
    out: list[Observe] = []
    own: dict[str, Observe] = {"Canonical": canonical, "Position": position, "Dictionary": dictionary.observe}
    for name, arguments in NEW.findall(listed):
        options = dict(re.findall(r"(\w+): ([^,\s]+)", arguments))
        if name in own:
            out.append(own[name])
        elif name == "Affix":
            out.append(affixes(options))
        else:
            value = by_cases(*read_cases(files[f"feature/{name.lower()}.rb"]))
            if name == "Category":  # of the first and the last character
                out.append(lambda tokens, at, value=value: [value(tokens[at][0]), value(tokens[at][-1])])
            else:
                out.append(lambda tokens, at, value=value: [value(tokens[at])])
    return out


def observed(features: Iterable[Observe], tokens: Sequence[str]) -> list[list[str]]:
    """Return the columns of each token of a reference, itself first."""
    features = list(features)
    return [[token, *(value for observe in features for value in observe(tokens, at))]
            for at, token in enumerate(tokens)]  # fmt: skip
