"""Explanation of a label: the contributions of features to its lead over another label in its place.

With all other labels as they are, putting z in place of y at t changes the score of a labelling by

    F[t, y] - F[t, z] + E_t[y_{t-1}, y] - E_t[y_{t-1}, z] + E_{t+1}[y, y_{t+1}] - E_{t+1}[z, y_{t+1}] + ...

(triples, first and last labels likewise). z is the gold label where that is another one, else the runner-up, with which
the score is largest. F is a sum over features, and each of them adds its own difference: with transitions they add up
to the whole.

A term with pivots is no sum over features: a feature contributes the loss of the difference when it is removed from x_t
and the kernel is evaluated on the rest. The remainder is the contribution of all of them `jointly`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ..chains import Edges, MappedClique
from ..encoding import UNOBSERVED, Dataset
from ..features import FeatureTerm, KernelTerm, Term
from ..system import positions_within
from .input_groups import AttributeSlot, InputGroup, input_groups, input_text, with_slots
from .model import ROWS_AT_ONCE, Model

Named = TypeVar("Named")  # a label, or its number

EDGE = "edge"  # all transitions
CALIBRATION = "calibration"
JOINTLY = "jointly"  # what is due to several features together
MOST_SIMILAR = 3  # pivots to list


@dataclass(frozen=True)
class Contribution:
    """Contribution of one feature, conjunction or transition to the lead of a label over another."""

    term: str
    what: str
    value: float  # a difference of log scores


@dataclass(frozen=True)
class SimilarPivot(Generic[Named]):
    """A training position that is like the one explained."""

    term: str
    line: int  # of training data
    similarity: float  # 1 for the same input
    value: float  # its contribution
    text: str  # its own features
    label: Named | None  # in the training data, as far as it is known


@dataclass(frozen=True)
class Explanation(Generic[Named]):
    """Explanation of the label of one position."""

    label: Named  # its number; `KernelCRF.explain` gives labels themselves
    against: Named | None  # gold label or runner-up; None: no other label is possible in its place
    difference: float  # of the scores of the whole labelling, with the one and with the other
    contributions: tuple[Contribution, ...]  # the largest for the label, then the largest against it
    others: float  # all others together
    terms: tuple[tuple[str, float], ...] = ()  # sum of each term; transitions are the last
    similar: tuple[SimilarPivot[Named], ...] = ()  # of terms with pivots the most similar ones, in descending order

    def with_labels(self: Explanation[int], labels: Sequence[Named]) -> Explanation[Named]:
        """Return it with labels in the place of their numbers."""
        against = None if self.against is None else labels[self.against]
        like = []
        for one in self.similar:
            label = None if one.label is None else labels[one.label]
            like.append(SimilarPivot(one.term, one.line, one.similarity, one.value, one.text, label))
        rest = self.difference, self.contributions, self.others, self.terms
        return Explanation(labels[self.label], against, *rest, tuple(like))


class _Question(NamedTuple):
    """A row of a term's inputs, and a column of weights for each of the two labels of a position."""

    position: int
    row: int
    plus: int
    minus: int


@dataclass
class _Account:
    """Contributions to the difference of one position, as they are found."""

    contributions: list[Contribution] = field(default_factory=list)
    total: float = 0.0
    terms: dict[str, float] = field(default_factory=dict)
    similar: list[SimilarPivot[int]] = field(default_factory=list)

    def add(self, term: str, total: float, contributions: Sequence[Contribution]) -> None:
        """Add the total of a term, and those of its parts that may be shown."""
        self.total += total
        self.terms[term] = self.terms.get(term, 0.0) + total
        self.contributions += contributions


def _placed(what: str, question: _Question) -> str:
    """Return the name of a contribution, marked where it comes from the position after."""
    return what if question.row == question.position else f"next: {what}"


