"""A few configurations beside the default one, by the kind of the columns; training compares them on held-out data.

numbers   linear weights of the numbers themselves, no ranks; these and speeds; an rbf kernel over them in a window, or
          over them with means and deviations of a wider one
tags      n-grams; these, triples and a wider window; pairs and a still wider window
words     pairs of shapes; these, kinds of words, such as years and ranges, and the punctuation around words, in a wide
          window; and transitions that depend on kinds and punctuation of both words, unless labels are spans

`experiments/defaults` has the figures that the lists were chosen by.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..config import Config, option_paths, parse_config, part_text, with_options
from ..corpora import Corpus
from ..scoring import count_labels, detect_scheme, labels_of_spans, odd_labels
from .defaults import LINEAR_WISHES, Defaults, kernel_is_open, number_terms, own_name, with_defaults

# n-grams of tags, all within so many positions.
LONGEST_GRAM, GRAM_REACH = 4, 3
# A conjunction of three that occurs once adds nothing to its parts.
TRIPLE_CUT_OFF = 2
NEAR, WIDTH = 2, 15  # positions to both sides, and those of means and deviations
WIDEST_ROW = 600  # numbers of a position, its window included
FEWEST_WORDS = 1_000  # positions; fewer hardly tell features of words apart
SHAPE_PAIRS = "-2..1"  # window of shapes of neighbours; the offset is that of the first one
PAIR_CUT_OFF = 2
KINDS = ("kind", "edges")
KINDS_REACH = 4  # of the window of kinds of words and of the punctuation around them
MOST_PAIRED = 30  # labels, so that a score for each pair at each position does not take too long

# Paths of options that choose features or kernels. Lexicons are added to all candidates of words.
CHOICES = (
    *("features", "terms", "window", "plain", "min_count", "order", "unobserved"),
    *("label_sets", "soft_labels"),
    *("embeddings", "clusters", *(f"training.{wish}" for wish in LINEAR_WISHES)),
)

Raw = dict[str, Any]
Shares = tuple[list[Raw], list[Raw]]  # features and terms that are added


def alternatives(raw: Mapping[str, Any], options: Mapping[str, Any], corpus: Corpus, source: str) -> dict[str, Config]:
    """Return configurations beside the default one, by name; none if users have made such choices, or data has none."""
    known = option_paths()
    paths = [known.get(name) or name for name in options]
    if set(raw) - {"ignore"} or any(path.startswith(CHOICES) for path in paths) or corpus.attributes is not None:
        return {}
    is_open = kernel_is_open(raw, options, corpus.positions)
    default = with_defaults(with_options(raw, options), corpus, source, is_open=is_open)
    found: dict[str, Raw] = {}
    if default.numbers and is_open:
        found = _of_numbers(default)
    elif default.words:
        if corpus.positions >= FEWEST_WORDS and not corpus.vectors:
            counts = count_labels(corpus.columns[-1])
            found = _of_words(default, labels_of_spans(tuple(counts), odd_labels(counts)))
    elif default.tags and not default.columns and not default.raw.get("lexicons"):
        found = _of_tags(default)
    return {name: parse_config(own, source) for name, own in found.items()}


def around(reach: int | str) -> str | list[int]:
    """Return the window that reaches so far to both sides, perhaps in steps, as configurations write it."""
    return [0] if str(reach) == "0" else f"-{str(reach).partition('/')[0]}..{reach}"


def grams(names: Iterable[str], rare: int = 1) -> list[Raw]:
    """Return conjunctions of two to four neighbours near the position; long ones, and others if `rare`, that recur."""
    out = []
    for name in names:
        for length in range(2, LONGEST_GRAM + 1):
            parts = [part_text(name, step) for step in range(length)]
            least = max(rare, 2 if length > 2 else 1)
            window = f"-{GRAM_REACH}..{GRAM_REACH + 1 - length}"
            out.append({"conjunction": parts, "window": window} | ({"min_count": least} if least > 1 else {}))
    return out


def conjunctions(features: Sequence[str], degree: int, reach: int) -> Raw:
    """Return the term of conjunctions of up to `degree` features in a window."""
    own_map = {"type": "explicit"} | ({"cut_off": TRIPLE_CUT_OFF} if degree > 2 else {})
    kernel = {"type": "poly", "degree": degree}
    return {"name": "near", "features": list(features), "window": around(reach), "kernel": kernel, "map": own_map}


def shape_features(names: Collection[str], words: Iterable[str], labels: Collection[str]) -> dict[str, Shares]:
    """Return features and terms by name, for words whose shapes have been named.

    They are pairs, these with kinds and punctuation, and unless labels are many or spans, both for transitions, too.
    """
    if not (words := [word for word in words if f"{word}.shape" in names]):
        return {}
    beside: Raw = {"window": SHAPE_PAIRS, "min_count": PAIR_CUT_OFF}
    pairs = [{"conjunction": [f"{word}.shape", f"{word}.shape[1]"], **beside} for word in words]
    over: Raw = {"window": around(KINDS_REACH)}
    made = [{"column": word, "transform": name, **over} for word in words for name in KINDS]
    kinds = [one for one in made if own_name(one) not in names]
    last = "pairs of shapes, kinds and edges"
    out: dict[str, Shares] = {"pairs of shapes": (pairs, []), last: ([*pairs, *kinds], [])}
    if kinds and len(labels) <= MOST_PAIRED and detect_scheme(labels) is None:
        both = {"name": "punctuation", "type": "edge-x", "features": list(map(own_name, kinds)), "window": "-1..0"}
        out[f"{last}, for transitions, too"] = [*pairs, *kinds], [both]
    return out


def _of_numbers(default: Defaults) -> dict[str, Raw]:
    raw, columns = default.raw, frozenset(default.columns)

    def is_real(feature: Raw) -> bool:
        return feature.get("column") in columns and feature.get("type") != "categorical"

    real = [one for one in raw["features"] if is_real(one)]
    others = [one for one in raw["features"] if not is_real(one)]
    plain = [{key: value for key, value in one.items() if key != "transform"} for one in real]
    codes = [one["name"] for one in others if one.get("column") in columns]

    def made(numbers: Sequence[Raw], rbf: bool) -> Raw:
        out = {**raw, "features": [*numbers, *others]}
        del out["terms"]
        if rbf:
            names = [*(one.get("name") or one["column"] for one in numbers), *codes]
            out["terms"] = number_terms(() if default.all_numbers else names)
        return out

    every = list(default.columns)
    over = [{"name": f"window.{kind}", "columns": every, "transform": kind, "width": WIDTH, "window": [0]}
            for kind in ("mean", "std")]  # fmt: skip
    speed = {"name": "window.speed", "columns": every, "transform": "speed", "window": around(NEAR)}
    near = [{**one, "window": around(NEAR)} for one in plain]
    out = {"linear": made(plain, False), "linear with speed": made([*plain, speed], False)}
    if len(real) * (2 * NEAR + 1) <= WIDEST_ROW:
        out[f"rbf at -{NEAR}..{NEAR}"] = made(near, True)
        out[f"rbf with means and deviations over {WIDTH}"] = made([*plain, *over], True)
    return out


def _of_words(default: Defaults, labels: Collection[str]) -> dict[str, Raw]:
    raw, features = default.raw, default.raw["features"]
    lists = shape_features({own_name(one) or one.get("column", "") for one in features}, default.words, labels)
    edge = {"name": "edge", "type": "edge"}
    return {
        name: {**raw, "features": [*features, *added]} | ({"terms": [{"name": "node"}, *terms, edge]} if terms else {})
        for name, (added, terms) in lists.items()
        if not (terms and raw.get("terms"))
    }


def _of_tags(default: Defaults) -> dict[str, Raw]:
    raw, tags = default.raw, default.tags
    others = [one for one in raw["features"] if "conjunction" not in one]
    edge = {"name": "edge", "type": "edge"}

    of_tags = frozenset(tags)

    def wide(reach: int) -> list[Raw]:
        plain = [one.get("column") in of_tags and "transform" not in one for one in others]
        return [{**one, "window": around(reach)} if own else one for one, own in zip(others, plain, strict=True)]

    linear = {"name": "node"}
    return {
        "n-grams": {**raw, "features": [*others, *grams(tags)]},
        "n-grams, triples, -5..5": {
            **raw,
            "features": [*wide(5), *grams(tags)],
            "terms": [linear, conjunctions(tags, 3, 1), edge],
        },
        "pairs of 2, -8..8": {**raw, "features": wide(8), "terms": [linear, conjunctions(tags, 2, 2), edge]},
    }
