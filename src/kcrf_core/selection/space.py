"""The candidates of a search, derived from the columns of a corpus: choices, and the configuration they make.

A candidate has one value for each choice of the space. Columns of each kind make a block of the space, which turns its
choices into features and terms. Settings of the user are no choices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, ClassVar

from ..chains import CLIQUES
from ..config import RUN_TRANSFORMS, conjunction_part, part_text
from ..encoding import around, conjunctions, grams, shape_features

# Pivots on a rung: no more than this part of its positions, since more would add nothing.
POSITIONS_PER_PIVOT = 4
FEWEST_PIVOTS = 300
PIVOTS = (500, 1000, 2000, 4000, 8000)

# Numbers that a position may have in all, its window included.
MOST_NUMBERS = 1500
WINDOWS = ("0", "1", "2", "3", "5", "8", "12", "20/2")  # positions to both sides, and the step
WIDEST_REACH = 30  # positions to both sides that a feature sees, that of the largest width
# Transforms of numbers: of each by itself, of the change of columns, and mean and deviation over a width. The default
# has ranks of some columns, and windows that differ by column.
USUAL, NONE = "default", "none"
FORMS = ("plain", "rank", "log1p", "clip")
CHANGES = (NONE, "difference", "speed")
WIDTHS = (NONE, "5", "15", "60")
GRAMS = "n-grams"  # of letters and other tags
# Columns that pairs and triples are made of.
MOST_PAIRED, MOST_TRIPLED = 60, 24

# Where a configuration has features: those of the default, or those of the configuration, or of a template both.
FEATURE_CHOICE, GIVEN, BOTH = "features", "given", "given and default"
SIGMA2_CHOICE, AUTOMATIC = "sigma2", "auto"
LABELS = ("first-order transitions", "second-order transitions", "no transitions")
PIVOT_CHOICE, LABEL_CHOICE, PENALTY_CHOICE = "pivots", "labels", "c1"
# L1 penalties beside sigma2: typical values of CRFsuite's users.
PENALTIES = ("0", "0.1", "0.5")
# Kernels of inputs.
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
        """Return the candidate with other values for some choices."""
        return Candidate(tuple((name, values.get(name, value)) for name, value in self.choices))


@dataclass(frozen=True)
class Choice:
    """One question, and its answers."""

    name: str
    values: tuple[str, ...]
    start: str  # the answer that mostly is a good one
    ordered: bool = False  # by size, so that only the next ones are neighbours

    def near(self, value: str) -> list[str]:
        """Return the answers to try in the place of this one."""
        if not self.ordered:
            return [other for other in self.values if other != value]
        at = self.values.index(value)
        return [self.values[place] for place in (at + 1, at - 1) if 0 <= place < len(self.values)]


@dataclass(frozen=True)
class BlockShare:
    """The features and terms that a block adds to a configuration."""

    features: tuple[dict[str, Any], ...]
    linear: tuple[str, ...]  # names or patterns of features with a linear kernel
    terms: tuple[dict[str, Any], ...] = ()
    observed: bool = False  # weights only for labels that features are observed with, where maps allow it


class ColumnBlock(ABC):
    """Columns of one kind."""

    choices: tuple[Choice, ...] = ()
    seeds: tuple[dict[str, str], ...] = ()  # changes of the start that mostly pay, in this order

    @abstractmethod
    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        """Return the features and terms of these choices; the terms have so many pivots."""


def _offsets(reach: str) -> int:
    """Return the number of offsets of a window."""
    most, _, step = reach.partition("/")
    return 2 * int(most) // int(step or 1) + 1


def _poly(degree: int) -> dict[str, Any]:
    return {"type": "poly", "degree": degree}


@dataclass(eq=False)
class TextBlock(ColumnBlock):
    """Categorical columns: words, whose parts and shapes are features, too, and tags, of which there are few.

    `features` are those that `train` would make of them; words have transforms among them.
    """

    features: tuple[dict[str, Any], ...]
    observed: bool = False  # begin with weights of features only for labels that they are observed with
    marks: tuple[str, ...] = ()  # columns with runs of one value, such as the word of a letter
    labels: tuple[str, ...] = ()
    WINDOW: ClassVar[str] = "window of tags"
    PLACE: ClassVar[str] = "place"
    SHAPES: ClassVar[str] = "shapes"

    def __post_init__(self) -> None:
        words = self.words = tuple(dict.fromkeys(one["column"] for one in self.features if "transform" in one))
        plain = (one for one in self.features if "column" in one and "transform" not in one)
        # Columns that are the same throughout a sequence are seen at the position alone.
        tags = self.tags = tuple(_name(one) for one in plain if one["column"] not in words and one.get("window") != [0])
        # The features that conjunctions are made of: words and tags, or for words alone, their common parts.
        names = [_name(one) for one in self.features]
        common = (f"{word}{end}" for word in words for end in (".lower", ".suffix3", ".shape"))
        paired = self.paired = [*words, *tags] if tags else [name for name in common if name in names]
        tuples = any("conjunction" in one for one in self.features)
        kinds = (("pairs", 0), ("pairs", 1), ("pairs", 2), ("triples", 1))
        limits = {"pairs": (2, MOST_PAIRED), "triples": (3, MOST_TRIPLED)}
        counts = {f"{kind} {reach}": (limits[kind], len(paired) * (2 * reach + 1)) for kind, reach in kinds}
        near = (NONE, *(value for value, ((least, most), count) in counts.items() if least <= count <= most))
        bigrams = (NONE, *(["tags"] if tuples else []), "all", *([GRAMS] if tags else []))
        self._shapes = shape_features(names, words, self.labels)
        choices = [Choice("bigrams", bigrams, "tags" if tuples else NONE), Choice("conjunctions", near, NONE)]
        # Conjunctions gain no more than words do from weights for pairs of a feature and a label
        # that were not observed, which are ten times as many (`experiments/observed`).
        pairs, wide, triples = ({"conjunctions": value} for value in ("pairs 1", "pairs 2", "triples 1"))
        seeds = [{"weights": "all"}, pairs] if self.observed else [pairs]
        if words:
            weights = Choice("weights", ("all", "observed"), "observed" if self.observed else "all")
            parts = Choice("words", ("plain", "affixes", "near affixes", "all affixes"), "affixes", True)
            choices = [weights, parts, *choices, Choice("min_count", ("1", "2", "3"), "1", True)]
            seeds += [{"words": "all affixes"}, {"words": "plain", "bigrams": NONE}]
        if self._shapes:
            choices.append(Choice(self.SHAPES, (NONE, *self._shapes), NONE, True))
            seeds[:0] = [{self.SHAPES: name} for name in reversed(self._shapes)]
        if len(words) + len(tags) > 1:
            seeds += [wide, {"bigrams": "all"}, {**pairs, "bigrams": "all"}]
        seeds += [triples, {**pairs, "words": "all affixes"}] if words else [triples]
        if tags:
            choices.append(Choice(self.WINDOW, WINDOWS[2:], WINDOWS[2], True))
            wide, wider = ({self.WINDOW: value} for value in ("5", WINDOWS[-1]))
            seeds[1:1] = [{"bigrams": GRAMS}, wide, {"bigrams": GRAMS, **wide}, wider]
        if self.marks:
            choices.append(Choice(self.PLACE, (NONE, *self.marks), NONE))
            seeds[1:1] = [{self.PLACE: name} for name in self.marks]
        self.choices = tuple(choices)
        self.seeds = tuple(seed for seed in seeds if seed.get("conjunctions", NONE) in near)

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        rare = int(chosen.get("min_count", "1"))
        cut = {} if rare == 1 else {"min_count": rare}
        level, bigrams = chosen.get("words", "plain"), chosen["bigrams"]
        reach = {"near affixes": 1, "all affixes": 2}.get(level)
        features: list[dict[str, Any]] = []
        hidden: list[dict[str, Any]] = []  # for pairs alone
        for one in self.features:
            wide = {} if reach is None else {"window": around(reach)}
            if "conjunction" in one:
                if bigrams not in (NONE, GRAMS):
                    features.append({**one, **cut})
            elif "transform" not in one:
                own = one.get("window", around(2))
                moved = _name(one) in self.tags and chosen[self.WINDOW] != WINDOWS[2]
                features.append({**one, "window": around(chosen[self.WINDOW]) if moved else own, **cut})
            elif level != "plain":
                features.append({**one, **wide, **cut})
            elif chosen["conjunctions"] != NONE and _name(one) in self.paired:
                hidden.append(one)
        if bigrams == "all":
            known = {conjunction_part(part)[0] for one in features for part in one.get("conjunction", ())}
            fresh = [column for column in (*self.words, *self.tags) if column not in known]
            features += [
                {"conjunction": [part_text(name, -1), part_text(name, 0)], "window": [0, 1], **cut} for name in fresh
            ]
        if bigrams == GRAMS:
            features += grams(self.tags, rare)
        terms: list[dict[str, Any]] = []
        if level != "plain" and (shapes := chosen.get(self.SHAPES, NONE)) != NONE:
            features += self._shapes[shapes][0]
            terms += self._shapes[shapes][1]
        if (mark := chosen.get(self.PLACE, NONE)) != NONE:
            features += [{"column": mark, "transform": transform, "window": [0]} for transform in RUN_TRANSFORMS]
        linear = tuple(_name(one) for one in features)
        kind, _, radius = chosen["conjunctions"].partition(" ")
        if kind != NONE:
            terms.append(conjunctions(self.paired, {"pairs": 2, "triples": 3}[kind], int(radius)))
        observed = chosen.get("weights") == "observed"
        return BlockShare((*features, *hidden), linear, tuple(terms), observed)


def _name(feature: Mapping[str, Any]) -> str:
    """Return the name of a feature, given or by default."""
    if "name" in feature:
        return feature["name"]
    if "conjunction" in feature:
        return "/".join(feature["conjunction"])
    transform = feature.get("transform") or feature.get("lookup")
    return feature["column"] + (f".{transform}{feature.get('length', '')}" if transform else "")


NESTED = ((1, 3), (2, 3), (3, 2))  # windows and degrees of a sum of polynomial kernels


@dataclass(eq=False)
class NumberBlock(ColumnBlock):
    """Real columns, or vectors, with columns of few values beside them: the kernel sees both."""

    name: str  # of the choices, where there are several such blocks
    features: tuple[dict[str, Any], ...]  # with windows and ranks as `train` has them
    beside: tuple[str, ...]  # names of categorical features that the kernel looks at, too
    width: int  # numbers of a position, without its window
    shape: tuple[int, int] | None = None  # of an image
    reach: int = 2  # of the window to begin with
    start: str = LINEAR  # the kernel that `train` takes for them
    vectors: tuple[tuple[str, ...], ...] = ()  # columns that are coordinates of one quantity

    def __post_init__(self) -> None:
        windows = [reach for reach in WINDOWS if self.width * _offsets(reach) <= MOST_NUMBERS] or [WINDOWS[0]]
        widest = int(windows[-1].partition("/")[0])
        kernels = [LINEAR, RBF, LINEAR_AND_RBF, PAIRS, TRIPLES]
        if len(self.features) > 1:
            kernels.append(BY_COLUMN)
        if widest >= NESTED[-1][0] and self.shape is None:
            kernels.append(NESTED_WINDOWS)
        if self.shape is not None:
            kernels.append(IMAGE)
        window, kernel = f"{self.name} window", f"{self.name} kernel"
        near = [one for one in windows if int(one.partition("/")[0]) <= self.reach]
        reach = near[-1] if self.shape is None else WINDOWS[0]
        wider = windows[min(windows.index(reach) + 2, len(windows) - 1)]
        if len({str(feature.get("window")) for feature in self.features}) > 1:
            windows.insert(windows.index(reach) + 1, USUAL)
            reach = USUAL
        choices = [Choice(kernel, tuple(kernels), self.start), Choice(window, tuple(windows), reach, True)]
        seeds: list[dict[str, str]] = []
        if self.shape is not None:
            orders: tuple[dict[str, str], ...] = ({}, {LABEL_CHOICE: LABELS[2]}, {LABEL_CHOICE: LABELS[1]})
            seeds += [{kernel: IMAGE, **labels} for labels in orders]
        if self.shape is None and "columns" in self.features[0]:
            form, change, width = (f"{self.name} {what}" for what in ("form", "change", "width"))
            made = {feature.get("transform", FORMS[0]) for feature in self.features}
            usual = made.pop() if len(made) == 1 else USUAL
            forms = FORMS if usual in FORMS else (USUAL, *FORMS)
            choices += [Choice(form, forms, usual), Choice(change, CHANGES, NONE), Choice(width, WIDTHS, NONE)]
            tried = [{change: "speed"}, {width: "15"}, {form: "log1p"}, {form: "plain" if usual == "rank" else "rank"}]
            tried += [{width: "60"}, {change: "difference"}]
            # What a transform finds is often linear in it, and passes of a linear model take a fraction of the time.
            seeds += [one | own for one in tried for own in ({kernel: LINEAR}, {})]
        seeds.append({kernel: RBF if self.start == LINEAR else LINEAR})
        if NESTED_WINDOWS in kernels:
            seeds.append({kernel: NESTED_WINDOWS})
        seeds += [{kernel: TRIPLES}, {kernel: LINEAR_AND_RBF}]
        if widest > self.reach and self.shape is None:
            seeds += [{kernel: own, window: own_window} for own_window in (wider, windows[-1]) for own in (RBF, LINEAR)]
        self.choices, self.seeds = tuple(choices), tuple(seeds)

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        kernel, reach = chosen[f"{self.name} kernel"], chosen[f"{self.name} window"]
        reach = {NESTED_WINDOWS: str(NESTED[-1][0]), IMAGE: "0"}.get(kernel, reach)  # which have windows of their own
        made = {} if reach == USUAL else {"window": around(reach)}
        if (form := chosen.get(f"{self.name} form", USUAL)) != USUAL:
            made["transform"] = "identity" if form == FORMS[0] else form
        derived = self._derived(chosen, reach)
        features = (*(_without_defaults({**feature, **made}) for feature in self.features), *derived)
        names = tuple(feature["name"] for feature in features)
        seen = [*names, *(() if kernel == LINEAR_AND_RBF else self.beside)]
        term = {"name": self.name, "features": seen, "map": {"type": "reduced", "size": pivots}}
        if self.beside and kernel != LINEAR_AND_RBF and reach != USUAL and not derived:
            term["window"] = around(reach)
        terms: tuple[dict[str, Any], ...] = ()
        if kernel == NESTED_WINDOWS:
            terms = tuple(
                {**term, "name": f"{self.name}{own}", "window": around(own), "kernel": _poly(degree)}
                for own, degree in NESTED
            )
        elif kernel != LINEAR:
            kernels: dict[str, dict[str, Any]] = {
                RBF: {"type": RBF},
                LINEAR_AND_RBF: {"type": RBF},
                PAIRS: _poly(2),
                TRIPLES: _poly(3),
                BY_COLUMN: {"type": "sum", "parts": [{"type": RBF, "features": [name]} for name in seen]},
                IMAGE: {"type": IMAGE, "shape": list(self.shape or ())},
            }
            only = {"features": list(names)} if kernel == IMAGE else {}
            terms = ({**term, **only, "kernel": kernels[kernel]},)
        linear = names if kernel in (LINEAR, LINEAR_AND_RBF) else ()
        if linear and "lookup" in features[0]:  # with a prior variance of their own, as `train` has them
            return BlockShare(features, (), ({"name": features[0]["lookup"], "features": list(linear)}, *terms))
        return BlockShare(features, linear, terms)

    def _derived(self, chosen: Mapping[str, str], reach: str) -> tuple[dict[str, Any], ...]:
        """Return features of the change of columns, and of means and deviations of each over a width."""
        columns = [column for feature in self.features for column in feature.get("columns", ())]
        change, width = (chosen.get(f"{self.name} {what}", NONE) for what in ("change", "width"))
        window = around(self.reach if reach == USUAL else reach)
        out: list[dict[str, Any]] = []
        if change != NONE:
            own = self.vectors or (tuple(columns),) if change == "speed" else (tuple(columns),)
            names = [f"{self.name}.{change}{number or ''}" for number in range(len(own))]
            out += [{"name": name, "columns": list(group), "transform": change, "window": window}
                    for name, group in zip(names, own, strict=True)]  # fmt: skip
        if width != NONE:
            over = {"columns": columns, "width": int(width), "window": [0]}
            out += [{"name": f"{self.name}.{kind}", "transform": kind, **over} for kind in ("mean", "std")]
        return tuple(out)


def _without_defaults(feature: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in feature.items() if (key, value) != ("transform", "identity")}


@dataclass(eq=False)
class GivenBlock(ColumnBlock):
    """Features, and perhaps terms, that the user has chosen, or attributes as CRFsuite's files have them.

    Features beside attributes are lookups, which are linear. Terms without features stay as they are; with features,
    other kernels and windows are tried, too.
    """

    features: tuple[dict[str, Any], ...] = ()
    terms: tuple[dict[str, Any], ...] | None = None
    attributes: bool = False
    WINDOW: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        name = self.choice = "attributes" if self.attributes else "kernel"
        kernels = (LINEAR, LINEAR_AND_PAIRS, PAIRS, RBF)
        if self.terms is None:
            self.choices = (Choice(name, kernels, LINEAR),)
        elif self.features:
            self.choices = (Choice(name, (GIVEN, *kernels), GIVEN), Choice(self.WINDOW, (GIVEN, *WINDOWS[1:5]), GIVEN))
            self.seeds = tuple({name: kernel} for kernel in (LINEAR_AND_PAIRS, RBF))
        if self.attributes:
            self.choices = (*self.choices, Choice("min_count", ("1", "2", "3"), "1", True))
            self.seeds = ({name: LINEAR_AND_PAIRS}, {name: PAIRS}, {"min_count": "2"})

    def part(self, chosen: Mapping[str, str], pivots: int) -> BlockShare:
        features, seen, kernel = self.features, "*", chosen.get(self.choice, GIVEN)
        if (reach := chosen.get(self.WINDOW, GIVEN)) != GIVEN:
            features = tuple({**one, "window": around(reach)} if _moves(one) else one for one in features)
        if self.terms is not None and kernel == GIVEN:
            return BlockShare(features, (), self.terms)
        if self.attributes:
            seen, rare = "attributes", int(chosen["min_count"])
            features = ({"type": seen, "name": seen} | ({} if rare == 1 else {"min_count": rare}), *features)
        # Pairs get conjunctions where these are exact and not too many.
        by_pivots = {"kernel": {"type": RBF}, "map": {"type": "reduced", "size": pivots}}
        own = by_pivots if kernel == RBF else {"kernel": _poly(2)}
        terms = () if kernel == LINEAR else ({"name": "together", "features": [seen], **own},)
        looked_up = tuple(map(_name, self.features)) if self.attributes else ()
        return BlockShare(features, (*((seen,) if kernel.startswith(LINEAR) else ()), *looked_up), terms)


def _moves(feature: Mapping[str, Any]) -> bool:
    """Return True if a feature that was given looks around itself by a window."""
    alone = feature.get("window") == [0] or "lookup" in feature
    return ("column" in feature or "columns" in feature) and not alone


class Space:
    """All candidates: those to begin with, their neighbours, and their configurations."""

    def __init__(
        self,
        blocks: Sequence[ColumnBlock],
        raw: Mapping[str, Any],
        positions: int,
        label_terms: bool = True,
        usual: Mapping[str, Any] | None = None,  # the configuration that data gets by default: that of the start
        pivots: int = PIVOTS[1],  # of the start
        given: Mapping[str, Any] | None = None,  # a configuration with features and terms to begin with, too
    ):
        self._blocks, self._usual = tuple(blocks), usual
        self._raw = {key: value for key, value in raw.items() if key not in ("features", "terms")}
        mapped, labels = by_input((raw if given is None else given).get("terms") or ())
        self._given_labels = None if label_terms and given is None else labels
        self._given = None if given is None else GivenBlock(tuple(given["features"]), mapped)
        fixed = ((given or {}).get("training") or {}).get("sigma2")
        self._sigma2 = None if fixed == AUTOMATIC else fixed
        choices = [choice for block in blocks for choice in block.choices]
        if self._given is not None:
            named = all("name" in one for one in self._given.features)  # as those of templates are
            both = [BOTH] if named and any(one.get("name") == "node" and "kernel" not in one for one in mapped) else []
            choices[:0] = [Choice(FEATURE_CHOICE, (USUAL, GIVEN, *both), USUAL), *self._given.choices]
            if self._sigma2 or any("sigma2" in term for term in (*mapped, *labels)):
                choices.append(Choice(SIGMA2_CHOICE, (AUTOMATIC, GIVEN), AUTOMATIC))
        if label_terms:
            choices.insert(0, Choice(LABEL_CHOICE, LABELS, LABELS[0]))
        most = max(PIVOTS[0], positions // 2)
        sizes = tuple(str(size) for size in PIVOTS if size <= most)
        start = str(pivots) if str(pivots) in sizes else sizes[0]
        choices.insert(1 if label_terms else 0, Choice(PIVOT_CHOICE, sizes, start, True))
        if "c1" not in (raw.get("training") or {}):
            choices.append(Choice(PENALTY_CHOICE, PENALTIES, PENALTIES[0], True))
        self.choices = {choice.name: choice for choice in choices}
        self.start = Candidate(tuple((choice.name, choice.start) for choice in choices))

    @property
    def seeds(self) -> list[Candidate]:
        """Candidates to begin with, the start first."""
        out, choices, first = [self.start], self.choices, []
        if self._given is not None:
            first = [{FEATURE_CHOICE: GIVEN, **own} for own in ({SIGMA2_CHOICE: GIVEN}, {}, *self._given.seeds)]
            first[2:2] = [{FEATURE_CHOICE: BOTH, **own} for block in self._blocks for own in (*block.seeds[:1], {})]
        # The best of each block come before the second best of any.
        by_block = filter(None, chain.from_iterable(zip_longest(*(block.seeds for block in self._blocks))))
        for seed in (*first, *by_block):
            known = {name: value for name, value in seed.items() if name in choices and value in choices[name].values}
            out.append(self._plain(self.start.changed(**known)))
        return list(dict.fromkeys(out))

    @property
    def first(self) -> int:
        """Number of seeds to judge in any case: the default and the configuration that was given."""
        return 1 if self._given is None else 2

    def neighbours(self, candidate: Candidate) -> Iterable[Candidate]:
        """Yield the candidates that differ in one choice, in the order of choices."""
        found = {candidate}
        for choice in self.choices.values():
            for value in choice.near(candidate[choice.name]):
                other = self._plain(candidate.changed(**{choice.name: value}))
                if other not in found:
                    found.add(other)
                    yield other

    def _plain(self, candidate: Candidate) -> Candidate:
        """Reset choices that do not change the configuration, such as pivots of a linear kernel, to the start."""
        own = self._composed(candidate)
        for choice in self.choices.values():
            other = candidate.changed(**{choice.name: choice.start})
            if self._composed(other) == own:
                candidate = other
        return candidate

    def is_default(self, candidate: Candidate) -> bool:
        """Return True if the configuration of a candidate is what data gets without any."""
        return self._usual is not None and candidate == self.start

    def raw(self, candidate: Candidate, positions: int | None = None) -> dict[str, Any]:
        """Return the configuration of a candidate; the number of positions bounds that of pivots."""
        own = dict(self._usual) if self._usual and self.is_default(candidate) else self._composed(candidate)
        if positions is None:
            return own
        most = max(FEWEST_PIVOTS, positions // POSITIONS_PER_PIVOT)
        return {**own, "terms": [_bounded(term, most) for term in own["terms"]]}

    def _composed(self, candidate: Candidate) -> dict[str, Any]:
        """Return the configuration that the choices of a candidate make."""
        chosen = dict(candidate.choices)
        pivots = int(chosen[PIVOT_CHOICE])
        features: list[dict[str, Any]] = []
        linear: list[str] = []
        terms: list[dict[str, Any]] = []
        observed = False
        source = chosen.get(FEATURE_CHOICE, USUAL)
        given = None if source == USUAL else self._given
        for block in (*([] if given is None else [given]), *([] if source == GIVEN else self._blocks)):
            part = block.part(chosen, pivots)
            observed = observed or part.observed
            features += part.features
            linear += part.linear
            terms += part.terms
        if linear:
            # A pattern is shorter where all features are meant.
            whole = len(linear) == len(features) or "*" in linear
            node = next((term for term in terms if source == BOTH and term.get("name") == "node"), None)
            if node is None:
                names = ["*"] if whole else linear
                terms.insert(0, {"name": "node", "features": names, "kernel": {"type": LINEAR}})
            elif "features" in node:
                terms[terms.index(node)] = {**node, "features": [*node["features"], *linear]}
        order = chosen.get(LABEL_CHOICE)
        if self._given_labels is not None and (order is None or (given is not None and order == LABELS[0])):
            terms += self._given_labels
        elif order != LABELS[2]:
            terms.append({"type": "edge"})
            if order == LABELS[1]:
                terms.append({"type": "edge2"})
        out = {**self._raw, **({"features": features} if features else {}), "terms": terms}
        training: dict[str, Any] = {}
        if given is not None and chosen.get(SIGMA2_CHOICE) == GIVEN:
            training = {} if self._sigma2 is None else {SIGMA2_CHOICE: self._sigma2}
        elif given is not None:
            out["terms"] = [{key: value for key, value in term.items() if key != SIGMA2_CHOICE} for term in terms]
        if observed and not any(_has_pivots(term) for term in terms):
            training["observed_features"] = True
        penalty = float(chosen.get(PENALTY_CHOICE, 0))
        if penalty and all(map(_can_be_sparse, terms)):
            training["c1"] = penalty
        return {**out, "training": {**out.get("training", {}), **training}} if training else out

    def title(self, candidate: Candidate) -> str:
        """Describe a candidate by the choices that differ from the default."""
        changed = [f"{name} {value}" for name, value in candidate.choices if value != self.choices[name].start]
        return ", ".join(changed) or "default"


def by_input(terms: Sequence[dict[str, Any]]) -> tuple[tuple[dict[str, Any], ...], list[dict[str, Any]]]:
    """Return the terms that look at the input, and those over labels alone."""

    def looks(term: Mapping[str, Any]) -> bool:
        return CLIQUES[term.get("type", "node")].mapped

    return tuple(filter(looks, terms)), [term for term in terms if not looks(term)]


def _bounded(term: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a term with no more pivots than that."""
    own = term.get("map")
    if not isinstance(own, Mapping) or not isinstance(own.get("size"), int):
        return dict(term)
    return {**term, "map": {**own, "size": min(own["size"], most)}}


def _has_pivots(term: Mapping[str, Any]) -> bool:
    own = term.get("map")
    return isinstance(own, Mapping) and own.get("type") == "reduced"


def _can_be_sparse(term: Mapping[str, Any]) -> bool:
    """Return True if an L1 penalty suits a term: one over labels alone, or one with weights of single features."""
    kernel, own = term.get("kernel"), term.get("map")
    if not CLIQUES[term.get("type", "node")].mapped or kernel in (None, LINEAR):
        return not isinstance(own, Mapping) or own.get("type") != "reduced"
    linear = isinstance(kernel, Mapping) and kernel.get("type") == LINEAR
    return linear or (isinstance(own, Mapping) and own.get("type") == "explicit")
