"""Audits: evidence against sums over all labellings, planted errors, corrections that change labels alone."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace

import numpy as np
import pytest

import models
from kcrf_core.chains import chain
from kcrf_core.corpora import Layout, read_corpus
from kcrf_core.encoding import configured, fit_encoding
from kcrf_core.errors import DataError
from kcrf_core.scoring import SCHEMES, allowed_transitions, detect_scheme
from kcrf_core.selection import (
    Division,
    audit_by_folds,
    audit_by_model,
    corrected,
    make_plan,
    make_settings,
    read_worklist,
    worklist,
)
from kcrf_core.selection.evidence import Channel, errors_of_single_labels, gather, learn_channel, log_odds
from kcrf_core.selection.label_audit import HEADER, Correction
from kcrf_core.selection.planted_regression import PlantedRegression
from kcrf_core.selection.planting import ErrorKinds
from kcrf_core.system import Workers
from kcrf_core.training import Scored, train


def scored(order=1):
    model, corpus = models.random_model(np.random.default_rng(3), labels=("A", "B", "C"), order=order)
    dataset = model.encoding.encode(corpus)
    first = dataset.span(0, 1)
    scores, edges = model.potentials(first)
    labels = np.array([0, 2, 1, -1, 1, 0, 2, 2][: first.positions], dtype=np.int32)
    return Scored(np.arange(first.positions), model.labels, scores, edges, first.offsets, labels)


def all_labellings(part):
    """Every labelling of one sequence, and its score."""
    T, Y = part.scores.shape
    paths = np.array(list(itertools.product(range(Y), repeat=T)), dtype=np.int32)
    totals = [chain.path_scores(part.scores, part.edges, part.offsets, path)[0] for path in paths]
    return paths, np.array(totals)


@pytest.mark.parametrize("order", [1, 2])
def test_evidence_is_that_of_all_labellings(order):
    part = scored(order)
    channel = Channel.of(part.labels, np.full((3, 3), 0.1))
    paths, totals = all_labellings(part)
    weights = np.exp(totals - totals.max())
    with Workers(1) as workers:
        found = gather([part], channel, part.labels, len(part.gold), workers)
    Y = part.scores.shape[1]
    known = part.gold >= 0
    # An error of each pair of true and given label has the probability 0.1.
    through = np.prod(np.where(~known | (paths == part.gold), np.where(known, 0.8, 1.0), 0.1), axis=1)
    after = weights * through / np.sum(weights * through)
    for t in np.flatnonzero(known).tolist():
        has = paths[:, t] == part.gold[t]
        assert found.marginal[t] == pytest.approx(weights[has].sum() / weights.sum(), rel=1e-9)
        assert found.doubt[t] == pytest.approx(log_odds(1 - after[has].sum()), rel=1e-7, abs=1e-9)
        others = [after[paths[:, t] == y].sum() if y != part.gold[t] else -1 for y in range(Y)]
        assert found.suggested[t] == int(np.argmax(others))
    assert np.isnan(found.doubt[~known]).all() and np.isnan(found.context[~known]).all()


def test_context_takes_all_other_labels_as_they_stand():
    part = scored()
    gold = np.where(part.gold < 0, 0, part.gold).astype(np.int32)
    part = Scored(part.rows, part.labels, part.scores, part.edges, part.offsets, gold)
    with Workers(1) as workers:
        found = gather([part], Channel.of(part.labels, np.full((3, 3), 0.01)), part.labels, len(gold), workers)
    for t in range(len(gold)):
        values = []
        for y in range(3):
            other = gold.copy()
            other[t] = y
            values.append(chain.path_scores(part.scores, part.edges, part.offsets, other)[0])
        values = np.exp(np.array(values) - max(values))
        assert found.context[t] == pytest.approx(values[gold[t]] / values.sum(), rel=1e-9)


def drawn(generator, labels, sequences, sharpness):
    """Labels drawn from known probabilities of a chain, and the potentials."""
    N, Y = 10 * sequences, len(labels)
    scores, edges, offsets = sharpness * generator.normal(size=(N, Y)), chain.Edges.zeros(Y), np.arange(0, N + 1, 10)
    scheme = detect_scheme(labels)
    if scheme is not None:
        rules = allowed_transitions(labels, scheme)
        edges = chain.Edges(np.where(rules.pairs, 0.0, -50.0), np.where(rules.first, 0.0, -50.0), np.zeros(Y))
    gold, ends = np.empty(N, dtype=np.int32), edges.start
    backward = np.zeros((N, Y))
    for t in range(N - 2, -1, -1):
        if (t + 1) % 10:
            backward[t] = np.logaddexp.reduce(edges.transitions + scores[t + 1] + backward[t + 1], axis=1)
    for t in range(N):
        own = scores[t] + backward[t] + (edges.transitions[gold[t - 1]] if t % 10 else ends)
        p = np.exp(own - own.max())
        gold[t] = generator.choice(Y, p=p / p.sum())
    return Scored(np.arange(N), labels, scores, edges, offsets, gold)


def first_wrong(wrong, order):
    """The share of wrong labels among as many first ones."""
    return wrong[np.argsort(order, kind="stable")[: wrong.sum()]].mean()


@pytest.mark.parametrize("kind", [0, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (1, 2, 3))])
def test_wrong_spans_come_first(kind):
    """Of each kind: missed, spurious, of other boundaries or types."""
    generator = np.random.default_rng(kind)
    part = drawn(generator, models.SPANS, 200, 7.0)
    kinds = ErrorKinds.of(part.labels, np.bincount(part.gold, minlength=len(part.labels)))
    G, gold = len(kinds.names) // 4, part.gold
    for group in range(G):
        gold = kinds.plant(kind * G + group, gold, part.offsets, 0.06, generator)
    wrong = gold != part.gold
    noisy = replace(part, gold=gold.astype(np.int32))
    with Workers(1) as workers:
        channel = Channel.by_kind(part.labels, np.bincount(gold, minlength=len(part.labels)))
        judge = PlantedRegression.fit([noisy], channel, workers)
        found = gather([noisy], channel, part.labels, len(gold), workers, judge)
    first = first_wrong(wrong, -found.doubt)
    assert first > max(first_wrong(wrong, found.marginal) - 0.05, first_wrong(wrong, found.context) + 0.05, 0.6)


def exchanged(part, generator, share):
    """Labels, of which some are exchanged for others that are all equally frequent, and where that is."""
    where = generator.random(len(part.gold)) < share
    other = (part.gold + generator.integers(1, len(part.labels), size=len(part.gold))) % len(part.labels)
    return replace(part, gold=np.where(where, other, part.gold).astype(np.int32)), where


def test_exchanged_labels_come_first():
    """Single labels of spans, exchanged at random: neither p(label | x) alone nor errors of whole spans tell them."""
    generator = np.random.default_rng(0)
    noisy, wrong = exchanged(drawn(generator, models.SPANS, 300, 4.0), generator, 0.03)
    with Workers(1) as workers:
        assert errors_of_single_labels([noisy], workers)
        found = gather([noisy], learn_channel([noisy], workers), noisy.labels, len(wrong), workers)
    first = first_wrong(wrong, -found.doubt)
    assert first > 0.8 and first > first_wrong(wrong, found.marginal)
    assert wrong[found.doubt > 0].mean() > 0.9


def test_a_channel_learns_what_labels_errors_lead_to():
    """Labels that were all exchanged for one other: the channel expects that label of errors."""
    generator = np.random.default_rng(1)
    part = drawn(generator, ("a", "b", "c"), 300, 5.0)
    where = generator.random(len(part.gold)) < 0.04
    noisy = replace(part, gold=np.where(where, 2, part.gold).astype(np.int32))
    with Workers(1) as workers:
        t = np.exp(learn_channel([noisy], workers).log_t)
    np.testing.assert_allclose(t.sum(axis=1), 1.0, rtol=1e-12)
    assert min(t[0, 2], t[1, 2]) > 3 * max(t[0, 1], t[1, 0], t[2, 0], t[2, 1])


@pytest.mark.parametrize("kind", ["missed", "boundary", "type"])
def test_wrong_spans_are_no_errors_of_single_labels(kind):
    generator = np.random.default_rng(0)
    part = drawn(generator, models.SPANS, 300, 9.0)
    kinds = ErrorKinds.of(part.labels, np.bincount(part.gold, minlength=len(part.labels)))
    gold = part.gold
    for number, name in enumerate(kinds.names):
        if name.startswith(kind):
            gold = kinds.plant(number, gold, part.offsets, 0.1, generator)
    with Workers(1) as workers:
        assert not errors_of_single_labels([replace(part, gold=gold.astype(np.int32))], workers)


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
def test_planted_errors_are_of_their_kind(scheme):
    """Labels change alone where they should, to others of the scheme; a share of the spans or labels."""
    letters = SCHEMES[scheme].letters.replace("O", "")
    labels = ("O", *(f"{letter}-{kind}" for kind in "XY" for letter in letters))
    part = drawn(np.random.default_rng(1), labels, 300, 2.0)
    gold = part.gold.copy()
    gold[5] = -1
    kinds = ErrorKinds.of(labels, np.bincount(part.gold, minlength=len(labels)))
    for kind, name in enumerate(kinds.names):
        new = kinds.plant(kind, gold, part.offsets, 0.1, np.random.default_rng(2))
        where = np.flatnonzero(new != gold)
        assert 0.01 < len(where) / len(gold) < 0.2 and new[5] == -1
        found = kinds.table[gold[where], new[where]]
        own, group = name.split()
        assert own == "boundary" or {kinds.names[k] for k in found if k != kind} <= {f"boundary {group}"}
        if scheme != "iob1" and own != "type":
            rules = allowed_transitions(labels, scheme)
            inside = np.setdiff1d(np.arange(1, len(gold)), part.offsets)
            inside = inside[(inside != 5) & (inside != 6)]
            assert rules.pairs[new[inside - 1], new[inside]].all()


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Words whose label is known by their first letter, a few of them labelled as another."""
    generator = np.random.default_rng(0)
    lines, wrong, number = [], [], 0
    for _ in range(120):
        for _ in range(5):
            number += 1
            letter = "abc"[generator.integers(3)]
            label = letter.upper()
            if generator.uniform() < 0.03:
                wrong.append(number)
                label = "ABC".replace(label, "")[generator.integers(2)]
            lines.append(f"{letter}{generator.integers(4)} {label}")
        lines.append("")
        number += 1
    path = tmp_path_factory.mktemp("noisy") / "data.conll"
    path.write_text("\n".join(lines) + "\n")
    return path, wrong


