"""What must hold of training on shards: the model of one file with the same shards, whatever memory there is."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import Spool
from kcrf_core.encoding import fit_to, join_datasets
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.maps import explicit
from kcrf_core.model import digest, load_folder, new_folder, save_shards
from kcrf_core.objective.solvers import Note, Observer
from kcrf_core.system import Workers
from kcrf_core.training import shard_run, train, train_shards

TRAINING = {"sigma2": 1.0, "tolerance": 0.01}


class Notes(Observer):
    def __init__(self):
        self.texts = []

    def tell(self, event):
        if isinstance(event, Note):
            self.texts.append(event.text)


def columns(rng, sequences=90, repeat=False, real=False, scheme=False, labels="BIO"):
    made = []
    for _ in range(sequences):
        rows, before = [], "O"
        for _ in range(rng.integers(1, 7)):
            word = f"w{min(rng.geometric(0.05), 60)}"
            tag = rng.choice(["N", "V", "A"])
            label = rng.choice(list(labels))
            if scheme and label == "I" and before == "O":
                label = "B"
            before = label
            number = f"\t{rng.normal():.2f}" if real else ""
            rows.append(f"{word}\t{tag}{number}\t{label}")
        made.append("\n".join(rows))
    if repeat:
        made = [made[number] for number in rng.integers(0, sequences // 3, sequences)]
    return "\n\n".join(made) + "\n"


def attributes(rng, weights):
    rows = []
    for _ in range(60):
        for _ in range(rng.integers(1, 6)):
            some = rng.choice(30, 3, replace=False)
            tail = (lambda: f":{rng.integers(0, 4)}") if weights else (lambda: "")
            rows.append("\t".join([rng.choice(["X", "Y", "Z"]), *(f"a{one}{tail()}" for one in some)]))
        rows.append("")
    return "\n".join(rows) + "\n"


def prepared(tmp_path, text, config, name="data.conll", shards=5):
    """A folder of shards, and the same data in memory with the same shards."""
    path = tmp_path / name
    path.write_text(text)
    with Spool(tmp_path, layout=config.layout, shards=shards) as spool, Workers(1) as workers:
        spool.read([path], None, config.columns, workers)
        encoding, borders = fit_to(config, spool), spool.borders
        parts = list(encoding.encoded_shards(spool, workers))
    with new_folder(tmp_path / "shards") as place:
        save_shards(place, encoding, config, parts)
    whole = replace(join_datasets(parts), partitions=borders, source=str(path))
    return load_folder(tmp_path / "shards"), encoding, whole


def bytes_of(model, path):
    model.save(path)
    return path.read_bytes()


WORDS = {"window": [-1, 0, 1]}
POLY = {"type": "poly", "degree": 2}
CASES = {
    "linear": (columns, {}, WORDS, {}),
    "observed": (columns, {}, WORDS, {"observed_features": True}),
    "observed of two labels": (columns, {"labels": "BO"}, WORDS, {"observed_features": True}),
    "real": (columns, {"real": True}, WORDS, {}),
    "cosine": (columns, {}, {**WORDS, "terms": [{"kernel": {"type": "linear", "cosine": True}}, {"type": "edge"}]}, {}),
    "repeated": (columns, {"repeat": True}, WORDS, {}),
    "repeated inputs": (columns, {}, {"features": [{"column": "c1", "window": [0]}]}, {}),
    "pairs": (columns, {}, {**WORDS, "terms": [{"kernel": POLY}, {"type": "edge"}]}, {}),
    "pairs seen": (columns, {"repeat": True}, {"terms": [{"kernel": POLY}]}, {"observed_features": True}),
    "pairs cut off": (
        columns,
        {},
        {"terms": [{"kernel": {**POLY, "cosine": True}, "map": {"type": "explicit", "cut_off": 3}}, {"type": "edge"}]},
        {},
    ),
    "numbers": (columns, {"real": True}, {"terms": [{"kernel": "linear"}, {"type": "edge"}]}, {}),
    "attributes": (attributes, {"weights": False}, {}, {}),
    "weighed attributes": (attributes, {"weights": True}, {}, {}),
    "weighed attributes seen": (attributes, {"weights": True}, {}, {"observed_features": True}),
    "edge-x": (columns, {}, {"terms": [{}, {"type": "edge-x", "features": ["c1"]}, {"type": "edge2"}]}, {}),
    "sparse": (columns, {}, WORDS, {"c1": 0.5, "sigma2": 10.0}),
    "scheme": (columns, {"scheme": True}, {}, {"scheme": "iob2"}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_one_file_with_the_same_shards(case, tmp_path, monkeypatch):
    monkeypatch.setattr(explicit, "FEWEST_FEATURES", 10)
    make, how, raw, training = CASES[case]
    rng = np.random.default_rng(7)
    if case in ("dropped", "freed"):
        raw, how = {"features": [{"column": "c0"}]}, {"scheme": True}
        text = columns(rng, **how).replace("\tB\n", "\tB-x\n").replace("\tI\n", "\tI-x\n")
        text = text.replace("\tB-x\n", "\tI-y\n", 3)  # what the scheme forbids
    else:
        text = make(rng, **how)
    config = parse_config({**raw, "training": {**TRAINING, **training}})
    name = "data.crfsuite" if make is attributes else "data.conll"
    folder, encoding, whole = prepared(tmp_path, text, config, name)
    assert folder.data_digest == digest(whole)
    with Workers(2) as workers:
        expected, said = train(encoding, whole, config, workers=workers)
    found = []
    for memory, threads in ((0, 1), (1 << 30, 2)):
        with Workers(threads, memory) as workers:
            model, report = train_shards(folder, config, workers=workers)
        found.append(bytes_of(model, tmp_path / "found.npz"))
        assert report.result.value == said.result.value
    assert found[0] == found[1] == bytes_of(expected, tmp_path / "expected.npz")
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {name, "shards", "found.npz", "expected.npz"}


@pytest.mark.slow
def test_pivots_and_sigma2_are_chosen_on_a_sample_which_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_run, "SAMPLE_POSITIONS", 150)
    terms = [{"kernel": "rbf", "map": {"type": "reduced", "size": 20}}, {"type": "edge"}]
    config = parse_config({"terms": terms, "training": {"tolerance": 0.01}})
    folder, _, _ = prepared(tmp_path, columns(np.random.default_rng(1), 120, real=True), config)
    notes, models = Notes(), []
    for memory in (4096, 1 << 30):
        with Workers(2, memory) as workers:
            model, report = train_shards(folder, config, workers=workers, observer=notes)
        models.append(bytes_of(model, tmp_path / "model.npz"))
    assert models[0] == models[1]
    assert report.outside is None and report.result.gap <= 0.01
    (said,) = {text for text in notes.texts if text.startswith("pivots and sigma2")}
    assert f"of {folder.positions:,} positions" in said
    assert 100 <= int(said.split(" of ")[0].split()[-1]) <= 200
    assert len(model.terms[0].pivots) == 20


def test_a_basis_is_taken(tmp_path):
    from kcrf_core.features import select_bases

    terms = [{"kernel": "rbf", "map": {"type": "reduced", "size": 15}}, {"type": "edge"}]
    config = parse_config({"terms": terms, "training": TRAINING})
    folder, encoding, whole = prepared(tmp_path, columns(np.random.default_rng(2), real=True), config)
    with Workers(1) as workers:
        basis = select_bases(encoding, folder.sample(10_000), config, workers, Observer())
        model, report = train_shards(folder, config, workers=workers, basis=basis)
        expected, said = train(encoding, whole, config, workers=workers, basis=basis)
    assert report.result.value == said.result.value
    np.testing.assert_array_equal(model.terms[0].alpha, expected.terms[0].alpha)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"prune": 0.1}, "pruning needs the scores of all positions"),
        ({}, {"certify": "exact"}, "all pairs of positions"),
        ({"terms": [{"kernel": "rbf", "map": "full"}]}, {}, "'full' has every position"),
        ({"terms": [{"kernel": "rbf", "map": {"select": "gradient"}}]}, {}, "'select: gradient' needs all"),
    ],
)
def test_what_needs_all_positions_at_once_is_refused(tmp_path, change, options, message):
    folder, _, _ = prepared(tmp_path, columns(np.random.default_rng(3), 12), parse_config({}))
    config = parse_config({**change, "training": TRAINING})
    with Workers(1) as workers, pytest.raises(ConfigError, match=message):
        train_shards(folder, config, workers=workers, **options)


def test_a_damaged_shard_is_named_before_training(tmp_path):
    config = parse_config({"training": TRAINING})
    folder, _, _ = prepared(tmp_path, columns(np.random.default_rng(4)), config)
    shard = tmp_path / "shards" / "shard-0004.npz"
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 4
    shard.write_bytes(bytes(data))
    with Workers(1) as workers, pytest.raises(FileFormatError, match=r"shard-0004\.npz: shard 4 of 5 is damaged"):
        train_shards(folder, config, workers=workers)
    assert {path.name for path in tmp_path.iterdir()} == {"data.conll", "shards"}


def test_a_full_disk_is_named_with_its_folder(tmp_path):
    """Scratch files stand beside the shards; the limit on the size of a file is met as a full disk is."""
    resource = pytest.importorskip("resource")
    config = parse_config({"training": TRAINING})
    folder, _, _ = prepared(tmp_path, columns(np.random.default_rng(4)), config)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with Workers(1) as workers, pytest.raises(OSError, match="where scratch files of training go") as caught:
            train_shards(folder, config, workers=workers)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    error = caught.value
    assert (error.errno, error.filename) == (errno.EFBIG, str(tmp_path))
    assert error.strerror.startswith(f"{os.strerror(errno.EFBIG)}, ")
    assert {path.name for path in tmp_path.iterdir()} == {"data.conll", "shards"}


def test_shards_hold_no_more_than_memory_allows(tmp_path, monkeypatch):
    """Parts that do not fit are read again in every pass."""
    from kcrf_core.objective import executors

    held = []

    class Watched(executors.LocalExecutor):
        def ask(self, handles, question, arguments):
            yield from super().ask(handles, question, arguments)
            held.append(len(self.made))

    monkeypatch.setattr(shard_run, "LocalExecutor", Watched)
    config = parse_config({"training": TRAINING})
    folder, _, _ = prepared(tmp_path, columns(np.random.default_rng(5)), config)
    for memory, most in ((0, 0), (1 << 30, 5)):
        held.clear()
        with Workers(1, memory) as workers:
            train_shards(folder, config, workers=workers)
        assert max(held) >= most and (most or max(held) == 0)
