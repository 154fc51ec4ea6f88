"""Span scores are conlleval's: values written down, its rules as an oracle, another package where it is installed."""

import itertools
import warnings

import numpy as np
import pytest

from kcrf_core.scoring import SCHEMES, evaluate
from kcrf_core.scoring.spans import SpanFinder, tell_iob_apart
from oracle import spans


def split(text):
    """Sequences of labels: blanks between labels, bars between sequences."""
    return [part.split() for part in text.split("|")]


def counts(gold, predicted, scheme, strict=False):
    """Gold, predicted and correct spans of sequences of labels."""
    offsets = np.cumsum([0, *map(len, gold)])
    found = evaluate(list(itertools.chain(*gold)), list(itertools.chain(*predicted)), offsets, scheme)
    total = (found.strict_spans if strict else found.spans).total
    assert np.array_equal(
        (found.strict_counts if strict else found.unit_counts)[:, 4:].sum(axis=0),
        [total.gold, total.predicted, total.correct],
    )
    return total.gold, total.predicted, total.correct


# ----------------------------------------------------------------------------- written down

# Scheme, gold, predicted, then gold, predicted and correct spans, worked out by hand from conlleval's rules: a span
# begins at B, at I after O, and where the type changes; it ends before B, before O and where the type changes.
# In IOBES and BILOU it also begins at S (U), and ends after E, S (L, U).
REFERENCE = [
    # well formed
    ("iob2", "B-NP I-NP O B-VP", "B-NP I-NP O B-VP", 2, 2, 2),
    ("iob2", "B-NP I-NP B-NP I-NP", "B-NP I-NP I-NP I-NP", 2, 1, 0),
    ("iob1", "I-NP I-NP B-NP I-NP", "I-NP I-NP B-NP I-NP", 2, 2, 2),
    ("iob1", "I-PER O I-LOC | I-PER", "I-PER O I-PER | O", 3, 2, 1),
    ("iobes", "B-X I-X E-X S-X O", "B-X I-X E-X S-X O", 2, 2, 2),
    ("iobes", "S-X S-X B-X E-X", "S-X B-X I-X E-X", 3, 2, 1),
    ("bilou", "B-X I-X L-X U-X O", "B-X L-X U-X U-X O", 2, 3, 1),
    # I after O
    ("iob2", "O B-NP I-NP O", "O I-NP I-NP O", 1, 1, 1),
    ("iob2", "B-NP O B-NP I-NP", "I-NP O I-NP B-NP", 2, 3, 1),
    ("iob1", "O I-NP O", "O B-NP O", 1, 1, 1),
    ("iobes", "O B-X E-X O", "O I-X E-X O", 1, 1, 1),
    ("iobes", "O S-X O", "O E-X O", 1, 1, 1),
    ("bilou", "O U-X O B-X L-X", "O I-X O I-X L-X", 2, 2, 2),
    # the type changes inside a span
    ("iob2", "B-NP I-NP I-NP", "B-NP I-VP I-NP", 1, 3, 0),
    ("iob2", "B-NP B-VP I-VP", "B-NP I-VP I-VP", 2, 2, 2),
    ("iob1", "I-NP I-VP I-NP", "I-NP I-VP I-VP", 3, 2, 1),
    ("iobes", "B-X E-X S-Y", "B-X I-X I-Y", 2, 2, 2),
    ("bilou", "B-X I-X L-X", "B-X I-Y L-X", 1, 3, 0),
    # spans that nothing ends, or that end twice
    ("iobes", "B-X I-X E-X", "B-X I-X I-X", 1, 1, 1),
    ("iobes", "B-X E-X O", "B-X E-X E-X", 1, 2, 1),
    ("iobes", "B-X I-X | E-X", "B-X I-X | E-X", 2, 2, 2),
    ("bilou", "B-X L-X", "B-X U-X", 1, 2, 0),
    # the end of a sequence is the end of a span
    ("iob2", "B-NP I-NP | I-NP", "B-NP I-NP | B-NP", 2, 2, 2),
    # nothing there
    ("iob1", "O O | O", "O O | O", 0, 0, 0),
    ("iob2", "O O | O", "O B-NP | I-NP", 0, 2, 0),
    ("iobes", "O O | O", "O O | O", 0, 0, 0),
    ("bilou", "O O | O", "O U-X | O", 0, 1, 0),
    # nothing predicted
    ("iob1", "I-NP O | I-VP", "O O | O", 2, 0, 0),
    ("iob2", "B-NP I-NP | B-VP", "O O | O", 2, 0, 0),
    ("iobes", "B-X E-X | S-X", "O O | O", 2, 0, 0),
    ("bilou", "B-X L-X | U-X", "O O | O", 2, 0, 0),
]


