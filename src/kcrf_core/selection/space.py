"""The candidates of a search, made from what the columns of a corpus hold: choices, and the configuration they make.

A candidate has one value for each choice of the space. Choices are of few kinds: what is seen of words, which of them
are paired, the window and the kernel of numbers, of attributes and of vectors, how many pivots, and how labels look
back. Columns of each kind make a block of the space, which brings its choices, and turns them into features and terms.
What a user's configuration says is no choice any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..chains import CLIQUES

# Pivots on a rung: no more than this part of its positions, which many more would say nothing new of.
POSITIONS_PER_PIVOT = 4
FEWEST_PIVOTS = 300
PIVOTS = (500, 1000, 2000, 4000, 8000)

# Numbers that a position may have in all, its window included.
MOST_NUMBERS = 1500
WINDOWS = (0, 1, 2, 3, 5, 8, 12)
# Columns that pairs and triples are made of.
MOST_PAIRED, MOST_TRIPLED = 60, 24
# A conjunction of three that occurs once tells nothing that its parts do not.
TRIPLE_CUT_OFF = 2


LABELS = ("in chains", "of second order", "apart")  # what labels know of their neighbours
PIVOT_CHOICE, LABEL_CHOICE, PENALTY_CHOICE = "pivots", "labels", "c1"
# L1 penalties, beside sigma2: what CRFsuite's users mostly take, and about as much as text bears.
PENALTIES = ("0", "0.1", "0.5")
# What is made of inputs.
LINEAR = "linear"
RBF = "rbf"
PAIRS, TRIPLES, NESTED_WINDOWS = "pairs", "triples", "nested"
BY_COLUMN = f"{RBF} of each"
LINEAR_AND_PAIRS, LINEAR_AND_RBF = f"{LINEAR} and {PAIRS}", f"{LINEAR} and {RBF}"
IMAGE = "image"


@dataclass(frozen=True)
class Candidate:
    """A value for each choice."""

    choices: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str:
        return dict(self.choices)[name]

    def changed(self, **values: str) -> Candidate:
        """The same with other values for some choices."""
        return Candidate(tuple((name, values.get(name, value)) for name, value in self.choices))


@dataclass(frozen=True)
class Choice:
    """One question, and its answers."""

    name: str
    values: tuple[str, ...]
    start: str  # the answer that mostly is a good one
    ordered: bool = False  # by size, so that only the next ones are neighbours

    def near(self, value: str) -> list[str]:
        """The answers to try in the place of this one."""
        if not self.ordered:
            return [other for other in self.values if other != value]
        at = self.values.index(value)
        return [self.values[place] for place in (at + 1, at - 1) if 0 <= place < len(self.values)]


@dataclass(frozen=True)
class BlockShare:
    """What a block adds to a configuration: features, which of them are weighed one by one, and terms of others."""

    features: tuple[dict[str, Any], ...]
    linear: tuple[str, ...]  # names of features, with patterns
    terms: tuple[dict[str, Any], ...] = ()
    observed: bool = False  # whether weights are those for labels that features are seen with, where maps allow it


class ColumnBlock(ABC):
    """Columns of one kind."""

    choices: tuple[Choice, ...] = ()
    seeds: tuple[dict[str, str], ...] = ()  # changes of the start that mostly pay, in this order

    @abstractmethod
    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        """What it adds to the configuration, where its terms have so many pivots."""

    @abstractmethod
    def titles(self, chosen: Mapping[str, str]) -> list[str]:
        """What is chosen, in a few words."""


def around(reach: int) -> str | list[int]:
    """The window that reaches so far to both sides, as configurations write it."""
    return [0] if reach == 0 else f"-{reach}..{reach}"


def _shown(reach: int | str) -> str:
    return "at 0" if int(reach) == 0 else f"-{reach}..{reach}"


def _pivot_map(size: int) -> dict[str, Any]:
    return {"type": "reduced", "size": size}


# ----------------------------------------------------------------------------- text


@dataclass(eq=False)
class TextBlock(ColumnBlock):
    """Categorical columns: words, of which parts and shapes tell something, and tags, which are few.

    `features` are those that `train` would make of them; words have transforms among them.
    """

    features: tuple[dict[str, Any], ...]
    observed: bool = False  # whether to begin with weights of features for labels that they are seen with alone

    def __post_init__(self) -> None:
        words = self.words = tuple(dict.fromkeys(one["column"] for one in self.features if "transform" in one))
        plain = (one for one in self.features if "column" in one and "transform" not in one)
        # Columns that are the same throughout a sequence are seen at the position alone.
        tags = self.tags = tuple(_name(one) for one in plain if one["column"] not in words and one.get("window") != [0])
        choices, seeds = [], []
        if words:
            choices.append(Choice("words", ("plain", "affixes", "near affixes", "all affixes"), "affixes", True))
        tuples = any("conjunction" in one for one in self.features)
        bigrams = ("none", "tags", "all") if tuples else ("none", "all")
        choices.append(Choice("bigrams", bigrams, "tags" if tuples else "none", True))
        paired = len(self._paired())
        near = ["none"]
        near += [f"pairs {reach}" for reach in (0, 1, 2) if 2 <= paired * (2 * reach + 1) <= MOST_PAIRED]
        near += [f"triples {reach}" for reach in (1,) if 3 <= paired * (2 * reach + 1) <= MOST_TRIPLED]
        choices.append(Choice("near", tuple(near), "none"))
        if words:
            choices.insert(0, Choice("weights", ("all", "observed"), "observed" if self.observed else "all"))
            choices.append(Choice("rare", ("1", "2", "3"), "1", True))
        # Conjunctions are worth more where they may speak against labels that they were not seen with.
        every = {"weights": "all"} if words else {}
        if self.observed:
            seeds.append(every)
        seeds += [{"near": value, **every} for value in ("pairs 1",) if value in near]
        if words:
            seeds += [{"words": "all affixes"}, {"words": "plain", "bigrams": "none"}]
        if len(words) + len(tags) > 1:
            seeds += [{"near": value, **every} for value in ("pairs 2",) if value in near]
            seeds += [{"bigrams": "all"}]
            seeds += [{"near": value, "bigrams": "all", **every} for value in ("pairs 1",) if value in near]
        seeds += [{"near": value, **every} for value in ("triples 1",) if value in near]
        if words:
            seeds += [{"words": "all affixes", "near": value, **every} for value in ("pairs 1",) if value in near]
        self.choices, self.seeds = tuple(choices), tuple(seeds)

    def _paired(self) -> list[str]:
        """The features that conjunctions are made of: words and tags, or of words alone what they have in common."""
        if self.tags:
            return [*self.words, *self.tags]
        names = [_name(one) for one in self.features]
        found = [f"{word}{end}" for word in self.words for end in (".lower", ".suffix3", ".shape")]
        return [name for name in found if name in names]

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        rare = int(chosen.get("rare", "1"))
        cut = {} if rare == 1 else {"min_count": rare}
        level, bigrams, paired = chosen.get("words", "plain"), chosen["bigrams"], self._paired()
        reach = {"near affixes": 1, "all affixes": 2}.get(level)
        features: list[dict[str, Any]] = []
        hidden: list[dict[str, Any]] = []  # for pairs alone
        for one in self.features:
            wide = {} if reach is None else {"window": around(reach)}
            if "conjunction" in one:
                if bigrams != "none":
                    features.append({**one, **cut})
            elif "transform" not in one:
                features.append({**one, "window": one.get("window", around(2)), **cut})
            elif level != "plain":
                features.append({**one, **wide, **cut})
            elif chosen["near"] != "none" and _name(one) in paired:
                hidden.append(one)
        if bigrams == "all":
            known = {part.partition("[")[0] for one in features for part in one.get("conjunction", ())}
            fresh = [column for column in (*self.words, *self.tags) if column not in known]
            features += [{"conjunction": [f"{name}[-1]", name], "window": [0, 1], **cut} for name in fresh]
        linear = tuple(_name(one) for one in features)
        terms = []
        kind, _, radius = chosen["near"].partition(" ")
        if kind != "none":
            degree = {"pairs": 2, "triples": 3}[kind]
            own_map = {"type": "explicit"} | ({"cut_off": TRIPLE_CUT_OFF} if kind == "triples" else {})
            terms.append({"name": "near", "features": paired, "window": around(int(radius)), "kernel": _poly(degree),
                          "map": own_map})  # fmt: skip
        observed = chosen.get("weights") == "observed"
        return BlockShare((*features, *hidden), linear, tuple(terms), observed)

    def titles(self, chosen: Mapping[str, str]) -> list[str]:
        out = []
        if self.words:
            out.append("words" if chosen["words"] == "plain" else f"words and {chosen['words']}")
        if self.tags:
            out.append("tags")
        if chosen["bigrams"] != "none":
            out.append("bigrams of tags" if chosen["bigrams"] == "tags" else "bigrams")
        if chosen["near"] != "none":
            kind, _, radius = chosen["near"].partition(" ")
            out.append(f"{kind} {_shown(radius)}")
        if chosen.get("weights", "all") != "all":
            out.append("observed weights")
        if chosen.get("rare", "1") != "1":
            out.append(f"values seen {chosen['rare']} times")
        return out


def _name(feature: Mapping[str, Any]) -> str:
    """The name of a feature, given or by default."""
    if "name" in feature:
        return feature["name"]
    if "conjunction" in feature:
        return "/".join(feature["conjunction"])
    transform = feature.get("transform")
    return feature["column"] + (f".{transform}{feature.get('length', '')}" if transform else "")


# ----------------------------------------------------------------------------- numbers

NESTED = ((1, 3), (2, 3), (3, 2))  # windows and degrees of a sum of polynomial kernels


@dataclass(eq=False)
class NumberBlock(ColumnBlock):
    """Real columns, or vectors, with columns of few values beside them: the kernel sees both."""

    name: str  # of the choices, where there are several such blocks
    features: tuple[dict[str, Any], ...]  # without windows
    beside: tuple[str, ...]  # names of categorical features that the kernel looks at, too
    width: int  # numbers of a position, without its window
    shape: tuple[int, int] | None = None  # of a picture
    reach: int = 2  # of the window to begin with
    alone: bool = False  # whether there is nothing but numbers, for which `train` takes a kernel

    def __post_init__(self) -> None:
        widest = max([r for r in WINDOWS if self.width * (2 * r + 1) <= MOST_NUMBERS], default=0)
        windows = tuple(str(reach) for reach in WINDOWS if reach <= widest)
        kernels = [LINEAR, RBF, LINEAR_AND_RBF, PAIRS, TRIPLES]
        if len(self.features) > 1:
            kernels.append(BY_COLUMN)
        if widest >= NESTED[-1][0] and self.shape is None:
            kernels.append(NESTED_WINDOWS)
        start = RBF if self.alone else LINEAR
        if self.shape is not None:
            kernels.append(IMAGE)
        window, kernel = f"{self.name} window", f"{self.name} kernel"
        reach = str(min(self.reach, widest) if self.shape is None else 0)
        choices = [Choice(kernel, tuple(kernels), start), Choice(window, windows, reach, True)]
        seeds: list[dict[str, str]] = []
        if self.shape is not None:
            orders: tuple[dict[str, str], ...] = ({}, {LABEL_CHOICE: LABELS[2]}, {LABEL_CHOICE: LABELS[1]})
            seeds += [{kernel: IMAGE, **labels} for labels in orders]
        seeds.append({kernel: LINEAR if self.alone else RBF})
        if NESTED_WINDOWS in kernels:
            seeds.append({kernel: NESTED_WINDOWS})
        seeds += [{kernel: TRIPLES}, {kernel: LINEAR_AND_RBF}]
        if widest > self.reach and self.shape is None:
            wider = windows[windows.index(reach) + 2] if windows.index(reach) + 2 < len(windows) else windows[-1]
            seeds += [{kernel: RBF, window: wider}, {kernel: LINEAR, window: wider}]
        self.choices, self.seeds = tuple(choices), tuple(seeds)

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        kernel, reach = chosen[f"{self.name} kernel"], int(chosen[f"{self.name} window"])
        reach = {NESTED_WINDOWS: NESTED[-1][0], IMAGE: 0}.get(kernel, reach)  # which have windows of their own
        features = tuple({**feature, "window": around(reach)} for feature in self.features)
        names = tuple(feature["name"] for feature in features)
        seen = [*names, *self.beside]
        term = {"name": self.name, "features": seen, "map": _pivot_map(pivots)}
        if self.beside:
            term["window"] = around(reach)
        if kernel == LINEAR:
            return BlockShare(features, names)
        if kernel == IMAGE:
            assert self.shape is not None
            shape = list(self.shape)
            return BlockShare(
                features, (), ({**term, "features": list(names), "kernel": {"type": IMAGE, "shape": shape}},)
            )
        if kernel == NESTED_WINDOWS:
            terms = tuple(
                {**term, "name": f"{self.name}{own}", "window": around(own), "kernel": _poly(degree)}
                for own, degree in NESTED
            )
            return BlockShare(features, (), terms)
        if kernel == BY_COLUMN:
            parts = [{"type": RBF, "features": [name]} for name in seen]
            return BlockShare(features, (), ({**term, "kernel": {"type": "sum", "parts": parts}},))
        kernels = {RBF: {"type": RBF}, PAIRS: _poly(2), TRIPLES: _poly(3)}
        if kernel == LINEAR_AND_RBF:
            return BlockShare(features, names, ({**term, "kernel": kernels[RBF]},))
        return BlockShare(features, (), ({**term, "kernel": kernels[kernel]},))

    def titles(self, chosen: Mapping[str, str]) -> list[str]:
        kernel, reach = chosen[f"{self.name} kernel"], chosen[f"{self.name} window"]
        window = "" if kernel in (NESTED_WINDOWS, IMAGE) else f" {_shown(reach)}"
        return [f"{self.name} {kernel}{window}"]


def _poly(degree: int) -> dict[str, Any]:
    return {"type": "poly", "degree": degree}


# ----------------------------------------------------------------------------- attributes


def _together(features: list[str], kernel: str, pivots: int) -> dict[str, Any]:
    """A term over some features: pairs of them, by conjunctions where these are exact and not too many, or rbf."""
    if kernel == RBF:
        return {"name": "together", "features": features, "kernel": {"type": RBF}, "map": _pivot_map(pivots)}
    return {"name": "together", "features": features, "kernel": _poly(2)}


@dataclass(frozen=True)
class AttributeBlock(ColumnBlock):
    """Attributes, as CRFsuite's files have them."""

    choices: tuple[Choice, ...] = (
        Choice("attributes", (LINEAR, LINEAR_AND_PAIRS, PAIRS, RBF), LINEAR),
        Choice("rare", ("1", "2", "3"), "1", True),
    )
    seeds: tuple[dict[str, str], ...] = ({"attributes": LINEAR_AND_PAIRS}, {"attributes": PAIRS}, {"rare": "2"})

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        rare = int(chosen["rare"])
        features = ({"type": "attributes", "name": "attributes"} | ({} if rare == 1 else {"min_count": rare}),)
        kernel = chosen["attributes"]
        linear = ("attributes",) if kernel.startswith(LINEAR) else ()
        return BlockShare(features, linear, () if kernel == LINEAR else (_together(["attributes"], kernel, pivots),))

    def titles(self, chosen: Mapping[str, str]) -> list[str]:
        rare = [] if chosen["rare"] == "1" else [f"those seen {chosen['rare']} times"]
        return [f"attributes {chosen['attributes']}", *rare]