def by_folds(path, **more):
    corpus = read_corpus(path)
    plan = make_plan(corpus, {}, "options", make_settings({}, {"sigma2": 1.0}), Division(3))
    with Workers(1) as workers:
        return audit_by_folds(plan, workers=workers, **more)


def test_data_that_says_nothing_has_no_doubtful_labels(tmp_path):
    path = tmp_path / "constant.conll"
    path.write_text("a A\n\na B\n\n" * 6)
    found = by_folds(path)
    assert found.judged == 12 and found.doubtful == 0


def test_folds_find_what_was_exchanged(noisy):
    path, wrong = noisy
    found = by_folds(path)
    first = found.positions(len(wrong))
    assert len({one.line for one in first} & set(wrong)) >= 0.85 * len(wrong)
    assert 0.5 * len(wrong) < found.places == found.doubtful < 1.5 * len(wrong) and found.judged == 600
    one = first[0]
    assert one.suggested == one.text[0].upper() != one.gold and one.reason == f"its features say {one.suggested}"
    listed = [each.doubt for each in found.positions()]
    assert listed == sorted(listed, reverse=True) and listed[5] > -3 > listed[len(wrong) + 5]


def test_a_label_of_one_fold_alone_is_not_judged(noisy, tmp_path):
    path = tmp_path / "rare.conll"
    path.write_text(noisy[0].read_text().replace(" A\n", " RARE\n", 1))
    found = by_folds(path)
    assert found.judged == 599 and "RARE" not in {one.gold for one in found.positions()}