@pytest.mark.parametrize(("scheme", "gold", "predicted", "g", "p", "c"), REFERENCE)
def test_reference_values(scheme, gold, predicted, g, p, c):
    assert counts(split(gold), split(predicted), scheme) == (g, p, c)
    assert counts(split(predicted), split(gold), scheme) == (p, g, c)


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
def test_reference_values_as_one_file(scheme):
    """The cases of a scheme as the sequences of one file: counts add up, and figures follow from them."""
    cases = [case[1:] for case in REFERENCE if case[0] == scheme]
    gold, predicted = ([s for case in cases for s in split(case[k])] for k in (0, 1))
    g, p, c = (sum(case[k] for case in cases) for k in (2, 3, 4))
    assert counts(gold, predicted, scheme) == (g, p, c)
    flat = [list(itertools.chain(*labels)) for labels in (gold, predicted)]
    total = evaluate(*flat, np.cumsum([0, *map(len, gold)]), scheme).spans.total
    assert total.precision == pytest.approx(c / p, rel=1e-12)
    assert total.recall == pytest.approx(c / g, rel=1e-12)
    assert total.f1 == pytest.approx(2 / (p / c + g / c), rel=1e-12)


# ----------------------------------------------------------------------------- conlleval's own rules


def conlleval(gold, predicted):
    """Counts by its method: one pass over both labellings at once, looking at neighbours only.

    A chunk that both begin at the same place and with the same type is a candidate until one of them ends; it is
    correct if they end together. Positions between sequences are O. E is that of its own schemes, IOE1 and IOE2.
    """

    def parts(label):
        letter, _, kind = label.partition("-")
        return letter, kind

    def ends(before, now):
        (a, old), (b, new) = before, now
        return a != "O" and ((a in "BI" and b in "BO") or (a == "E" and b in "EIO") or old != new)

    def starts(before, now):
        (a, old), (b, new) = before, now
        return b != "O" and ((a in "BIO" and b == "B") or (a in "OE" and b in "IE") or old != new)

    found = [0, 0, 0]
    candidate = False
    last = [("O", ""), ("O", "")]
    rows = ([*zip(g, p, strict=True), ("O", "O")] for g, p in zip(gold, predicted, strict=True))
    for row in itertools.chain.from_iterable(rows):
        now = [parts(label) for label in row]
        over = [ends(before, after) for before, after in zip(last, now, strict=True)]
        begun = [starts(before, after) for before, after in zip(last, now, strict=True)]
        if candidate and any(over):
            found[2] += all(over)
            candidate = False
        if all(begun) and now[0][1] == now[1][1]:
            candidate = True
        found[0] += begun[0]
        found[1] += begun[1]
        last = now
    return tuple(found)


def random_sequences(rng, alphabet, keep):
    gold = [rng.choice(alphabet, size=rng.integers(1, 12)).tolist() for _ in range(rng.integers(1, 25))]
    predicted = [[label if rng.random() < keep else str(rng.choice(alphabet)) for label in labels] for labels in gold]
    return gold, predicted


CONLLEVAL_ALPHABETS = {
    "iob": ("iob2", "O B-NP I-NP B-VP I-VP"),
    "hyphens": ("iob1", "O B-NP-SBJ I-NP-SBJ B-NP I-NP"),
    "bare": ("iob2", "B I O"),
    "ioe": ("iobes", "O I-NP E-NP I-VP E-VP"),
}


@pytest.mark.each_choice
@pytest.mark.parametrize(("scheme", "alphabet"), CONLLEVAL_ALPHABETS.values(), ids=CONLLEVAL_ALPHABETS)
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.9])
def test_random_sequences_against_the_rules_of_conlleval(rng, scheme, alphabet, keep):
    for _ in range(40):
        gold, predicted = random_sequences(rng, alphabet.split(), keep)
        assert counts(gold, predicted, scheme) == conlleval(gold, predicted)
        nothing = [["O"] * len(labels) for labels in gold]
        assert counts(gold, nothing, scheme) == conlleval(gold, nothing)
        assert counts(nothing, predicted, scheme) == conlleval(nothing, predicted)


@pytest.mark.parametrize("case", [case for case in REFERENCE if case[0].startswith("iob") and case[0] != "iobes"])
def test_oracle_has_the_reference_values(case):
    assert conlleval(split(case[1]), split(case[2])) == case[3:]


# ----------------------------------------------------------------------------- strict