@dataclass(eq=False)
class GivenBlock(ColumnBlock):
    """Features, and perhaps terms, that the user has chosen."""

    features: tuple[dict[str, Any], ...] | None
    terms: tuple[dict[str, Any], ...] | None

    def __post_init__(self) -> None:
        if self.terms is None:
            self.choices = (Choice("kernel", (LINEAR, LINEAR_AND_PAIRS, PAIRS, RBF), LINEAR),)
            self.seeds = tuple({"kernel": kernel} for kernel in (LINEAR_AND_PAIRS, RBF, PAIRS))

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        features = self.features or ()
        if self.terms is not None:
            return BlockShare(features, (), self.terms)
        kernel = chosen["kernel"]
        linear = ("*",) if kernel.startswith(LINEAR) else ()
        return BlockShare(features, linear, () if kernel == LINEAR else (_together(["*"], kernel, pivots),))

    def titles(self, chosen: Mapping[str, str]) -> list[str]:
        return ["terms as given"] if self.terms is not None else [f"features as given, {chosen['kernel']}"]


# ----------------------------------------------------------------------------- the space


class Space:
    """All candidates: what they are, where to begin, which are neighbours, and their configurations."""

    def __init__(self, blocks: Sequence[ColumnBlock], raw: Mapping[str, Any], positions: int, label_terms: bool = True):
        self._blocks = tuple(blocks)
        self._raw = {key: value for key, value in raw.items() if key not in ("features", "terms")}
        self._given_labels = None if label_terms else [
            term for term in raw.get("terms") or () if not CLIQUES[term.get("type", "node")].mapped
        ]  # fmt: skip
        choices = [choice for block in blocks for choice in block.choices]
        if label_terms:
            choices.insert(0, Choice(LABEL_CHOICE, LABELS, LABELS[0]))
        most = max(PIVOTS[0], positions // 2)
        sizes = tuple(str(size) for size in PIVOTS if size <= most)
        start = str(PIVOTS[1]) if len(sizes) > 1 else sizes[0]
        choices.insert(1 if label_terms else 0, Choice(PIVOT_CHOICE, sizes, start, True))
        if "c1" not in (raw.get("training") or {}):
            choices.append(Choice(PENALTY_CHOICE, PENALTIES, PENALTIES[0], True))
        self.choices = {choice.name: choice for choice in choices}
        self.start = Candidate(tuple((choice.name, choice.start) for choice in choices))

    @property
    def seeds(self) -> list[Candidate]:
        """Where to begin, the start first."""
        # The best of each block come before the second best of any.
        turns = zip_longest(*(block.seeds for block in self._blocks))
        seeds = [seed for turn in turns for seed in turn if seed is not None]
        changed = (self._plain(self.start.changed(**_known(seed, self.choices))) for seed in seeds)
        return list(dict.fromkeys([self.start, *changed]))

    def neighbours(self, candidate: Candidate) -> Iterable[Candidate]:
        """The candidates that differ in one choice, in the order of choices."""
        found = {candidate}
        for choice in self.choices.values():
            for value in choice.near(candidate[choice.name]):
                other = self._plain(candidate.changed(**{choice.name: value}))
                if other not in found:
                    found.add(other)
                    yield other

    def _plain(self, candidate: Candidate) -> Candidate:
        """The same configuration, with choices that make no difference to it as at the start, as pivots of linear."""
        own = self.raw(candidate)
        for choice in self.choices.values():
            other = candidate.changed(**{choice.name: choice.start})
            if self.raw(other) == own:
                candidate = other
        return candidate

    def raw(self, candidate: Candidate, positions: int | None = None) -> dict[str, Any]:
        """The configuration of a candidate, for so many positions, which bound the number of pivots."""
        chosen = dict(candidate.choices)
        pivots = int(chosen[PIVOT_CHOICE])
        if positions is not None:
            pivots = min(pivots, max(FEWEST_PIVOTS, positions // POSITIONS_PER_PIVOT))
        features: list[dict[str, Any]] = []
        linear: list[str] = []
        terms: list[dict[str, Any]] = []
        observed = False
        for block in self._blocks:
            part = block.part(chosen, pivots)
            observed = observed or part.observed
            features += part.features
            linear += part.linear
            terms += part.terms
        if linear:
            # A pattern is shorter where all features are meant.
            whole = len(linear) == len(features) or "*" in linear
            names = ["*"] if whole else linear
            terms.insert(0, {"name": "node", "features": names, "kernel": {"type": LINEAR}})
        order = chosen.get(LABEL_CHOICE)
        if self._given_labels is not None:
            terms += self._given_labels
        elif order != LABELS[2]:
            terms.append({"type": "edge"})
            if order == LABELS[1]:
                terms.append({"type": "edge2"})
        out = {**self._raw, **({"features": features} if features else {}), "terms": terms}
        if observed and not any(_has_pivots(term) for term in terms):
            out["training"] = {**out.get("training", {}), "observed_features": True}
        penalty = float(chosen.get(PENALTY_CHOICE, 0))
        if penalty and all(map(_can_be_sparse, terms)):
            out["training"] = {**out.get("training", {}), "c1": penalty}
        return out

    def title(self, candidate: Candidate) -> str:
        """A candidate in a line."""
        chosen = dict(candidate.choices)
        out = [title for block in self._blocks for title in block.titles(chosen)]
        if any(map(_has_pivots, self.raw(candidate)["terms"])):
            out.append(f"{int(chosen[PIVOT_CHOICE]):,} pivots")
        penalty = chosen.get(PENALTY_CHOICE, PENALTIES[0])
        out += [] if penalty == PENALTIES[0] else [f"c1 {penalty}"]
        labels = chosen.get(LABEL_CHOICE, LABELS[0])
        return ", ".join([*out, *([] if labels == LABELS[0] else [f"labels {labels}"])])


def _has_pivots(term: Mapping[str, Any]) -> bool:
    own = term.get("map")
    return isinstance(own, Mapping) and own.get("type") == "reduced"


def _can_be_sparse(term: Mapping[str, Any]) -> bool:
    """Whether an L1 penalty suits a term: one over labels alone, or one whose weights are those of single features."""
    kernel, own = term.get("kernel"), term.get("map")
    if not CLIQUES[term.get("type", "node")].mapped or kernel in (None, LINEAR):
        return not isinstance(own, Mapping) or own.get("type") != "reduced"
    linear = isinstance(kernel, Mapping) and kernel.get("type") == LINEAR
    return linear or (isinstance(own, Mapping) and own.get("type") == "explicit")


def _known(seed: Mapping[str, str], choices: Mapping[str, Choice]) -> dict[str, str]:
    """A seed without choices that the space has not."""
    return {name: value for name, value in seed.items() if name in choices and value in choices[name].values}
