"""A trained model: terms that score new positions, scores of neighbouring labels, and its file.

A model is self-contained and immutable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._lazy import cached_property
from ..chains import NODE, Potentials, chain
from ..config import RulesConfig, parse_config
from ..corpora import Corpus
from ..encoding import Dataset, Encoding, found_among
from ..errors import ConfigError, DataError, NumericError
from ..features import TERMS, Term, read_terms
from ..files import LARGEST, Contents, container_size, content_digest, read_container, write_container
from ..scoring import DECODINGS, Decision, Guarantee, Transitions, span_bonuses
from ..system import SLAB, Workers, ranges, sequence_chunks
from .rules import LabelRules

if TYPE_CHECKING:
    from ..device import Device

# Positions scored at a time, which bounds the memory of tagging for input of any length. Scores of all pairs of labels
# at every position take most memory, so their number is limited, too, unless that leaves very few positions.
ROWS_AT_ONCE = 2048
PAIRS_AT_ONCE = 1 << 20
SCORES_AT_ONCE, MOST_ROWS = 1 << 18, 4 * ROWS_AT_ONCE
FEWEST_ROWS = 2 * SLAB

Result = TypeVar("Result")

IMPOSSIBLE = "no labelling of this sequence is possible with the transitions allowed and the labels given"
IMPOSSIBLE_SCORE = -1e9  # in the place of minus infinity: beyond all sums of scores, and these keep seven digits

VITERBI = DECODINGS[0]
SEEN = tuple(item.name for item in fields(Transitions))


@dataclass(frozen=True)
class ScoreCalibration:
    """Calibration of probabilities: p(y | x) proportional to exp(s F(x, y) + sum_t o[y_t]) with all scores F.

    s is below 1 if the model is overconfident. Weights and their certificate do not change.
    """

    sharpness: float  # s
    offsets: np.ndarray  # [Y] o

    def scores(self, scores: np.ndarray) -> np.ndarray:
        """Return scores of positions, [n, Y]."""
        return self.sharpness * scores + self.offsets


class Inference:
    """Potentials of a few sequences, their marginals, and labels [n] int32 by a decoder.

    Labels obey `rules`, with the labels [n, Y] that are `allowed`; marginals are those without them. `bonuses`
    [Y + 1, Y] add to edges in Viterbi decoding (`Edges.with_bonuses`), `costs` [Y] are those of missing a label in
    posterior decoding.
    """

    def __init__(
        self,
        scores: np.ndarray,  # [n, Y]
        edges: chain.Edges,
        offsets: np.ndarray,  # [S+1]
        rules: LabelRules | None = None,
        decode: str = VITERBI,  # one of DECODINGS
        bonuses: np.ndarray | None = None,
        costs: np.ndarray | None = None,
        allowed: np.ndarray | None = None,
    ):
        self.scores, self.edges, self.offsets = scores, edges, offsets
        self.status: np.ndarray | None = None  # [S] of the search for labels that obey rules
        if decode == VITERBI and bonuses is not None:
            edges = edges.with_bonuses(bonuses)
        if rules is not None and decode == VITERBI:
            self.labels, self.status = rules.best(scores, edges, offsets, allowed)
        elif rules is not None:
            self.labels, self.status = rules.posterior(scores, edges, offsets, allowed, costs)
        elif decode == VITERBI:
            self.labels = chain.viterbi(scores, edges, offsets)[0]
        else:
            self.labels = chain.posterior_labels(self.marginals.node, scores, edges, offsets, costs)

    @cached_property
    def marginals(self) -> chain.Marginals:
        return chain.marginals(self.scores, self.edges, self.offsets)


def why_impossible(
    error: NumericError,
    scores: np.ndarray,
    edges: chain.Edges,
    part: Dataset,
    source: str | None,
    settings: Sequence[str] = ("when_impossible",),
) -> DataError | NumericError:
    """Return an error that names the first sequence without a possible labelling by its line."""
    totals = chain.viterbi(scores, edges, part.offsets, checked=False)[1]
    bad = np.flatnonzero(~np.isfinite(totals))
    if not len(bad):
        return error
    return DataError(IMPOSSIBLE, source, int(part.lines[part.offsets[bad[0]]]), settings=settings)


@dataclass(frozen=True)
class Model:
    """Terms, edge potentials, and the encoding of their inputs.

    >>> from kcrf_core import KernelCRF, Model
    >>> KernelCRF(sigma2=1.0).fit([[[0.0], [1.0]]], [["a", "b"]]).save("model.npz")
    >>> model = Model.load("model.npz")
    >>> model.labels, model.order, model.info["training"]["stop"]
    (('a', 'b'), 1, 'certified')
    """

    encoding: Encoding
    terms: tuple[Term, ...]
    edges: chain.Edges
    info: dict[str, Any] = field(default_factory=dict)  # configuration, certificate, digest: for reports
    decode: str = VITERBI  # its decoder, one of DECODINGS
    calibration: ScoreCalibration | None = None  # of its probabilities
    rules: RulesConfig | None = None  # that its labels obey; forbidden transitions are among its edges
    seen: Transitions | None = None  # transitions of the training data; None: not known
    span_bonus: float = 0.0  # what each span adds to the score of a labelling in Viterbi decoding
    permitted: Transitions | None = None  # transitions that are left by rules and not by edges, see `softened`
    trained_on: np.ndarray | None = None  # uint64, ascending: hashes of its training sequences (`encoding.hashing`)
    guarantees: dict[str, Guarantee] = field(default_factory=dict)  # by the use of their threshold (`decoding`)

    def __post_init__(self) -> None:
        _freeze(self.terms)
        _freeze(self.edges)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # pickle returns writeable arrays

    @property
    def labels(self) -> tuple[str, ...]:
        return self.encoding.labels

    @property
    def order(self) -> int:
        return 1 if self.edges.triples is None else 2

    def potentials(self, dataset: Dataset) -> tuple[np.ndarray, chain.Edges]:
        """Return node scores F, [N, Y] float64, and edges, one for every position if there are edge-x terms."""
        N, Y = dataset.positions, len(self.labels)
        # Scores of terms of one type are summed before they are added to the potentials.
        scores = {clique: np.zeros((N, clique.columns(Y))) for clique in dict.fromkeys(t.clique for t in self.terms)}
        if not any(clique.axes == 1 for clique in scores):
            scores[NODE] = np.zeros((N, NODE.columns(Y)))
        for term in self.terms:
            inputs = self.encoding.inputs(dataset, term.features)
            for rows in ranges(N, max(self.rows_at_once, ROWS_AT_ONCE)):
                with np.errstate(over="ignore", invalid="ignore"):  # overflow is detected below
                    term.add_scores(inputs.take(rows), scores[term.clique][rows])
        out = Potentials(None, self.edges)
        for clique, values in scores.items():
            if not np.isfinite(values).all():
                t = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
                s = int(np.searchsorted(dataset.offsets, t, side="right")) - 1
                raise NumericError(
                    f"the sequence at line {int(dataset.lines[dataset.offsets[s]])} has scores that are not finite, "
                    f"first in line {int(dataset.lines[t])}: are its numbers in the units of the training data?"
                )
            clique.add(values, out, Y)
        assert out.scores is not None  # of the terms of nodes, or zeros
        if self.calibration is None:
            return out.scores, out.edges
        return self.calibration.scores(out.scores), out.edges.times(self.calibration.sharpness)

    @property
    def used_edges(self) -> chain.Edges:
        """Potentials between labels, calibrated if the model is."""
        return self.edges if self.calibration is None else self.edges.times(self.calibration.sharpness)

    @property
    def rows_at_once(self) -> int:
        """Number of positions to score at a time; at least one sequence is scored."""
        if not any(term.clique.per_position for term in self.terms):
            if any(term.likes_many_rows for term in self.terms):
                return MOST_ROWS
            # Sums of few weights take less time than the Python calls, for which threads wait in turn.
            quick = all(term.is_quick for term in self.terms)
            return min(max(SCORES_AT_ONCE // len(self.labels), ROWS_AT_ONCE), MOST_ROWS) if quick else ROWS_AT_ONCE
        return min(max(PAIRS_AT_ONCE // len(self.labels) ** 2, FEWEST_ROWS), ROWS_AT_ONCE)

    def chunks(self, dataset: Dataset, most_rows: int = MOST_ROWS) -> list[tuple[int, int]]:
        """Return runs of whole sequences (first, last) to be scored at a time."""
        return sequence_chunks(dataset.offsets, min(self.rows_at_once, most_rows))

    @cached_property
    def label_rules(self) -> LabelRules | None:
        """Rules on numbers of the model's labels; None without any."""
        return LabelRules.of(
            self.rules or RulesConfig(),
            self.labels,
            self.seen,
            self.permitted,
            self.encoding.odd_labels,
        )

    def softened(self) -> Model:
        """Return the model with impossible transitions as rules, which have a setting for sequences that break all.

        Their scores are far below all others: labels without rules have as few of these transitions as possible.
        """
        parts = self.edges.transitions, self.edges.start, self.edges.end
        permitted = Transitions(*(part > -np.inf for part in parts))
        if all(part.all() for part in vars(permitted).values()):
            return self
        transitions, start, end = (np.maximum(part, IMPOSSIBLE_SCORE) for part in parts)
        edges = chain.Edges(transitions, start, end, self.edges.triples)
        return replace(self, edges=edges, permitted=permitted)

    @cached_property
    def bonuses(self) -> np.ndarray | None:
        """Numbers [Y + 1, Y] that transitions add to scores in Viterbi decoding; None for zeros."""
        return span_bonuses(self.encoding.span_labels, self.span_bonus) if self.span_bonus else None

    def deciding(self, decision: Decision) -> Model:
        """Return the model with the decoder and the bonus for spans of a decision, where it names them."""
        bonus = decision.span_bonus
        if bonus is None:
            bonus = self.span_bonus if decision.decode is None else 0.0
        if (decision.decoder(self.decode), bonus) == (self.decode, self.span_bonus):
            return self
        return replace(self, decode=decision.decoder(self.decode), span_bonus=bonus)

    def infer(self, part: Dataset, costs: np.ndarray | None = None, allowed: np.ndarray | None = None) -> Inference:
        """Return the marginals and best labels of a few sequences by the model's rules and decoder."""
        scores, edges = self.potentials(part)
        try:
            return Inference(scores, edges, part.offsets, self.label_rules, self.decode, self.bonuses, costs, allowed)
        except NumericError as error:
            raise why_impossible(error, scores, edges, part, part.source) from None

    def best_labels(self, part: Dataset) -> np.ndarray:
        """Return numbers of the best labels of a few sequences by the model's decoder, [n] int32."""
        return self.infer(part).labels

    def over_parts(
        self, dataset: Dataset, work: Callable[[Dataset], Result], workers: Workers | None = None
    ) -> Iterator[Result]:
        """Yield results of `work` on runs of whole sequences, in order, with only a few in memory at once.

        The potentials of a sequence do not depend on its run, to the last bit.
        """
        with nullcontext(workers) if workers is not None else Workers(1, memory=0) as workers:
            yield from workers.map(lambda sequences: work(dataset.span(*sequences)), self.chunks(dataset))

    def tag(self, dataset: Dataset, workers: Workers | None = None) -> np.ndarray:
        """Return numbers of the best labels by the model's decoder, [N] int32."""
        parts = self.over_parts(dataset, self.best_labels, workers)
        return np.concatenate([np.empty(0, dtype=np.int32), *parts])

    def tag_corpus(self, corpus: Corpus, workers: Workers | None = None) -> list[str]:
        """Return the best labels of a corpus, with or without gold ones."""
        best = self.tag(self.encoding.encode(corpus), workers)
        return [self.labels[number] for number in best.tolist()]

    def marginals(self, dataset: Dataset, workers: Workers | None = None) -> np.ndarray:
        """Return p(y_t | x), [N, Y]."""
        parts = self.over_parts(
            dataset, lambda part: chain.marginals(*self.potentials(part), part.offsets).node, workers
        )
        return np.concatenate([np.empty((0, len(self.labels))), *parts])

    def has_seen(self, part: Dataset) -> np.ndarray | None:
        """Return True for sequences that the model was trained on, [S] bool; None where that is not known.

        Sequences of fewer than `encoding.SHORTEST` positions may be equal by chance, and count as new.
        """
        if self.trained_on is None or part.hashes is None:
            return None
        return found_among(part.hashes, part.offsets, self.trained_on)

    def on_device(self, device: Device) -> tuple[Model, list[str]]:
        """Return the model with pivots scored on a device, and the names of terms that stay on threads."""
        moved = [term.on_device(device) for term in self.terms]
        here = [term.name for term, own in zip(self.terms, moved, strict=True) if own is None]
        return replace(self, terms=tuple(own or term for term, own in zip(self.terms, moved, strict=True))), here

    def save(self, path: str | os.PathLike[str]) -> None:
        write_container(path, "model", *self._pack())

    @property
    def file_size(self) -> int:
        """Bytes that `save` writes."""
        return container_size("model", *self._pack())

    @property
    def digest(self) -> str:
        """SHA-256 digest of the contents of the file that `save` writes, not of its bytes."""
        return content_digest(*self._pack())

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = self.encoding.pack()
        header |= {"info": self.info, "decode": self.decode, "terms": []}
        if self.span_bonus:
            header["span_bonus"] = self.span_bonus
        if self.calibration is not None:
            header["calibration"] = {"sharpness": self.calibration.sharpness}
            arrays["calibration.offsets"] = self.calibration.offsets
        if self.rules is not None:
            header["rules"] = self.rules.to_dict()
        if self.seen is not None:
            arrays |= {f"seen.{name}": values for name, values in vars(self.seen).items()}
        for number, term in enumerate(self.terms):
            about = {"name": term.name, "type": term.type, "features": list(term.features)}
            entry, own = term.pack(f"term{number}")
            header["terms"].append(about | entry)
            arrays |= own
        edges = {"transitions": self.edges.transitions, "start": self.edges.start, "end": self.edges.end}
        for name, values in edges.items():
            possible = np.isfinite(values)
            arrays[name] = np.where(possible, values, 0.0)
            if not possible.all():
                arrays[f"{name}.allowed"] = possible
        if self.edges.triples is not None:
            arrays["triples"] = self.edges.triples
        if self.trained_on is not None:
            arrays["trained_on"] = self.trained_on
        if self.guarantees:
            header["guarantees"] = {use: dict(vars(one)) for use, one in self.guarantees.items()}
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        return cls.unpack(read_container(path, "model"))

    @classmethod
    def unpack(cls, contents: Contents) -> Model:
        encoding = Encoding.unpack(contents)
        Y = len(encoding.labels)
        terms = []
        for stored in read_terms(contents, encoding):
            kind = stored.entry.get("map")
            if not isinstance(kind, str) or kind not in TERMS:
                raise stored.contents.error(f"'{stored.at}' has an unknown map")
            terms.append(TERMS[kind].unpack(stored))
        edges = chain.Edges(
            _stored_edges(contents, "transitions", 2),
            _stored_edges(contents, "start", 1),
            _stored_edges(contents, "end", 1),
            contents.array("triples", "float64", 3, LARGEST) if "triples" in contents.arrays else None,
        )
        if edges.transitions.shape != (Y, Y) or edges.start.shape != (Y,) or edges.end.shape != (Y,):
            raise contents.error("transitions do not fit the labels")
        if edges.triples is not None and edges.triples.shape != (Y, Y, Y):
            raise contents.error("'triples' do not fit the labels")
        decode = contents.header.get("decode", VITERBI)  # not in files of earlier versions
        if decode not in DECODINGS:
            raise contents.error("'decode' names no decoder")
        bonus = contents.header.get("span_bonus", 0.0)
        if not isinstance(bonus, float) or not -LARGEST < bonus < LARGEST:
            raise contents.error("'span_bonus' is not a finite number")
        calibration = None
        if "calibration" in contents.header:
            sharpness = contents.get("calibration", dict).get("sharpness")
            offsets = contents.array("calibration.offsets", "float64", 1, LARGEST)
            if not isinstance(sharpness, float) or not 0 < sharpness < LARGEST or offsets.shape != (Y,):
                raise contents.error("'calibration' does not fit the labels")
            calibration = ScoreCalibration(sharpness, offsets)
        rules = seen = None
        if "rules" in contents.header:
            try:
                rules = parse_config({"rules": contents.get("rules", dict)}).rules
                LabelRules.of(rules, encoding.labels, odd=encoding.odd_labels)
            except ConfigError as error:
                raise contents.error(f"'rules': {error}") from None
        if "seen.pairs" in contents.arrays:
            seen = Transitions(*(contents.array(f"seen.{name}", "bool", 1 + (name == "pairs")) for name in SEEN))
            if seen.pairs.shape != (Y, Y) or seen.first.shape != (Y,) or seen.last.shape != (Y,):
                raise contents.error("'seen' does not fit the labels")
        known = None
        if "trained_on" in contents.arrays:
            known = contents.array("trained_on", "uint64", 1)
            if (known[1:] <= known[:-1]).any():
                raise contents.error("'trained_on' does not ascend")
        guarantees = contents.get("guarantees", dict) if "guarantees" in contents.header else {}
        try:
            guarantees = {use: Guarantee(**one) for use, one in guarantees.items()}
        except (TypeError, ValueError):
            raise contents.error("'guarantees' has no thresholds") from None
        about = contents.get("info", dict), decode, calibration, rules, seen, bonus
        return cls(encoding, tuple(terms), edges, *about, trained_on=known, guarantees=guarantees)


def _freeze(value: Any) -> None:
    """Make the arrays of a value read-only: several threads may share them."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple):
        for part in value:
            _freeze(part)
    elif is_dataclass(value):
        for part in fields(value):
            _freeze(getattr(value, part.name))


def _stored_edges(contents: Contents, name: str, ndim: int) -> np.ndarray:
    """Return potentials between labels, minus infinity where they are forbidden."""
    values = contents.array(name, "float64", ndim, LARGEST)
    if f"{name}.allowed" not in contents.arrays:
        return values
    allowed = contents.array(f"{name}.allowed", "bool", ndim)
    if allowed.shape != values.shape:
        raise contents.error(f"'{name}.allowed' does not fit the labels")
    return np.where(allowed, values, -np.inf)