@pytest.mark.parametrize(
    ("scheme", "labels", "strict"),
    [
        ("iob2", "B-NP I-NP O B-VP", [(0, 2), (3, 4)]),
        ("iob2", "O I-NP B-NP", [(2, 3)]),
        ("iob2", "B-NP I-VP I-VP", [(0, 1)]),
        ("iob1", "I-NP B-NP I-VP", [(0, 1), (1, 2), (2, 3)]),
        ("iob1", "B-NP I-NP O B-NP", []),
        ("iob1", "I-NP B-VP", [(0, 1)]),
        ("iobes", "B-X I-X E-X S-X", [(0, 3), (3, 4)]),
        ("iobes", "B-X I-X O", []),
        ("iobes", "B-X B-X E-X", [(1, 3)]),
        ("iobes", "I-X E-X S-X I-X", [(2, 3)]),
        ("iobes", "B-X I-Y E-X", []),
        ("iobes", "B-X S-X E-X", [(1, 2)]),
        ("bilou", "B-X L-X U-X B-X", [(0, 2), (2, 3)]),
    ],
)
def test_strict_spans_worked_by_hand(scheme, labels, strict):
    alone = [labels.split()]
    assert counts(alone, alone, scheme, strict=True) == (len(strict),) * 3
    loose = {span[:2] for span in spans(labels.split())}
    assert loose >= set(strict)
    # Each of them, and no other one, is found beside a labelling that has it alone.
    for start, end in loose:
        only = ["O"] * start + labels.split()[start:end] + ["O"] * (len(labels.split()) - end)
        if scheme != "iob1":  # where a B depends on what stands before it
            assert counts(alone, [only], scheme, strict=True)[2] == ((start, end) in strict)


def test_strict_ends_with_sequences():
    assert counts(split("I-X | I-X"), split("I-X | B-X"), "iob1", strict=True) == (2, 1, 1)
    assert counts(split("B-X I-X | E-X"), split("B-X I-X | E-X"), "iobes", strict=True) == (0, 0, 0)


@pytest.mark.parametrize(
    ("gold", "scheme"),
    [
        ("B-X I-X O B-X B-X", "iob2"),
        ("I-X I-X O I-X B-X", "iob1"),  # by its labels alone this could be either
        ("I-X B-X | I-Y | B-Y", "iob1"),
        ("B-X | B-X I-X | I-X", "iob2"),  # more is explained than by iob1
        ("O O", None),
    ],
)
def test_iob1_and_iob2_are_told_apart_by_gold(gold, scheme):
    sequences = split(gold)
    flat = list(itertools.chain(*sequences))
    found = evaluate(flat, flat, np.cumsum([0, *map(len, sequences)]))
    assert found.scheme == scheme and found.scheme_detected
    assert not evaluate(flat, flat, np.cumsum([0, *map(len, sequences)]), scheme).scheme_detected


def test_ambiguous_labels_keep_their_guess():
    found = SpanFinder(["O"]).find(np.zeros(3, dtype=np.int64), np.array([0, 3]))
    for guess in ("iob1", "iob2", "iobes"):
        assert tell_iob_apart(guess, found) == guess


# ----------------------------------------------------------------------------- another package


@pytest.fixture(scope="module")
def seqeval():
    """Its counts of gold, predicted and correct spans."""
    scheme = pytest.importorskip("seqeval.scheme", reason="seqeval is not installed (pip install '.[crosscheck]')")
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")

    def count(gold, predicted, strict=None):
        if strict is None:
            found = [set(labeling.get_entities(labels)) for labels in (gold, predicted)]
        else:
            kind = getattr(scheme, strict.upper())
            found = [
                {entity.to_tuple() for part in scheme.Entities(labels, kind).entities for entity in part}
                for labels in (gold, predicted)
            ]
        return len(found[0]), len(found[1]), len(found[0] & found[1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of labels that it thinks odd
        yield count


def alphabet_of(scheme):
    return ["O", *(f"{letter}-{kind}" for letter in SCHEMES[scheme].letters if letter != "O" for kind in "xy")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
@pytest.mark.parametrize("keep", [0.0, 0.6, 0.9])
def test_seqeval_agrees(rng, seqeval, scheme, keep):
    renamed = str.maketrans("LU", "ES")  # its default mode knows these letters only
    for _ in range(25):
        gold, predicted = random_sequences(rng, alphabet_of(scheme), keep)
        known = [[[label.translate(renamed) for label in labels] for labels in side] for side in (gold, predicted)]
        assert counts(gold, predicted, scheme) == seqeval(*known)
        if scheme != "iob1":  # there it takes the rest of a span that is begun wrongly for a span
            assert counts(gold, predicted, scheme, strict=True) == seqeval(gold, predicted, strict=scheme)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", REFERENCE)
def test_seqeval_has_the_reference_values(seqeval, case):
    renamed = str.maketrans("LU", "ES")
    gold, predicted = (split(text.translate(renamed)) for text in case[1:3])
    assert seqeval(gold, predicted) == case[3:]