def test_a_model_judges_in_sample(noisy):
    corpus = read_corpus(noisy[0])
    config, _ = configured({}, {"sigma2": 1.0}, corpus, "options")
    with Workers(1) as workers:
        model, _ = train(*fit_encoding(config, corpus), config, workers=workers)
    found = audit_by_model(model, corpus, threads=1)
    lines = {one.line for one in found.positions(len(noisy[1]))}
    assert not found.held_out and len(lines & set(noisy[1])) >= 0.85 * len(noisy[1])


def test_spans_and_labels_that_cannot_stand_there(tmp_path):
    text = "the B-X\ncat I-X\nsat O\n\n" * 29 + "the B-X\ncat O\nsat I-X\n\n"
    path = tmp_path / "spans.conll"
    path.write_text(text)
    found = by_folds(path)
    lines = {one.line: one.reason for one in found.positions(2)}
    assert set(lines) == {118, 119} and lines[119] == "I-X cannot follow O in its scheme"
    # Of labels that stay the most probable none is called more probable.
    best = found.positions()[-1]
    assert best.marginal > 0.9 and best.reason == f"{best.gold} is more probable than {best.suggested}, and not certain"


def test_a_scheme_is_that_of_the_data(tmp_path):
    """In IOB1 spans begin with I, and with B only behind another one: nothing breaks its rules."""
    path = tmp_path / "iob1.conll"
    path.write_text("the I-X\ncat B-X\nsat O\n\n" * 12)
    assert not [one.reason for one in by_folds(path).positions() if "cannot follow" in one.reason]