class Explainer:
    """Explains labellings of one model."""

    def __init__(self, model: Model):
        self._model = model
        self._sharpness = 1.0 if model.calibration is None else model.calibration.sharpness
        # Each term with the weights of its parts for labels, [D, Y], or pairs of them, [D, Y^2].
        self._weights: list[tuple[Term, np.ndarray]] = []
        self._groups: dict[str, list[InputGroup]] = {}
        for term in model.terms:
            weights = term.by_labels(term.part_weights, len(model.labels))
            self._weights.append((term, self._sharpness * weights))
            if term.has_pivots:
                self._groups[term.name] = input_groups(model.encoding.views(term.features))

    def explain(
        self,
        dataset: Dataset,
        scores: np.ndarray,
        edges: Edges,
        labels: np.ndarray,
        count: int,
        gold: np.ndarray | None = None,
        errors: bool = False,
    ) -> list[Explanation[int] | None]:
        """Explain positions by at most `count` contributions of each sign, for potentials that may be constrained.

        With `gold` labels [N], those that are wrong are explained against them; with `errors`, no others are.
        """
        Y, rows = len(self._model.labels), np.arange(len(labels))
        others = scores_in_place(scores, edges, dataset.offsets, labels)
        own = others[rows, labels]
        others[rows, labels] = -np.inf
        against = others.argmax(axis=1)
        wanted = np.ones(len(rows), dtype=bool)
        if gold is not None:
            possible = (gold >= 0) & (others[rows, np.maximum(gold, 0)] > -np.inf)
            against = np.where(possible, gold, against)
            wanted = (gold != labels) & (gold > UNOBSERVED) if errors else wanted
        rivals = others[rows, against]
        accounts = [_Account() for _ in rows]
        asked = np.flatnonzero(wanted & (rivals > -np.inf))
        for term, weights in self._weights:
            questions = _questions(term.clique, asked, labels, against, dataset.offsets, Y)
            if isinstance(term, KernelTerm):
                answers = self._of_pivots(term, weights, questions, dataset, count, accounts)
            else:
                assert isinstance(term, FeatureTerm)
                answers = self._answers(term, weights, questions, dataset, count)
            for t, total, some in answers:
                accounts[t].add(term.name, total, some)
        # Transitions as the model has them; terms over edges have added their part already.
        for t, what, value in self._of_edges(asked, labels, against, dataset.offsets):
            accounts[t].add(EDGE, value, [Contribution(EDGE, what, value)])
        if self._model.calibration is not None:
            offsets = self._model.calibration.offsets
            for t in asked.tolist():
                value = float(offsets[labels[t]] - offsets[against[t]])
                accounts[t].add(CALIBRATION, value, [Contribution(CALIBRATION, "offset of the label", value)])
        out: list[Explanation[int] | None] = []
        for t, account in enumerate(accounts):
            if not wanted[t] or rivals[t] == -np.inf:
                out.append(Explanation(int(labels[t]), None, np.inf, (), 0.0) if wanted[t] else None)
                continue
            shown = [one for sign in (1, -1) for one in _largest(account.contributions, count, sign)]
            rest = account.total - math.fsum(one.value for one in shown)
            like = tuple(heapq.nlargest(count, account.similar, key=lambda one: one.similarity))
            found = int(labels[t]), int(against[t]), float(own[t] - rivals[t])
            out.append(Explanation(*found, tuple(shown), rest, tuple(account.terms.items()), like))
        return out

    def _answers(
        self, term: FeatureTerm, weights: np.ndarray, questions: list[_Question], dataset: Dataset, count: int
    ) -> Iterator[tuple[int, float, list[Contribution]]]:
        """Yield for each question its position, the sum of all contributions, and the largest of them."""
        encoding, inputs = self._model.encoding, self._model.encoding.inputs(dataset, term.features)
        for first in range(0, len(questions), ROWS_AT_ONCE):
            some = questions[first : first + ROWS_AT_ONCE]
            rows = np.array([question.row for question in some], dtype=np.intp)
            for question, own in zip(some, term.parts(encoding, inputs.take(rows)), strict=True):
                products = own.values * (weights[own.rows, question.plus] - weights[own.rows, question.minus])
                order = np.argsort(-products, kind="stable")
                contributions = []
                for e in (order if len(order) <= 2 * count else np.append(order[:count], order[-count:])).tolist():
                    what = _placed(own.name(e), question)
                    contributions.append(Contribution(term.name, what, float(products[e])))
                yield question.position, float(products.sum()), contributions

    def _of_pivots(
        self,
        term: KernelTerm,
        weights: np.ndarray,
        questions: list[_Question],
        dataset: Dataset,
        count: int,
        accounts: list[_Account],
    ) -> Iterator[tuple[int, float, list[Contribution]]]:
        """Yield for each question its position, the whole difference, and contributions of the term's features.

        Similar pivots are added to the account of the position.
        """
        every, columns = self._model.encoding.inputs(dataset, term.features), self._groups[term.name]
        step = max(ROWS_AT_ONCE // (len(columns) + 1), 1)
        for first in range(0, len(questions), step):
            some = questions[first : first + step]
            inputs = every.take(np.array([question.row for question in some], dtype=np.intp))
            groups = with_slots(columns, inputs)
            values, likeness = term.similarities(inputs)  # [n, M] each
            n = np.arange(len(some))
            plus, minus = (np.array([getattr(one, side) for one in some]) for side in ("plus", "minus"))
            products = values * (weights[:, plus] - weights[:, minus]).T
            whole = products.sum(axis=1)
            left_out = np.zeros((len(groups), len(some)))
            there = np.ones((len(groups), len(some)), dtype=bool)
            for g, group in enumerate(groups):
                scores = np.zeros((len(some), term.alpha.shape[1]))
                term.add_scores(group.taken_from(inputs), scores)
                scores = self._sharpness * term.by_labels(scores, len(self._model.labels))
                if isinstance(group, AttributeSlot):
                    there[g] = group.present(inputs)
                left_out[g] = np.where(there[g], whole - (scores[n, plus] - scores[n, minus]), 0.0)
            for i, question in enumerate(some):
                rows = [
                    Contribution(term.name, _placed(group.described(inputs, i), question), float(left_out[g, i]))
                    for g, group in enumerate(groups)
                    if there[g, i]
                ]
                jointly = float(whole[i] - left_out[:, i].sum())
                rows.append(Contribution(term.name, _placed(JOINTLY, question), jointly))
                if question.row == question.position:
                    for m in np.argsort(-likeness[i], kind="stable")[: min(count, MOST_SIMILAR)].tolist():
                        text = input_text(columns, term.pivots, m)
                        label = None if term.labels is None or term.labels[m] < 0 else int(term.labels[m])
                        found = (int(term.lines[m]), float(likeness[i, m]), float(products[i, m]), text, label)
                        accounts[question.position].similar.append(SimilarPivot(term.name, *found))
                yield question.position, float(whole[i]), rows

    def _of_edges(
        self, asked: np.ndarray, labels: np.ndarray, against: np.ndarray, offsets: np.ndarray
    ) -> Iterator[tuple[int, str, float]]:
        """Yield position, name and difference of all potentials between labels."""
        edges, names = self._model.used_edges, self._model.labels
        T, U, start, end = edges.transitions, edges.triples, edges.start, edges.end
        back = positions_within(offsets)
        ahead = np.repeat(offsets[1:], np.diff(offsets)) - 1 - np.arange(len(labels))
        for t in asked.tolist():
            y, z = int(labels[t]), int(against[t])
            before = [int(label) for label in labels[max(t - 2, t - int(back[t])) : t]]
            after = [int(label) for label in labels[t + 1 : t + 1 + min(2, int(ahead[t]))]]
            # Each potential as a row over labels at t.
            found = [(f"after {names[before[-1]]}", T[before[-1]]) if before else ("at the beginning", start)]
            found.append((f"before {names[after[0]]}", T[:, after[0]]) if after else ("at the end", end))
            if U is not None and len(before) == 2:
                found.append((f"after {names[before[0]]} {names[before[1]]}", U[before[0], before[1]]))
            if U is not None and before and after:
                found.append((f"between {names[before[-1]]} and {names[after[0]]}", U[before[-1], :, after[0]]))
            if U is not None and len(after) == 2:
                found.append((f"before {names[after[0]]} {names[after[1]]}", U[:, after[0], after[1]]))
            yield from ((t, what, float(row[y] - row[z])) for what, row in found)


def _largest(contributions: Sequence[Contribution], count: int, sign: int) -> list[Contribution]:
    """Return the largest contributions of one sign, in descending order of their size."""
    return heapq.nlargest(count, (one for one in contributions if sign * one.value > 0), key=lambda one: abs(one.value))


def scores_in_place(scores: np.ndarray, edges: Edges, offsets: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the part of a labelling's score that depends on each position, with every label in its place, [N, Y]."""
    N, Y = scores.shape
    stacked = np.broadcast_to(edges.stacked(), (N, Y, Y)) if N else edges.stacked()
    within = positions_within(offsets)
    ahead = np.repeat(offsets[1:], np.diff(offsets)) - 1 - np.arange(N)
    every = scores.copy()
    every[within == 0] += edges.start
    every[ahead == 0] += edges.end
    t = np.flatnonzero(within > 0)
    every[t] += stacked[t, labels[t - 1]]
    t = np.flatnonzero(ahead > 0)
    every[t] += stacked[t + 1, :, labels[t + 1]]
    if edges.triples is not None:
        U = edges.triples
        t = np.flatnonzero(within > 1)
        every[t] += U[labels[t - 2], labels[t - 1]]
        t = np.flatnonzero((within > 0) & (ahead > 0))
        every[t] += U[labels[t - 1], :, labels[t + 1]]
        t = np.flatnonzero(ahead > 1)
        every[t] += U[:, labels[t + 1], labels[t + 2]].T
    return every


def _questions(
    clique: MappedClique, asked: np.ndarray, labels: np.ndarray, against: np.ndarray, offsets: np.ndarray, Y: int
) -> list[_Question]:
    """Return the questions to a term: at the position itself, for edge-x terms also at the next position."""
    triples = [(t, int(labels[t]), int(against[t])) for t in asked.tolist()]
    if clique.axes == 1:
        return [_Question(t, t, y, z) for t, y, z in triples]
    first = set(offsets[:-1].tolist())
    out = []
    for t, y, z in triples:
        if t not in first:
            before = int(labels[t - 1]) * Y
            out.append(_Question(t, t, before + y, before + z))
        if t + 1 < len(labels) and t + 1 not in first:
            after = int(labels[t + 1])
            out.append(_Question(t, t + 1, y * Y + after, z * Y + after))
    return out
