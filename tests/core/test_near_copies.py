"""Near copies are found as by comparing all pairs and kept in one fold; hashes are as they are defined."""

import os
import struct
import subprocess
import sys
from hashlib import blake2b
from itertools import combinations

import numpy as np
import pytest

from kcrf_core import KernelCRF, Workers, fit_encoding, parse_config, read_corpus
from kcrf_core.config import NEAR_COPIES
from kcrf_core.corpora import ITEMS, corpus_of
from kcrf_core.encoding import mixed, sequence_hashes
from kcrf_core.selection import Division, make_plan, make_settings
from kcrf_core.training import HoldOut, kept_together, make_splits, problem_of
from kcrf_core.training.held_out import whole_folds
from kcrf_core.training.near_copies import near_copies
from kcrf_core.training.training import TrainingRun, TrainOptions


def packed(sequences):
    """Return hashes and offsets of sequences of small numbers."""
    values = np.array([value for sequence in sequences for value in sequence], np.uint64)
    return mixed(values), np.cumsum([0, *map(len, sequences)])


def compared_pairwise(sequences, n=5):
    """Return the first sequence of each component of pairs whose n-grams have a Jaccard similarity of 0.8."""
    sets = [{tuple(one[t : t + n]) for t in range(len(one) - n + 1)} for one in sequences]
    first = list(range(len(sequences)))
    for a, b in combinations(range(len(sequences)), 2):
        if sets[a] and sets[b] and 5 * len(sets[a] & sets[b]) >= 4 * len(sets[a] | sets[b]):
            least, other = sorted((first[a], first[b]))
            first = [least if one == other else one for one in first]
    return first


