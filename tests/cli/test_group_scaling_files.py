"""`scale: group` in commands: files are read twice, streams are refused or labelled with --lag."""

from __future__ import annotations

import numpy as np
import pytest

CONFIG = """
columns: [subject, x, label]
features:
  - {column: x, scale: group, group: subject, window: -1..1}
terms: [{features: [x], kernel: linear}, {type: edge}]
training: {sigma2: 1}
"""


def recordings(rng, sequences, subjects):
    """Sequences of subjects in turn, whose levels differ by far more than labels do."""
    out = []
    for s in range(sequences):
        labels = np.repeat(rng.integers(0, 2, 3), 4)
        values = labels + 0.3 * rng.normal(size=12) + 50 * (s % subjects)
        out.append("".join(f"s{s % subjects}\t{x:.4f}\t{'ab'[y]}\n" for x, y in zip(values, labels, strict=True)))
    return "\n".join(out)


@pytest.fixture
def files(tmp_path, rng, kcrf):
    """A model, and data with other subjects."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "train.conll").write_text(recordings(rng, 30, 5))
    (tmp_path / "test.conll").write_text(recordings(rng, 40, 7))
    done = kcrf("train", tmp_path / "train.conll", "-c", tmp_path / "config.yaml", "-o", tmp_path / "m.npz", "-q")
    assert done.code == 0, done.err
    return tmp_path


def test_labels_do_not_depend_on_blocks_and_threads(kcrf, files, monkeypatch):
    whole = kcrf("tag", "-m", files / "m.npz", files / "test.conll", "--marginals", "all", "-q")
    assert whole.code == 0
    lines = [line.split("\t") for line in whole.text.splitlines() if line]
    assert np.mean([cells[2] == cells[-1] for cells in lines]) > 0.9
    for size, threads in ((100, 1), (700, 2)):
        monkeypatch.setattr("kcrf_core.corpora.lines.READ_SIZE", size)
        again = kcrf(
            "tag", "-m", files / "m.npz", files / "test.conll", "--marginals", "all", "-q", "--threads", threads
        )
        assert again.out == whole.out


def test_a_stream_is_refused_unless_labels_go_by_what_has_been_read(kcrf, files):
    text = (files / "test.conll").read_bytes()
    done = kcrf("tag", "-m", files / "m.npz", "-q", stdin=text)
    assert done.code == 2 and "give a file, which is read twice (tag --lag labels a stream" in done.err
    online = kcrf("tag", "-m", files / "m.npz", "--lag", "1", "-q", stdin=text)
    assert online.code == 0 and len(online.text.splitlines()) == len(text.splitlines())


def test_other_commands(kcrf, files):
    model, data = files / "m.npz", files / "test.conll"
    scored = kcrf("evaluate", "-m", model, data, "--json")
    assert scored.code == 0 and '"accuracy": 0.9' in scored.text
    assert kcrf("crossval", files / "train.conll", "-c", files / "config.yaml", "--group", "subject", "-q").code == 0
    (files / "pool.conll").write_text("".join(f"s{n % 3}\t{n * n % 7}\t?\n\n" for n in range(30)))
    assert "feature x: real, 1 column, window -1..1, scaled by subject\n" in kcrf("inspect", model).text
    chosen = kcrf("next", files / "pool.conll", "-m", model, "-n", "2", "-q")
    assert chosen.code == 0 and len(chosen.text.split()) == 6
    refused = kcrf("export", model, "--to", "runtime", "-o", files / "m.kcrf", "-q")
    assert refused.code != 0 and "feature 'x' is made of numbers by 'scale: group'" in refused.err
    shards = (
        "featurize",
        files / "train.conll",
        "-c",
        files / "config.yaml",
        "-o",
        f"{files}/shards/",
        "--shards",
        "2",
    )
    done = kcrf(*shards)
    assert done.code == 2 and "feature 'x' has 'scale: group', and --shards divides groups" in done.err
    (files / "lacking.conll").write_text("1.5\ta\n")
    assert kcrf("tag", "-m", model, files / "lacking.conll").code == 3
