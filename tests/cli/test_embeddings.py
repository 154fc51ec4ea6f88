"""--embeddings: words that training never saw, folds, shards and mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models import library_labels

from kcrf_core import KernelCRF, Model, fit_encoding, parse_config, read_corpus
from kcrf_core.encoding import translation, with_defaults
from kcrf_core.selection import Division, cross_validation, make_plan, make_settings, tuning
from kcrf_core.selection.cross_validation import run_plan


@pytest.fixture
def task(tmp_path):
    """Words of two kinds, which only the table tells apart; those of the test part are not in training."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 80)
    lines = [f"w{'ab'[n % 2]}{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(80)]
    rows = rng.normal(size=(80, 4)) / 4
    rows[:, 1] += np.where(kinds, 1.0, -1.0)
    table = "".join(f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(lines, rows, strict=True))
    (tmp_path / "table.txt").write_text(table)
    for name, first in (("train", 0), ("test", 40)):
        numbers = rng.integers(first, first + 40, (30, 3))
        text = "\n\n".join("\n".join(f"{lines[n].capitalize()} {'AB'[kinds[n]]}" for n in row) for row in numbers)
        (tmp_path / f"{name}.conll").write_text(text + "\n")
    return tmp_path


def trained(kcrf, task, *options, name="model.npz"):
    table = ("--embeddings", task / "table.txt")
    done = kcrf("train", task / "train.conll", *table, "--sigma2", 10, "-o", task / name, *options)
    assert done.code == 0, done.err
    return done


def accuracy(kcrf, task, *options, name="model.npz"):
    done = kcrf("evaluate", "-m", task / name, task / "test.conll", "--json", *options)
    assert done.code == 0, done.err
    import json

    return json.loads(done.out)["accuracy"]


def test_models_label_words_that_training_never_saw(kcrf, task):
    done = trained(kcrf, task)
    assert "embeddings of table.txt: 80 words, 4 numbers each; 100.0% of positions have a vector" in done.err
    trained(kcrf, task, "--threads", 1, name="again.npz")
    assert (task / "model.npz").read_bytes() == (task / "again.npz").read_bytes()
    (task / "table.txt").rename(task / "moved.txt")
    assert accuracy(kcrf, task) > 0.95
    shown = kcrf("inspect", task / "model.npz", "--top", 0).text
    assert "feature c0.embeddings: real, 5 columns, window -1..1; embeddings of table.txt, 80 words stored" in shown
    assert "term embeddings: rbf" in shown  # these words have no affixes and no shapes


def test_embeddings_in_linear_terms_are_exported_and_others_named(kcrf, task):
    refused, only = trained(kcrf, task), "the model labels in Python only, without export to the runtime"
    assert f"embeddings have a kernel in term 'embeddings', not a linear term: {only}" in refused.err
    done = kcrf("export", task / "model.npz", "-o", task / "model.kcrf")
    assert done.code == 2
    assert "has pivots of embeddings" in done.err and "use a linear term of them" in done.err
    (task / "linear.yaml").write_text(
        "features: [{column: c0}, {column: c0, lookup: embeddings, window: -1..1}]\n"
        "terms: [{name: word, features: [c0]}, {name: near, features: [c0.embeddings]}, {type: edge}]\n"
    )
    done = trained(kcrf, task, "-c", task / "linear.yaml", name="linear.npz")
    assert only not in done.err
    to = ("-o", task / "linear.kcrf", "--quantize", "none")
    assert kcrf("export", task / "linear.npz", *to).code == 0
    model, corpus = Model.load(task / "linear.npz"), read_corpus(task / "test.conll")
    image = (task / "linear.kcrf").read_bytes()
    labels = model.tag(model.encoding.encode(corpus))
    np.testing.assert_array_equal(library_labels(image, model.encoding, corpus), labels)


def test_the_default_kernel_looks_at_vectors_and_spelling(sample_data):
    table = str(sample_data / "pitch_accent.vec")
    corpus = read_corpus(sample_data / "pitch_accent.conll")
    (term,) = (
        term for term in with_defaults({"embeddings": table}, corpus).raw["terms"] if term["name"] == "embeddings"
    )
    assert term["features"] == ["c0.embeddings", "c0.prefix1", "c0.suffix2", "c0.shape"] and term["window"] == [0]
    parts = [(part["type"], len(part["features"])) for part in term["kernel"]["parts"]]
    assert term["kernel"]["type"] == "product" and parts == [("rbf", 1), ("poly", 3)]


def test_configurations_shards_and_datasets_give_the_same_model(kcrf, task):
    trained(kcrf, task)
    table, out = ("--embeddings", task / "table.txt"), task / "other.npz"
    dumped = kcrf("train", task / "train.conll", *table, "--sigma2", 10, "--dump-config")
    (task / "dumped.yaml").write_bytes(dumped.out)
    assert kcrf("train", task / "train.conll", "-c", task / "dumped.yaml", "-o", out).code == 0
    assert out.read_bytes() == (task / "model.npz").read_bytes()
    labels = kcrf("tag", "-m", out, task / "test.conll").out
    for place in ("data.npz", "shards"):
        more = ("--shards", 3) if place == "shards" else ()
        assert kcrf("featurize", task / "train.conll", *table, "-o", task / place, *more).code == 0
        assert kcrf("train", task / place, "--sigma2", 10, "-o", out).code == 0
        assert kcrf("tag", "-m", out, task / "test.conll").out == labels
    done = kcrf("featurize", task / "train.conll", *table, "--show", 1)
    assert "c0.embeddings[0]=" in done.text and "... (5)" in done.text


def test_other_columns_kernels_and_terms(kcrf, task):
    shifted = task / "shifted.conll"
    lines = (task / "train.conll").read_text().splitlines()
    shifted.write_text("".join(f"1 {line}\n" if line else "\n" for line in lines))
    run = ("train", shifted, "--embeddings", task / "table.txt", "--sigma2", 10)
    found = kcrf(*run, "--lookup-column", "c1", "--dump-config").text
    assert "name: c1.embeddings" in found
    done = kcrf(*run, "--lookup-column", "c0", "-o", task / "x.npz")
    assert done.code == 3 and "no value of 'c0' is a word of table.txt" in done.err
    linear = ("--set", "terms.embeddings.kernel=linear", "--set", "terms.embeddings.map=explicit")
    for options, kernel, other in ((linear, "linear", "linear"), (["--c1", 0.1], "linear", "linear"), (
        ["--kernel", "poly", "--plain"], "rbf", "poly")):  # fmt: skip
        trained(kcrf, task, *options)
        shown = kcrf("inspect", task / "model.npz").text
        assert f"term node: {other}" in shown and f"term embeddings: {kernel}" in shown
        assert accuracy(kcrf, task) > 0.9


@pytest.mark.parametrize(
    ("yaml", "code", "message"),
    [
        ("features: [{column: c0, lookup: embeddings}]", 2, "and none is given"),
        ("embeddings: TABLE\nfeatures: [{column: c0}]", 2, "no feature looks anything up in the embeddings"),
        ("embeddings: TABLE\nfeatures: [{column: c0, lookup: city}]", 2, "in 'city', and there is 'embeddings'"),
        ("features: [{vectors: a, lookup: embeddings}]", 2, "'lookup' goes with a 'column'"),
        ("features: [{column: c0, lookup: embeddings, transform: lower}]", 2, "a lookup takes no 'transform'"),
        ("embeddings: TABLE\nlookup_column: c7", 2, "there is no column 'c7'"),
        ("embeddings: TABLE.gone", 1, "No such file"),
    ],
)
def test_mistakes_in_configurations(yaml, code, message, kcrf, task):
    (task / "wrong.yaml").write_text(yaml.replace("TABLE", str(task / "table.txt")))
    done = kcrf("train", task / "train.conll", "-c", task / "wrong.yaml", "-o", task / "x.npz")
    assert done.code == code and message in done.err


def test_a_damaged_table_is_named_with_its_line(kcrf, task):
    (task / "table.txt").write_text("a 1 2\nb 1 nan\n")
    done = kcrf("train", task / "train.conll", "--embeddings", task / "table.txt", "-o", task / "x.npz")
    assert done.code == 3 and "table.txt:2: 'nan' is not a finite number" in done.err


def test_folds_read_the_table_once(task, monkeypatch):
    corpus = read_corpus(task / "train.conll")
    path = str(task / "table.txt")
    settings = make_settings({}, {"embeddings": path, "sigma2": 10.0})
    plan = make_plan(corpus, {}, "options", settings, Division(2))
    for module in (cross_validation, tuning):
        monkeypatch.setattr(module, "with_tables", None)
    monkeypatch.setattr("kcrf_core.encoding.lookup_feature.load_word_vectors", None)
    found = run_plan(plan, threads=1)
    assert min(result["accuracy"] for result in found.values()) > 0.7


def test_tune_tries_kernels_on_embeddings(task):
    corpus = read_corpus(task / "train.conll")
    space = tuning.make_space(corpus, {"embeddings": str(task / "table.txt")}, "options")
    kernels = set()
    for candidate in space.seeds:
        config = parse_config(space.raw(candidate))
        encoding, _ = fit_encoding(config, corpus)
        terms = [term for term in config.mapped_terms if term.features == ("c0.embeddings",)]
        kernels |= {term.kernel.type for term in terms}
        assert "embeddings" in encoding.tables
    assert {"linear", "rbf"} <= kernels


@pytest.mark.slow
def test_a_tuned_model_has_the_whole_table(kcrf, task):
    data, table = task / "train.conll", ("--embeddings", task / "table.txt")
    more = ("--effort", "small", "--dev", task / "test.conll", "-q")
    done = kcrf("tune", data, *table, *more, "-o", task / "best.yaml", "-m", task / "tuned.npz")
    assert done.code == 0, done.err
    assert len(Model.load(task / "tuned.npz").encoding.tables["embeddings"].words) == 80
    assert accuracy(kcrf, task, name="tuned.npz") > 0.95


def test_the_estimator_looks_up_words_of_dictionaries(task):
    def read(name):
        sequences = (task / f"{name}.conll").read_text().strip().split("\n\n")
        rows = [[line.split() for line in one.split("\n")] for one in sequences]
        return [[{"form": word} for word, _ in row] for row in rows], [[label for _, label in row] for row in rows]

    (X, y), (X_test, y_test) = read("train"), read("test")
    settings = {"sigma2": 10, "embeddings": task / "table.txt", "lookup_column": "form"}
    crf = KernelCRF(**settings).fit(X, y)
    assert crf.score(X_test, y_test) > 0.9
    crf.save(task / "saved.npz")
    assert KernelCRF.load(task / "saved.npz").predict(X_test) == crf.predict(X_test)
    with pytest.raises(ValueError, match="no attribute is 'word="):
        KernelCRF(embeddings=task / "table.txt").fit(X, y)
    with pytest.raises(ValueError, match="arrays have none"):
        KernelCRF(embeddings=task / "table.txt").fit([[[1.0]]], [["a"]])


def test_attribute_files_name_the_attribute(kcrf, task):
    for name in ("train", "test"):
        lines = (task / f"{name}.conll").read_text().split("\n")
        rows = (f"{line.split()[1]}\tw={line.split()[0]}" if line else "" for line in lines)
        (task / f"{name}.crfsuite").write_text("\n".join(rows))
    run = ("train", task / "train.crfsuite", "--embeddings", task / "table.txt", "--sigma2", 10, "-o", task / "a.npz")
    done = kcrf(*run)
    assert done.code == 2 and "--lookup-column" in done.err
    one_term = "features: [{type: attributes}, {column: w, lookup: embeddings}]\nterms: [{}, {type: edge}]\n"
    (task / "one.yaml").write_text(one_term)
    for options in (["--lookup-column", "w"], ["-c", task / "one.yaml"]):
        assert kcrf(*run, *options).code == 0
        tagged = kcrf("tag", "-m", task / "a.npz", task / "test.crfsuite").text.split("\n")
        labels = [(line.split("\t")[0], line.split("\t")[-1]) for line in tagged if line]
        assert sum(gold == label for gold, label in labels) > 0.9 * len(labels)


def test_weights_of_another_table_are_not_taken_over(task):
    corpus = read_corpus(task / "train.conll")

    def fitted(**more):
        feature = {"column": "c0", "name": "c0", **({"lookup": "embeddings"} if more else {"type": "categorical"})}
        return fit_encoding(parse_config({"features": [feature], **more}), corpus)[0]

    (task / "other.txt").write_text((task / "table.txt").read_text().replace("1", "2"))
    table, other, words = (
        fitted(embeddings=str(task / "table.txt")),
        fitted(embeddings=str(task / "other.txt")),
        fitted(),
    )
    for source, target, known in ((table, table, 15), (other, table, 0), (words, table, 0)):
        columns, _ = translation(source, ["c0"], target, ["c0"]).explicit_columns()
        assert (columns >= 0).sum() == known