def edited_copies(seed, count, values, longest=60):
    """Make random sequences, half of which are earlier ones with up to two values inserted, changed or deleted."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        if not out or rng.random() < 0.5:
            out.append(rng.integers(values, size=rng.integers(1, longest)).tolist())
            continue
        copy = list(out[rng.integers(len(out))])
        for _ in range(rng.integers(3)):
            at, kind = int(rng.integers(len(copy))), rng.integers(3)
            copy[at : at + (kind > 0)] = [] if kind == 2 and len(copy) > 1 else [int(rng.integers(values))]
        out.append(copy)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_those_of_all_pairs(seed):
    sequences = edited_copies(seed, count=20 + 5 * seed, values=(6, 20, 100)[seed % 3])
    expected = compared_pairwise(sequences)
    assert near_copies(*packed(sequences)).tolist() == expected
    assert len(set(expected)) < len(sequences)  # there is something to find


def test_groups_do_not_depend_on_the_order_of_sequences():
    sequences = edited_copies(1, 200, 50)
    order = np.random.default_rng(0).permutation(200)
    here, there = near_copies(*packed(sequences)), near_copies(*packed([sequences[s] for s in order]))
    same = here[order][:, None] == here[order][None]
    assert (same == (there[:, None] == there[None])).all()


def test_equal_sequences_that_are_short_are_no_copies():
    four, five = [[1, 2, 3, 4]] * 3, [[1, 2, 3, 4, 5]] * 3
    assert near_copies(*packed([*four, *five, *four])).tolist() == [0, 1, 2, 3, 3, 3, 6, 7, 8]
    assert near_copies(*packed([[1], [1]])).tolist() == [0, 1]
    assert near_copies(*packed([])).tolist() == []


def test_n_grams_grow_where_five_letters_tell_nothing_apart():
    rng = np.random.default_rng(0)
    genes = [rng.integers(4, size=6_000).tolist() for _ in range(30)]  # all have all 1,024 words of five letters
    mutated = [base if rng.random() > 0.003 else (base + 1) % 4 for base in genes[7]]
    assert near_copies(*packed([*genes, mutated])).tolist() == [*range(30), 7]


def test_a_single_text_in_many_copies_is_one_group():
    assert near_copies(*packed([list(range(40))] * 30)).tolist() == [0] * 30


# ------------------------------------------------------------------------------------------ folds


def written(path, sequences, extra=None):
    """Write sequences of numbers as words with labels, and a further column of one value for each sequence."""
    middle = [""] * len(sequences) if extra is None else [f" {value}" for value in extra]
    texts = ("\n".join(f"w{v}{own} {'ab'[v % 2]}" for v in one) for one, own in zip(sequences, middle, strict=True))
    path.write_text("\n\n".join(texts) + "\n")
    return read_corpus(path)


@pytest.fixture
def copies():
    """60 sequences: 20 of their own, and 20 pairs of near copies."""
    rng = np.random.default_rng(3)
    texts = [rng.integers(400, size=rng.integers(15, 25)).tolist() for _ in range(40)]
    return [*texts, *([*text[:-1], 999] for text in texts[20:])]


def apart(folds, pairs):
    """Return the pairs that no fold has whole."""
    fold_of = {int(s): f for f, fold in enumerate(folds) for s in fold}
    return [pair for pair in pairs if fold_of[pair[0]] != fold_of[pair[1]]]


PAIRS = [(20 + s, 40 + s) for s in range(20)]


def test_folds_of_cross_validation_keep_near_copies_together(tmp_path, copies):
    corpus, told = written(tmp_path / "data.conll", copies), []

    def plan(options=None, **division):
        settings = make_settings({}, {"sigma2": 1.0, **(options or {})})
        return make_plan(corpus, {}, "options", settings, Division(**division), tell=told.append)

    for stratify in (False, True):
        found = plan(count=5, stratify=stratify)
        assert not apart([fold.test for fold in found.folds], PAIRS)
    assert set(told) == {"near copies: 40 of 60 sequences resemble others, and are held out in 20 groups"}
    del told[:]
    assert apart([fold.test for fold in plan({"near_copies": "ignore"}).folds], PAIRS)
    assert not told
    numbers = np.arange(60) % 2
    given = plan(numbers=numbers, count=2)
    assert [fold.test.tolist() for fold in given.folds] == [np.flatnonzero(numbers == f).tolist() for f in (0, 1)]


def test_groups_take_precedence(tmp_path, copies):
    groups = [f"g{s % 7}" for s in range(60)]
    corpus, told = written(tmp_path / "data.conll", copies, groups), []
    settings = make_settings({}, {"sigma2": 1.0})
    plan = make_plan(corpus, {}, "options", settings, Division(3, group="c1"), tell=told.append)
    found = [{groups[s] for s in fold.test} for fold in plan.folds]
    assert sum(map(len, found)) == 7 and not told
    assert apart([fold.test for fold in plan.folds], PAIRS)


def test_training_holds_out_near_copies_together(tmp_path, copies):
    corpus = written(tmp_path / "data.conll", copies)
    for wanted, together in (("together", True), ("ignore", False)):
        config = parse_config({"training": {"near_copies": wanted}})
        encoding, dataset = fit_encoding(config, corpus)
        with Workers(1) as workers:
            run = TrainingRun(encoding, dataset, config, workers, TrainOptions())
            wishes = run.hold_out
        splits = make_splits(problem_of(encoding, dataset), seed=0, wishes=wishes, folds=5)
        folds = [np.searchsorted(dataset.offsets, split.held.first) for split in splits.splits]
        assert sorted(np.concatenate(folds).tolist()) == list(range(60))
        assert (not apart(folds, PAIRS)) == together
        assert splits.units == (40 if together else 60)
        calibrated = whole_folds(dataset.offsets, np.arange(60), wishes, 5, [0])[1]
        assert (not apart(calibrated, PAIRS)) == together


def test_a_large_group_is_not_kept_together(copies):
    hashes, offsets = packed([*copies, *[copies[0]] * 9])
    told = []
    found = kept_together(HoldOut(), hashes, offsets, "together", 5, told.append)
    copies_of_first = [0, *range(60, 69)]
    assert found.groups[copies_of_first].tolist() == copies_of_first  # each by itself
    assert (found.groups[40:60] == found.groups[20:40]).all()
    share = len(copies_of_first) * len(copies[0]) / offsets[-1]
    assert 0.1 < share < 0.25
    assert told[0] == (
        f"near copies: 10 sequences in 1 group are too many to be kept together: a group has {100 * share:.0f} % of "
        "the positions, more than 10 %"
    )
    assert "40 of 69" in told[1]
    del told[:]
    two = kept_together(HoldOut(), hashes, offsets, "together", 2, told.append)  # a quarter
    assert len(set(two.groups[copies_of_first].tolist())) == 1 and "50 of 69" in told[0]
    for wishes in (HoldOut(groups=np.arange(69)), HoldOut(folds=np.arange(69) % 3), HoldOut(block=50)):
        assert kept_together(wishes, hashes, offsets, "together") is wishes


@pytest.mark.slow
def test_an_estimator_takes_the_setting(copies):
    X = [[{"word": f"w{v}"} for v in one] for one in copies]
    y = [["ab"[v % 2] for v in one] for one in copies]
    units = [KernelCRF(near_copies=wanted).fit(X, y).report_["held_out"]["units"] for wanted in NEAR_COPIES]
    assert units == [40, 60]


# ------------------------------------------------------------------------------------------ hashes

M = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
    return z ^ (z >> 31)


def of_text(text):
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def of_number(number):
    return mix(struct.unpack("<Q", struct.pack("<d", number))[0] if number is not None else 0x7FF8000000000000)


def of_positions(positions):
    sums = sum(mix((p + t * 0x9E3779B97F4A7C15) & M) for t, p in enumerate(positions, 1))
    return mix((len(positions) + sums) & M)


def test_hashes_are_as_defined(tmp_path):
    rows = [("Köln", "x", "0.5", "A"), ("is", "y", "-0.0", "B"), ("nice", "x", "NA", "A"), ("Köln", "z", "2e3", "B")]
    path = tmp_path / "data.conll"
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n\n" + "\t".join(rows[1]) + "\n")
    config = parse_config({"ignore": ["c1"]})
    encoding, dataset = fit_encoding(config, read_corpus(path))
    positions = []
    for word, _, number, _ in rows:
        value = None if number == "NA" else float(number) + 0.0
        positions.append(mix((of_text(word) * (mix(1) | 1) + of_number(value) * (mix(2) | 1)) & M))
    assert dataset.hashes.dtype == np.uint64 and dataset.hashes.tolist() == [*positions, positions[1]]
    expected = [of_positions(positions), of_positions(positions[1:2])]
    assert sequence_hashes(dataset.hashes, dataset.offsets).tolist() == expected
    # The same text without the column that is not used, and without labels.
    path.write_text("\n".join("\t".join((row[0], row[2])) for row in rows) + "\n")
    again = encoding.encode(read_corpus(path), hashed=True)
    assert sequence_hashes(again.hashes, again.offsets).tolist() == expected[:1]


def test_hashes_of_attributes_do_not_depend_on_their_order():
    def hashes(*items):
        return fit_encoding(parse_config({}), corpus_of([items], ITEMS, [["a", "b"]]))[1].hashes.tolist()

    first = hashes({"w": "the", "n": 2.0}, {"b": 1.0})
    assert first == hashes({"n": 2.0, "w": "the"}, {"b": 1.0})
    expected = sum(mix((of_text(name) + of_number(value)) & M) for name, value in (("w:the", 1.0), ("n", 2.0))) & M
    assert first[0] == mix(expected)


@pytest.mark.slow
def test_results_do_not_depend_on_the_hash_seed_of_python():
    code = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_near_copies as t; import hashlib;"
        "found = t.near_copies(*t.packed(t.edited_copies(5, 80, 30)));"
        "print(hashlib.sha256(found.tobytes()).hexdigest())"
    )
    results = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        results.add(done.stdout)
    assert len(results) == 1
