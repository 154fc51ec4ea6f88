"""Rules by names of labels, and labels that obey them.

Forbidden transitions and labels that are not allowed at a position are minus infinity among the potentials. Limits on
runs of labels are counters (`chains/rules.py`), which bind labels and no probabilities. A run of a type of spans is a
span. Probabilities of labellings are those of the model, p(y | x); marginals are given the allowed transitions and
labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..chains import EXACT, IMPOSSIBLE, LIMITED, Edges, Labellings, RunRules, best_labellings, chain
from ..config import UNSEEN, RulesConfig
from ..corpora import Corpus
from ..encoding import Encoding
from ..errors import ConfigError, DataError, suggestion
from ..scoring import SpanFinder, Transitions, detect_scheme, labels_of_spans
from ..system import listed

ALL = "all"
BEGIN, END = "^", "$"
NOTHING = ("", "_")  # cells that allow all labels
SEARCH_LIMIT = 1_000_000  # nodes of a search for the best labelling of a sequence


def combined(stored: RulesConfig | None, given: RulesConfig) -> RulesConfig:
    """Return the rules of a model and those of options: lists are joined, other settings replaced if they are given."""
    if stored is None:
        return given
    found: dict[str, Any] = {}
    for item in fields(RulesConfig):
        old, new = getattr(stored, item.name), getattr(given, item.name)
        found[item.name] = (*old, *new) if isinstance(new, tuple) else old if new == item.default else new
    return RulesConfig(**found)


class _Names:
    """Labels, and types of spans where labels are of a scheme, by name."""

    def __init__(self, labels: Sequence[str], odd: Collection[str]):
        self.labels, spans = tuple(labels), labels_of_spans(labels, odd)
        self.numbers = {label: np.array([number]) for number, label in enumerate(labels)}
        self.apart = ~np.eye(len(labels), dtype=bool)
        self.types: list[str] = []
        if detect_scheme(spans) is not None:
            finder = SpanFinder(spans)
            self.apart, self.types = finder.apart, finder.types
            self.numbers |= {kind: np.flatnonzero(finder.kinds == k) for k, kind in enumerate(finder.types)}

    def of(self, name: str, setting: str) -> np.ndarray:
        """Return numbers of the labels that a name means."""
        if name not in self.numbers:
            what, known = "label or type of spans" if self.types else "label", listed(list(self.numbers))
            message = f"a rule names '{name}', which is no {what}{suggestion(name, self.numbers)}: there are {known}"
            raise ConfigError(message, settings=(setting,))
        return self.numbers[name]

    def every(self) -> Sequence[str]:
        return self.types or self.labels


@dataclass(frozen=True, eq=False)
class LabelRules:
    """Rules on numbers of labels."""

    config: RulesConfig
    names: _Names
    runs: RunRules  # and transitions that are allowed

    @classmethod
    def of(
        cls,
        config: RulesConfig,
        labels: Sequence[str],
        seen: Transitions | None = None,
        permitted: Transitions | None = None,
        odd: Collection[str] = (),
    ) -> LabelRules | None:
        """Check rules for some labels, of which odd ones are no labels of spans; None without any.

        `seen` are the transitions of the training data, `permitted` those that are left in any case.
        """
        if not config.rules and permitted is None:
            return None
        names = _Names(labels, odd)
        allowed = _transitions(config.forbid, names, seen)
        if permitted is not None:
            allowed = permitted if allowed is None else allowed & permitted
        usable = np.ones(len(labels), dtype=bool) if allowed is None else allowed.usable
        if not usable.any():
            raise ConfigError("the forbidden transitions leave no labelling of any sequence", settings=["forbid"])
        for name in config.require:
            if not usable[names.of(name, "require")].any():
                message = f"'{name}' is required, and the forbidden transitions leave no sequence with it"
                raise ConfigError(message, settings=["require", "forbid"])
        return cls(config, names, replace(_run_rules(config, names), transitions=allowed))

    @property
    def transitions(self) -> Transitions | None:
        """Transitions that are allowed; None: all."""
        return self.runs.transitions

    def broken(self, labels: np.ndarray, offsets: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """Return sequences whose labels [n] break a rule, [S] bool."""
        out = ~self.runs.obeyed(labels, offsets)
        if allowed is not None:
            bad = np.flatnonzero(~allowed[np.arange(len(labels)), labels])
            out[np.searchsorted(offsets, bad, side="right") - 1] = True
        return out

    def allowed_labels(self, cells: Sequence[str], lines: np.ndarray, source: str) -> np.ndarray:
        """Return the labels that cells of the column `allowed` list, [n, Y] bool."""
        known: dict[str, np.ndarray] = {}
        for t, cell in enumerate(cells):
            if cell in known:
                continue
            row = known[cell] = np.full(len(self.names.labels), cell in NOTHING and cell not in self.names.labels)
            for name in () if row.all() else cell.split(self.config.allowed_separator):
                try:
                    row[self.names.of(name.strip(), "allowed")] = True
                except ConfigError:
                    message = f"the column '{self.config.allowed}' allows '{name}', which is no label of the model"
                    more = suggestion(name, self.names.numbers)
                    raise DataError(message + more, source, int(lines[t]), settings=["allowed_separator"]) from None
        return np.array([known[cell] for cell in cells], dtype=bool).reshape(len(cells), len(self.names.labels))

    def allowed_rows(self, corpus: Corpus, encoding: Encoding, rows: slice) -> np.ndarray | None:
        """Return the labels that the column `allowed` lists at some positions, [n, Y] bool; None without it."""
        name = self.config.allowed
        if name is None:
            return None
        columns = encoding.input_names(corpus)
        if corpus.attributes is not None or name not in columns:
            files = corpus.attributes is not None
            known = "attribute files have no columns" if files else f"there are {listed(columns)}"
            hint = suggestion(name, columns)
            raise ConfigError(f"there is no column '{name}' of allowed labels{hint}: {known}", settings=["allowed"])
        return self.allowed_labels(corpus.columns[columns.index(name)][rows], corpus.lines[rows], corpus.source)

    def potentials(self, scores: np.ndarray, edges: Edges, allowed: np.ndarray | None) -> tuple[np.ndarray, Edges]:
        """Return potentials that leave transitions and labels that are allowed."""
        if self.transitions is not None:
            edges = edges.permitted(self.transitions)
        return scores if allowed is None else np.where(allowed, scores, -np.inf), edges

    def best(
        self, scores: np.ndarray, edges: Edges, offsets: np.ndarray, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels [n] and the status of each sequence [S]; where none obey, those without rules."""
        labels, status = self._best(*self.potentials(scores, edges, allowed), offsets)
        if (status > LIMITED).any():
            rows = np.repeat(status > LIMITED, np.diff(offsets))
            labels[rows] = chain.viterbi(scores, edges, offsets)[0][rows]
        return labels, status

    def _best(self, scores: np.ndarray, edges: Edges, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels [n] and the status of each sequence [S]; labels are arbitrary where none obey."""
        labels, totals = chain.viterbi(scores, edges, offsets, checked=False)
        status = np.where(np.isfinite(totals), EXACT, IMPOSSIBLE).astype(np.uint8)
        wanted = np.flatnonzero(~self.runs.obeyed(labels, offsets) & (status == EXACT))
        lists, status[wanted] = self.runs.best_labellings(scores, edges, offsets, wanted, 1, SEARCH_LIMIT)
        for k, one in zip(wanted.tolist(), lists, strict=True):
            if len(one.labels):
                labels[offsets[k] : offsets[k + 1]] = one.labels[0]
        return labels, status

    def nbest(
        self, scores: np.ndarray, edges: Edges, offsets: np.ndarray, allowed: np.ndarray | None, number: int
    ) -> tuple[list[Labellings], np.ndarray]:
        """Return the best labellings of each sequence and their status; where none obey, those without rules."""
        own, S = self.potentials(scores, edges, allowed), len(offsets) - 1
        if not self.runs.counting:
            lists = best_labellings(*own, offsets, number)
            status = np.array([EXACT if len(one.labels) else IMPOSSIBLE for one in lists], dtype=np.uint8)
        else:
            lists, status = self.runs.best_labellings(*own, offsets, np.arange(S), number, SEARCH_LIMIT)
        if (status > LIMITED).any():
            others = best_labellings(scores, edges, offsets, number)
            lists = [one if len(one.labels) else other for one, other in zip(lists, others, strict=True)]
        return lists, status

    def marginals(
        self, scores: np.ndarray, edges: Edges, offsets: np.ndarray, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return p(y_t | x, allowed transitions and labels) [n, Y], and a status of each sequence.

        Where nothing is allowed, they are those without rules.
        """
        out, status = np.empty(scores.shape), np.full(len(offsets) - 1, EXACT, dtype=np.uint8)
        for s, rows, some, theirs in _sequences(*self.potentials(scores, edges, allowed), offsets):
            alone = np.array([0, len(some)])
            if not np.isfinite(chain.viterbi(some, theirs, alone, checked=False)[1][0]):
                status[s] = IMPOSSIBLE
                some, theirs = scores[rows], edges.rows(rows)
            out[rows] = chain.marginals(some, theirs, alone).node
        return out, status

    def posterior(
        self,
        scores: np.ndarray,
        edges: Edges,
        offsets: np.ndarray,
        allowed: np.ndarray | None,
        costs: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return labels [n] with the largest sum of marginals that obey, and a status of each sequence."""
        node, status = self.marginals(scores, edges, offsets, allowed)
        own, theirs = self.potentials(scores, edges, allowed)
        gains = np.where(np.isneginf(own), -np.inf, node if costs is None else node * costs)
        parts = (theirs.transitions, theirs.start, theirs.end)
        possible = Edges(*(np.where(np.isneginf(part), -np.inf, 0.0) for part in parts))
        labels, found = self._best(gains, possible, offsets)
        status = np.maximum(status, found)
        if (status > LIMITED).any():
            rows = np.repeat(status > LIMITED, np.diff(offsets))
            every = chain.marginals(scores, edges, offsets).node
            labels[rows] = chain.posterior_labels(every, scores, edges, offsets, costs)[rows]
        return labels, status

    def remarks(self, status: np.ndarray, lines: np.ndarray, source: str) -> tuple[str, ...]:
        """Return a warning for each sequence without a proven labelling; an error where rules say so."""
        out = []
        for s in np.flatnonzero(status != EXACT).tolist():
            nodes = f"{SEARCH_LIMIT:,} nodes of the search"
            if status[s] == LIMITED:
                text = f"the labels obey the rules, but {nodes} do not prove that they are the best"
            else:
                none = "no labelling obeys the rules" + (f" among {nodes}" if status[s] != IMPOSSIBLE else "")
                if self.config.when_impossible == "fail":
                    raise DataError(none, source, int(lines[s]), settings=["when_impossible"])
                text = f"{none}: labels without rules are kept"
            out.append(f"{source}:{int(lines[s])}: {text}")
        return tuple(out)


def _sequences(scores: np.ndarray, edges: Edges, offsets: np.ndarray) -> Iterator[tuple[int, slice, np.ndarray, Edges]]:
    """Yield the number, positions and potentials of each sequence that is not empty."""
    for s, (first, last) in enumerate(pairwise(offsets.tolist())):
        rows = slice(first, last)
        if last > first:
            yield s, rows, scores[rows], edges.rows(rows)


def _transitions(forbid: Sequence[str], names: _Names, seen: Transitions | None) -> Transitions | None:
    """Return the transitions that rules such as A>B leave; None if there is no such rule."""
    if not forbid:
        return None
    Y = len(names.labels)
    allowed = Transitions.every(Y)
    for rule in forbid:
        if rule == UNSEEN:
            if seen is None:
                raise ConfigError(
                    "the model does not store which transitions its training data has: train it again, or list them",
                    settings=["forbid"],
                )
            allowed &= seen
            continue
        before, after = _ends(rule, names)
        if before == BEGIN:
            allowed.first[names.of(after, "forbid")] = False
        elif after == END:
            allowed.last[names.of(before, "forbid")] = False
        else:
            pairs = np.zeros((Y, Y), dtype=bool)
            pairs[np.ix_(names.of(before, "forbid"), names.of(after, "forbid"))] = True
            # A span goes on within itself, whatever is forbidden between two of its type.
            allowed.pairs[pairs & names.apart if before in names.types else pairs] = False
    return allowed


def _ends(rule: str, names: _Names) -> tuple[str, str]:
    """Return both sides of a rule such as A>B; labels may have a > of their own."""
    parts = rule.split(">")
    sides = [(">".join(parts[:k]).strip(), ">".join(parts[k:]).strip()) for k in range(1, len(parts))]
    if not sides or ("", "") in sides or rule.strip() in (">", f"{BEGIN}>{END}"):
        raise ConfigError(f"a forbidden transition is like 'A>B', '^>B' or 'A>$', not '{rule}'", settings=["forbid"])
    known = {*names.numbers}
    return next(((a, b) for a, b in sides if a in known | {BEGIN} and b in known | {END}), sides[0])


def _run_rules(config: RulesConfig, names: _Names) -> RunRules:
    """Return counters of runs; without any rule about them, one that no label has."""
    most: dict[str, int] = {}
    for item in config.at_most:
        name, _, number = item.rpartition("=")
        if most.get(name, int(number)) != int(number):
            raise ConfigError(f"two limits on runs of '{name}': give one", settings=["at_most"])
        most[name] = int(number)
    for name in config.once:
        if name != ALL and most.get(name, 1) != 1:
            message = f"'{name}' forms at most one run by one rule and {most[name]} by another: give one"
            raise ConfigError(message, settings=["once", "at_most"])
    for name in names.every() if ALL in config.once else config.once:
        most.setdefault(name, 1)
    counted = list(dict.fromkeys((*most, *config.require)))
    group = np.full(len(names.labels), -1, dtype=np.int32)
    for g, name in enumerate(counted):
        setting = "require" if name in config.require else "once" if name in config.once else "at_most"
        own = names.of(name, setting)
        if (group[own] >= 0).any():
            other = counted[int(group[own].max())]
            raise ConfigError(f"rules count runs of '{other}' and of '{name}', which share labels: count one of them")
        group[own] = g
        if name in config.require and most.get(name) == 0:
            raise ConfigError(
                f"'{name}' is required and forbidden: leave one rule out", settings=["require", "at_most"]
            )
    apart = names.apart | (group[:, None] != group)
    limits = np.array([most.get(name, -1) for name in counted] or [0], dtype=np.int32)
    return RunRules(group, apart, limits, np.array([name in config.require for name in counted] or [False]))
