"""Vectors beside the text: read, attached, encoded, and refused where they cannot be meant."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from kcrf_core import Corpus, DataError, KernelCRF, Model, fit_encoding, parse_config, read_corpus, train, with_vectors
from kcrf_core.corpora import open_vectors
from kcrf_core.encoding import export, translation
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.files import write_container
from kcrf_core.model import digest, load_dataset, save_dataset
from kcrf_core.selection.journal import corpus_digest

TEXT = "the\tD\ncat\tN\nsat\tV\n\na\tD\ndog\tN\n\nsat\tV\n"
N = 6


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(TEXT)
    return read_corpus(path)


@pytest.fixture
def numbers(rng):
    return rng.normal(size=(N, 3))


def fitted(corpus, feature, **more):
    return fit_encoding(parse_config({"features": [{"column": "c0"}, feature], **more}), corpus)


# ----------------------------------------------------------------------------- files


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_any_precision_are_mapped(tmp_path, corpus, numbers, dtype, order):
    array = np.array(numbers, dtype=dtype, order=order)
    np.save(tmp_path / "emb.npy", array)
    found = with_vectors(corpus, {"emb": tmp_path / "emb.npy"})
    assert np.array_equal(found.vectors["emb"], array)
    assert not found.vectors["emb"].flags.owndata and not found.vectors["emb"].flags.writeable
    encoding, dataset = fitted(found, {"vectors": "emb", "scale": "none"})
    assert np.array_equal(dataset.real, array.astype(np.float64)) and encoding.vectors == {"emb": 3}


def test_files_of_one_name_follow_one_another(tmp_path, corpus, numbers):
    np.save(tmp_path / "a.npy", numbers[:4].astype(np.float32))
    np.save(tmp_path / "b.npy", numbers[4:])
    found = with_vectors(corpus, {"emb": [tmp_path / "a.npy", tmp_path / "b.npy"]})
    assert np.allclose(found.vectors["emb"], numbers, rtol=1e-6)
    np.save(tmp_path / "b.npy", numbers[4:, :2])
    with pytest.raises(DataError, match=r"b\.npy: vectors 'emb' are 2 wide here, and 3 in .*a\.npy"):
        with_vectors(corpus, {"emb": [tmp_path / "a.npy", tmp_path / "b.npy"]})


@pytest.mark.parametrize("sizes", [[6], [2, 4], [1, 3, 2], [6, 0], [0, 6]])
def test_blocks_get_their_rows(corpus, numbers, sizes):
    """Blocks of two sequences and of one, whose rows may stand in several files."""
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    (vectors,) = open_vectors([("emb", part) for part in parts])
    found = [vectors.take(*rows, corpus.subset(which)) for rows, which in (((0, 5), [0, 1]), ((5, 6), [2]))]
    vectors.check_rows(6, "data")
    assert np.array_equal(np.concatenate(found), numbers) and len(found[1]) == 1


def test_what_cannot_be_mapped_is_named(tmp_path, corpus, numbers):
    path = tmp_path / "emb.npy"

    def refused(message):
        with pytest.raises(DataError, match=rf"^{path}: .*{message}"):
            with_vectors(corpus, {"emb": path})

    np.save(path, numbers[:5])
    refused("5 rows of vectors 'emb', but .*data.conll has 6 positions")
    np.save(path, np.concatenate([numbers, numbers]))
    refused("12 rows of vectors 'emb', but .*data.conll has 6 positions")
    np.save(path, np.zeros((0, 3)))
    refused("0 rows of vectors 'emb', but .*data.conll has 6 positions|cannot be read")
    np.save(path, numbers[:, 0])
    refused(r"its shape is \(6,\)")
    np.save(path, numbers[:, :0])
    refused(r"its shape is \(6, 0\)|cannot be read")
    np.save(path, numbers.astype(np.int64))
    refused("an array of int64, where vectors are float16, float32, float64")
    np.save(path, numbers.astype(object), allow_pickle=True)
    refused("Python objects in dtype")
    np.save(path, np.array([("a", 1.0)], dtype=[("name", "U1"), ("x", "f8")]))
    refused("an array of ")
    path.write_bytes(pickle.dumps(numbers))
    refused("no .npy file")
    with open(path, "wb") as stream:
        np.savez(stream, numbers)
    refused("no .npy file")
    np.save(path, numbers)
    path.write_bytes(path.read_bytes()[:-8])
    refused("cut short")
    path.write_bytes(b"")
    refused("no .npy file")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        with_vectors(corpus, {"emb": path})
    with pytest.raises(ConfigError, match="no name for vectors"):
        with_vectors(corpus, {"a=b": numbers})


def test_hostile_headers_are_refused(tmp_path, corpus, numbers, rng):
    """Bytes that nobody saved: one line of error, or an array that fits, and nothing else."""
    path = tmp_path / "emb.npy"
    np.save(path, numbers)
    good = path.read_bytes()
    headers = [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-6, 3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 99999999999999999999999), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 40, 3), }",
        "{'descr': [('', 'O')], 'fortran_order': False, 'shape': (6, 3), }",
        "{'descr': '<f8', 'fortran_order': 1, 'shape': 6, }",
        "(" * 3000,
        "__import__('os').system('true')",
    ]
    for header in headers:
        raw = header.encode().ljust(117) + b"\n"
        path.write_bytes(good[:6] + b"\x01\x00" + len(raw).to_bytes(2, "little") + raw + good[-144:])
        with pytest.raises(DataError, match=r"emb\.npy: "):
            with_vectors(corpus, {"emb": path})
    for _ in range(300):
        raw = bytearray(good)
        for place in rng.integers(0, 128, 3):
            raw[place] = rng.integers(0, 256)
        path.write_bytes(raw)
        try:
            with_vectors(corpus, {"emb": path})
        except DataError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("f4", np.nan, "a NaN: .*zeros where there is no vector"),
        ("f8", np.inf, "an infinite number"),
        ("f2", -np.inf, "an infinite number: float16 holds no number above 65504: save the vectors as float32"),
    ],
)
def test_rows_that_are_not_finite_are_named(tmp_path, corpus, numbers, monkeypatch, dtype, value, message):
    monkeypatch.setattr("kcrf_core.corpora.embeddings.BYTES_AT_ONCE", 16)  # several looks
    array = numbers.astype(dtype)
    array[4, 1] = value
    np.save(tmp_path / "emb.npy", array)
    with pytest.raises(DataError, match=rf"emb\.npy: row 4 \(from 0; .*data\.conll:6\) has {message}"):
        with_vectors(corpus, {"emb": tmp_path / "emb.npy"})


# ----------------------------------------------------------------------------- features


@pytest.mark.parametrize("scale", ["auto", "standard", "none", "unit"])
def test_vectors_are_what_columns_of_numbers_are(sample_data, scale):
    """The same numbers, bit for bit, whether they stand in the text or beside it."""
    corpus = read_corpus(sample_data / "pitch_accent.conll")
    table = np.array([list(map(float, corpus.columns[c])) for c in (2, 3, 4)]).T
    shape = {"scale": scale, "window": [-1, 0, 2]}
    of_columns = fitted(corpus, {"columns": ["c2", "c3", "c4"], "type": "real", **shape})[1]
    encoding, of_vectors = fitted(with_vectors(corpus, {"emb": table}), {"vectors": "emb", **shape})
    assert np.array_equal(of_columns.real, of_vectors.real) and of_vectors.real.shape[1] == 9
    assert digest(of_columns) == digest(of_vectors)
    if scale == "unit":
        assert np.allclose(np.linalg.norm(of_vectors.real[:, 3:6], axis=1), 1, rtol=1e-12)
    assert encoding.describe(of_vectors, 0)[-2].startswith("emb[0]=")


def test_lengths_of_rows_do_not_overflow(corpus):
    rows = np.array([[3e300, 4e300], [3e-300, 4e-300], [0, 0], [1, 0], [0, -2], [5, 12]])
    dataset = fitted(with_vectors(corpus, {"emb": rows}), {"vectors": "emb", "scale": "unit"})[1]
    expected = [[0.6, 0.8], [0.6, 0.8], [0, 0], [1, 0], [0, -1], [5 / 13, 12 / 13]]
    assert np.allclose(dataset.real, expected, rtol=1e-12)
    with pytest.raises(DataError, match=r"data\.conll:1: a value of 'emb\.0' is too large"):
        fitted(with_vectors(corpus, {"emb": rows}), {"vectors": "emb", "scale": "none"})


def test_every_vector_is_a_feature_unless_features_are_named(corpus, numbers):
    both = with_vectors(corpus, {"emb": numbers, "other": numbers[:, :1]})
    encoding, dataset = fit_encoding(parse_config({}), both)
    assert encoding.names == ["c0", "emb", "other"] and dataset.real.shape == (N, 4)
    assert encoding.vectors == {"emb": 3, "other": 1}
    names = encoding.feature_names(encoding.names)
    assert [names[len(names) - back] for back in (4, 1)] == ["emb.0[0]", "other.0[0]"]
    with pytest.raises(ConfigError, match="no feature is made of the vectors 'other'"):
        fitted(both, {"vectors": "emb"})
    with pytest.raises(ConfigError, match="vectors 'emb', which are not given; there are: other"):
        fitted(with_vectors(corpus, {"other": numbers}), {"vectors": "emb"})
    with pytest.raises(ConfigError, match="vectors 'c0' have the name of a column"):
        fit_encoding(parse_config({}), with_vectors(corpus, {"c0": numbers}))


def test_a_text_of_labels_alone_is_enough(tmp_path, rng, workers):
    (tmp_path / "labels.conll").write_text("a\nb\na\n\nb\nb\n" * 30)
    corpus = read_corpus(tmp_path / "labels.conll")
    rows = rng.normal(size=(corpus.positions, 2)) + 3 * np.array([[label == "a"] for label in corpus.columns[-1]])
    config = parse_config({"training": {"sigma2": 1.0}})
    encoding, dataset = fit_encoding(config, with_vectors(corpus, {"emb": rows}))
    model, _ = train(encoding, dataset, config, workers=workers)
    tagged = model.tag_corpus(with_vectors(corpus, {"emb": rows}), workers)
    assert np.mean([a == b for a, b in zip(tagged, corpus.columns[-1], strict=True)]) > 0.9


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ({"vectors": "emb", "column": "c0"}, "give one of"),
        ({"vectors": "emb", "type": "categorical"}, "vectors are numbers"),
        ({"vectors": "emb", "transform": "lower"}, "takes no 'transform'"),
        ({"vectors": "emb", "min_count": 2}, "takes no 'min_count'"),
        ({"vectors": "emb", "scale": "cosine"}, "must be one of auto, standard, sequence, group, unit, none"),
        ({"column": "c0", "transform": "length", "scale": "unit"}, "'scale: unit' is for vectors"),
    ],
)
def test_features_that_cannot_be_meant(feature, message):
    with pytest.raises(ConfigError, match=message):
        parse_config({"features": [feature]})


def test_configurations_are_written_as_they_are_read():
    raw = {"features": [{"vectors": "emb", "scale": "unit", "window": [-1, 0], "name": "x"}]}
    config = parse_config(raw)
    assert config.features[0].vectors == "emb" and parse_config(config.to_dict()) == config


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_models_with_vectors_are_saved_and_know_what_they_need(tmp_path, corpus, numbers, workers, kernel):
    config = parse_config(
        {
            "features": [{"column": "c0"}, {"vectors": "emb", "window": [0, 1]}],
            "terms": [{"kernel": kernel}, {"type": "edge"}],
            "training": {"sigma2": 1.0},
        }
    )
    training = with_vectors(corpus, {"emb": numbers})
    encoding, dataset = fit_encoding(config, training)
    model, _ = train(encoding, dataset, config, workers=workers)
    model.save(tmp_path / "model.npz")
    again = Model.load(tmp_path / "model.npz")
    assert again.encoding.vectors == {"emb": 3} and again.encoding.same_as(encoding)
    assert list(again.tag_corpus(training)) == list(model.tag_corpus(training))
    with pytest.raises(DataError, match="trained with vectors 'emb', 3 numbers for each position, and none are given"):
        again.tag_corpus(corpus)
    with pytest.raises(DataError, match="'emb' have 2 numbers for each position, and the model was trained with 3"):
        again.tag_corpus(with_vectors(corpus, {"emb": numbers[:, :2]}))
    with pytest.raises(DataError, match="trained only with 'emb', and has no use for vectors 'more'"):
        again.tag_corpus(with_vectors(corpus, {"emb": numbers, "more": numbers}))
    plain = fit_encoding(parse_config({}), corpus)[0]
    with pytest.raises(DataError, match="trained without vectors, and has no use for vectors 'emb'"):
        plain.encode(training)


def test_files_whose_widths_do_not_fit_are_refused(tmp_path, corpus, numbers):
    """One feature of two with another width, or a width that is none: edited files, with checksums that fit."""
    config = parse_config({"features": [{"vectors": "emb"}, {"vectors": "emb", "name": "again", "window": [1]}]})
    encoding, dataset = fit_encoding(config, with_vectors(corpus, {"emb": numbers}))
    save_dataset(tmp_path / "data.npz", encoding, dataset, config)
    assert load_dataset(tmp_path / "data.npz").encoding.vectors == {"emb": 3}
    header, arrays = encoding.pack()
    for width, stored in ((2, 2), (0, 0), (3, 4), ("3", 3), (None, 3)):
        header["encoding"]["features"][1]["width"] = width
        for name in ("mean", "scale"):
            arrays[f"feature1.{name}"] = np.ones(stored)
        write_container(tmp_path / "data.npz", "dataset", header, arrays)
        with pytest.raises(FileFormatError, match=r"feature1|another width"):
            load_dataset(tmp_path / "data.npz")


def test_datasets_hold_vectors_and_digests_tell_of_them(tmp_path, corpus, numbers):
    config = parse_config({})
    training = with_vectors(corpus, {"emb": numbers})
    encoding, dataset = fit_encoding(config, training)
    save_dataset(tmp_path / "data.npz", encoding, dataset, config)
    stored = load_dataset(tmp_path / "data.npz")
    assert np.array_equal(stored.dataset.real, dataset.real) and stored.encoding.vectors == {"emb": 3}
    moved = numbers.copy()
    moved[3, 2] += 1
    other = with_vectors(corpus, {"emb": moved})
    assert digest(fit_encoding(config, other)[1]) != digest(dataset)
    assert corpus_digest(other) != corpus_digest(training) != corpus_digest(corpus)
    assert corpus_digest(with_vectors(corpus, {"emb": numbers.copy()})) == corpus_digest(training)


def test_parts_of_a_corpus_keep_their_rows(corpus, numbers):
    part = with_vectors(corpus, {"emb": numbers}).subset([2, 0])
    assert np.array_equal(part.vectors["emb"], numbers[[5, 0, 1, 2]])


def test_exports_refuse_vectors_by_name(corpus, numbers):
    encoding, dataset = fit_encoding(parse_config({}), with_vectors(corpus, {"emb": numbers}))
    with pytest.raises(ConfigError, match="vectors 'emb' cannot be exported as text"):
        list(export(encoding, dataset, None))


def test_only_vectors_of_the_same_meaning_are_translated(corpus, numbers):
    def encoding(rows, scale):
        return fitted(with_vectors(corpus, {"emb": rows}), {"vectors": "emb", "scale": scale})[0]

    first = encoding(numbers, "standard")
    for other, columns in (
        (encoding(3 * numbers + 1, "standard"), 3),
        (encoding(numbers, "none"), 3),
        (encoding(numbers, "unit"), 0),
        (encoding(numbers[:, :2], "standard"), 0),
    ):
        assert len(translation(first, ["emb"], other, ["emb"]).real) == columns


# ----------------------------------------------------------------------------- items


def items(numbers):
    rows = iter(numbers)
    return [[{"word": line.split("\t")[0], "emb": next(rows)} for line in text.split("\n")] for text in SEQUENCES]


SEQUENCES = TEXT.strip().split("\n\n")
LABELS = [[line.split("\t")[1] for line in text.split("\n")] for text in SEQUENCES]


def test_items_have_vectors(tmp_path, numbers):
    X = items(numbers)
    crf = KernelCRF(sigma2=1, window="-1..0", scale="none").fit(X, LABELS)
    assert crf.model_.encoding.vectors == {"emb": 3} and len(crf.predict(X)[0]) == 3
    assert crf.attributes_[-6:] == [f"emb.{r}[{w}]" for w in (-1, 0) for r in range(3)]
    crf.save(tmp_path / "model.npz")
    again = KernelCRF.load(tmp_path / "model.npz")
    [feature] = [feature for feature in again.config["features"] if feature.get("type") == "real"]
    assert (feature["scale"], list(feature["window"])) == ("none", [-1, 0])
    for found, expected in zip(again.predict_proba(X), crf.predict_proba(X), strict=True):
        assert np.array_equal(found, expected)
    assert again.predict([]) == [] and again.predict([[]]) == [[]]
    alone = KernelCRF(sigma2=1, kernel="rbf").fit([[{"emb": i["emb"]} for i in x] for x in X], LABELS)
    arrays = KernelCRF(sigma2=1, kernel="rbf").fit([np.array([i["emb"] for i in x]) for x in X], LABELS)
    for found, expected in zip(
        alone.predict_proba([[{"emb": numbers[0]}]]), arrays.predict_proba([numbers[:1]]), strict=True
    ):
        assert np.allclose(found, expected, rtol=1e-6)


def test_a_list_of_numbers_is_a_vector(numbers):
    X, y = items(numbers), LABELS
    lists = [[{**item, "emb": item["emb"].tolist()} for item in sequence] for sequence in X]
    tuples = [[{**item, "emb": tuple(item["emb"].tolist())} for item in sequence] for sequence in X]
    found = KernelCRF(sigma2=1).fit(X, y)
    for same in (lists, tuples):
        np.testing.assert_allclose(
            np.concatenate(found.predict_proba(same)), np.concatenate(found.predict_proba(X)), rtol=1e-12
        )
        assert KernelCRF(sigma2=1).fit(same, y).certificate_ == found.certificate_
    with pytest.raises(ValueError, match=r"X\[0\]\[0\]: the array 'emb' of <U32 has the shape"):
        found.predict([[{**X[0][0], "emb": [0.5, "x", 1.0]}]])


def test_items_without_their_vectors_are_named(numbers):
    X = items(numbers)
    crf = KernelCRF(sigma2=1).fit(X, LABELS)
    with pytest.raises(ValueError, match="trained with vectors 'emb', 3 numbers"):
        crf.predict([[{"word": "cat"}]])
    with pytest.raises(ValueError, match="'emb' have 2 numbers for each position, and the model was trained with 3"):
        crf.predict([[{"emb": numbers[0, :2]}]])
    with pytest.raises(ValueError, match=r"X\[1\]\[0\]: it has no vector 'emb'"):
        crf.predict([[{"emb": numbers[0]}], [["cat"]]])
    with pytest.raises(ValueError, match=r"X\[0\]\[2\]: it has a vector 'emb', which those before it have not"):
        crf.predict([[{"a": 1}, {"a": 1}, {"emb": numbers[0]}]])
    with pytest.raises(ValueError, match=r"X\[2\]\[0\]: the vector 'emb' has 2 numbers, and 3 at X\[1\]\[0\]"):
        crf.predict([[], [{"emb": numbers[0]}], [{"emb": numbers[0, :2]}]])
    with pytest.raises(ValueError, match=r"X\[0\]\[0\]: the vector 'emb' contains NaN"):
        crf.predict([[{"emb": np.array([0, np.nan, 1])}]])
    with pytest.raises(ValueError, match=r"the shape \(1, 3\)"):
        crf.predict([[{"emb": numbers[:1]}]])
    with pytest.raises(ValueError, match="has no use for vectors 'emb'"):
        KernelCRF(sigma2=1).fit([[{"word": "a"}, {"word": "b"}]], [["x", "y"]]).predict([[{"emb": numbers[0]}]])


# ----------------------------------------------------------------------------- columns of numbers


def columns_of(names, feature, rows=4):
    corpus = Corpus(
        "data",
        (*([["1.5"] * rows] * (len(names) - 1)), ["x", "y"] * (rows // 2)),
        np.array([0, rows]),
        np.arange(rows),
    )
    config = parse_config({"columns": names, "features": [feature]})
    return fit_encoding(config, corpus)[0].features[0]


def test_long_lists_in_messages_are_cut():
    names = [*(f"v{number}" for number in range(300)), "label"]
    for feature in ({"column": "u"}, {"columns": ["v0", "u"], "type": "real"}):
        with pytest.raises(ConfigError, match=r"\(columns: v0, v1, .*, v6, \.\.\., v299 \(300 in all\)\)$"):
            columns_of(names, feature)