CSV = Layout(separator=",")
UD = "{}\t{}\t_\t{}\t_\t_\t0\t_\t_\t_\n".format


@pytest.mark.parametrize(
    ("format_", "columns", "layout", "text", "after"),
    [
        ("conll", None, Layout(), "a X X \r\nb X X \r\n", "a X X \r\nb X Y \r\n"),
        ("conll", None, CSV, "a,1\nb,X\n", "a,1\nb,Y\n"),
        ("conll", None, CSV, 'a,1,1\nb,"as Y,X or so",X\nc,X,X', 'a,1,1\nb,"as Y,X or so",Y\nc,X,X'),
        ("conll", None, CSV, '"a","X"\r\n"b","X"\r\n', '"a","X"\r\n"b","Y"\r\n'),
        ("conll", None, Layout(header=True), "w l\nX X\nX X\n", "w l\nX Y\nX X\n"),
        ("crfsuite", None, Layout(), "X\ta\nX\tX\n", "X\ta\nY\tX\n"),
        ("conllu", ("form", "upos"), Layout(), UD(1, "X", "X") + UD(2, "X", "X"), UD(1, "X", "X") + UD(2, "X", "Y")),
    ],
)
def test_corrections_change_labels_alone(tmp_path, format_, columns, layout, text, after):
    changes = read_worklist("line\ttext\tgold\tsuggested\taccept\n2\t\tX\tY\ty\n", "list")
    path = tmp_path / "data"
    path.write_bytes(text.encode())
    assert corrected(str(path), changes, format_, columns, layout) == after.encode()
    path.write_bytes(after.encode())
    with pytest.raises(DataError, match="data:2: the label is not 'X'"):
        corrected(str(path), changes, format_, columns, layout)
    path.write_bytes(text.encode() + b"\n")
    with pytest.raises(DataError, match="data:9: there is no label in this line"):
        corrected(str(path), [replace(changes[0], line=9)], format_, columns, layout)


def test_corrections_of_odd_labels(tmp_path):
    path = tmp_path / "data"
    path.write_bytes("\ufeffX\ta\n".encode())
    assert corrected(str(path), [Correction(1, "X", "Y")], "crfsuite") == "\ufeffY\ta\n".encode()
    path.write_bytes("a X\u00a0\nb X\n".encode())
    changes = read_worklist("\t".join(HEADER) + "\n1\ta\tX\u00a0\tY\u00a0\ty\n2\tb\tX\tX\ty\r\n", "list")
    assert corrected(str(path), changes, "conll") == "a Y\u00a0\nb X\n".encode()
    with pytest.raises(DataError, match="data:2: the label 'A B' has a space"):
        corrected(str(path), [Correction(2, "X", "A B")], "conll")
    with pytest.raises(DataError, match="data:2: the worklist has two corrections"):
        corrected(str(path), [Correction(2, "X", "A"), Correction(2, "X", "B")], "conll")


WORDS = ['""""', '"', 'say "no', "a\u2028b\u0085c\fd\te\r\nf", "it's", "NA", "1/2", "'", "#", "=A1", "ordinary"]


@pytest.fixture
def listed(noisy):
    """Positions with words that are hard to write."""
    first = by_folds(noisy[0]).positions(len(WORDS))
    return [replace(one, text=text) for one, text in zip(first, WORDS, strict=True)]


def accepted(text, rows=None):
    """A worklist with y in some of its rows, all unless told."""
    lines = list(csv.reader(io.StringIO(text), dialect="excel-tab"))
    place = lines[0].index("accept")
    for number, line in enumerate(lines[1:]):
        line[place] = "y" if rows is None or number in rows else ""
    out = io.StringIO()
    csv.writer(out, dialect="excel-tab", lineterminator="\n").writerows(lines)
    return out.getvalue()


def test_worklists_come_back_as_they_were_written(listed):
    text = worklist(listed)
    found = read_worklist(accepted(text), "list")
    assert [(each.line, each.gold, each.suggested) for each in found] == [
        (each.line, each.gold, each.suggested) for each in listed
    ]
    assert [each.text for each in found[:3]] == WORDS[:3]
    assert [each.text for each in read_worklist(accepted(text, {10}), "list")] == ["ordinary"]
    for wrong in ("", "a\tb\n", text + "one\ttwo\tA\tB\ty\n", text + '3\t"a\tA\tB\ty\n', accepted(text, set())):
        with pytest.raises(DataError):
            read_worklist(wrong, "list")
    with pytest.raises(DataError, match="list:13: 'accept' is 'maybe'"):
        read_worklist(text + "3\ta\tA\tB\tmaybe\n", "list")
    known = {each.suggested for each in found}
    assert read_worklist(accepted(text), "list", known) == found
    with pytest.raises(DataError, match="list:2: the data has no label"):
        read_worklist(accepted(worklist([replace(listed[0], suggested="FOO")])), "list", known)


@pytest.mark.slow
@pytest.mark.parametrize("marks", [{"keep_default_na": False}, {}])
def test_pandas_reads_and_writes_worklists(listed, marks):
    """A word of quotes merges no rows, in either direction; pandas takes NA for a missing value."""
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(io.StringIO(worklist(listed)), sep="\t", **marks)
    assert len(table) == len(listed) and tuple(table.columns) == HEADER
    assert table.text[:3].tolist() == WORDS[:3] and table.line.tolist() == [one.line for one in listed]
    table["accept"] = "y"
    again = table.sort_values("line").to_csv(sep="\t", index=False)
    changes = read_worklist(again, "list")
    assert sorted((one.line, one.suggested) for one in changes) == sorted((one.line, one.suggested) for one in listed)


def test_rows_that_are_repeated_count_once_and_texts_are_checked(tmp_path):
    path = tmp_path / "data"
    path.write_text("cat X\n2/3 X\n")
    head = "accept\tline\tgold\tsuggested\ttext\n"  # columns may be sorted
    assert len(read_worklist(head + "y\t1\tX\tY\tcat\nY\t1\tX\tY\tcat\n", "list")) == 1
    for text, fits in (("cat", True), ("", True), ("dog", False)):
        changes = read_worklist(head + f"yes\t1\tX\tY\t{text}\nn\t2\tX\tY\t2/3\n", "list")
        if fits:
            assert corrected(str(path), changes, "conll") == b"cat Y\n2/3 X\n"
        else:
            with pytest.raises(DataError, match="data:1: the text is not 'dog'"):
                corrected(str(path), changes, "conll")
    changes = read_worklist(head + "y\t2\tX\tY\t02.03.\n", "list")  # as a spreadsheet may write 2/3
    assert corrected(str(path), changes, "conll") == b"cat X\n2/3 Y\n"
