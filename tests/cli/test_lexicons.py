"""--lexicon and --clusters: names that training never saw, models without the files, streams, folds and mistakes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kcrf_core import KernelCRF, Model, fit_encoding, parse_config, read_corpus
from kcrf_core.selection import Division, make_plan, make_settings, tuning
from kcrf_core.selection.cross_validation import run_plan
from kcrf_core.selection.journal import corpus_digest

NAMES = [f"{'BDFGKLMNPR'[n // 10]}{'aeiou'[n % 5]}{'lnrst'[n % 3]}o" for n in range(60)]
CITIES = [*NAMES[:20], *(f"San {name}" for name in NAMES[20:28]), *(f"{name} del Mar" for name in NAMES[28:36])]
PEOPLE = NAMES[36:]


def sentences(rng, cities, people):
    """Return sentences of names, whose labels nothing but a lexicon tells apart."""
    out = []
    for _ in range(40):
        city, person = (list(names[n].split()) for names in (cities, people) for n in [rng.integers(len(names))])
        rows = [(word, ("B" if t == 0 else "I") + "-LOC") for t, word in enumerate(city)]
        rows, other = [("see", "O"), *rows], [("see", "O"), *((word, "O") for word in person)]
        out.append([*rows, *other] if rng.integers(2) else [*other, *rows])
    return out


@pytest.fixture
def task(tmp_path):
    rng = np.random.default_rng(0)
    for name, part in (("train", slice(None, None, 2)), ("test", slice(1, None, 2))):
        rows = sentences(rng, CITIES[part], PEOPLE[part])
        text = "\n".join("".join(f"{word} {label}\n" for word, label in one) for one in rows)
        (tmp_path / f"{name}.conll").write_text(text)
        lines = ("".join(f"{label}\tw={word}\tbias\n" for word, label in one) for one in rows)
        (tmp_path / f"{name}.crfsuite").write_text("\n".join(lines))
    (tmp_path / "cities.txt").write_text("# of the world\n" + "\n".join(CITIES).upper() + "\n")
    paths = [*((city.split()[0], "110101") for city in CITIES), *((person, "0110") for person in PEOPLE), ("see", "10")]
    (tmp_path / "paths.txt").write_text("".join(f"{path}\t{word}\t1\n" for word, path in dict(paths).items()))
    return tmp_path


def trained(kcrf, task, *options, name="model.npz", data="train.conll"):
    done = kcrf("train", task / data, "--sigma2", 1, "-o", task / name, *options)
    assert done.code == 0, done.err
    return done


def lexicon(task):
    return "--lexicon", f"city={task / 'cities.txt'}"


def f1(kcrf, task, name="model.npz", data="test.conll"):
    done = kcrf("evaluate", "-m", task / name, task / data, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)["spans"]["f1"]


def test_models_find_names_that_training_never_saw(kcrf, task):
    done = trained(kcrf, task, *lexicon(task))
    assert "lexicon city of cities.txt: 36 entries; " in done.err and "of positions are within one" in done.err
    trained(kcrf, task, *lexicon(task), "--threads", 1, name="again.npz")
    assert (task / "model.npz").read_bytes() == (task / "again.npz").read_bytes()
    trained(kcrf, task, *lexicon(task), "--lexicon-case", "keep", name="keep.npz")
    trained(kcrf, task, name="without.npz")
    (task / "cities.txt").unlink()
    assert f1(kcrf, task) > 0.98
    assert max(f1(kcrf, task, "without.npz"), f1(kcrf, task, "keep.npz")) < 0.9
    shown = kcrf("inspect", task / "model.npz").text
    expected = "categorical, 3 values, window -1..1; lexicon of cities.txt, 36 entries of up to 3 words, case: fold"
    assert f"feature c0.city: {expected}" in shown and "c0.city[0]=B-city" in shown
    shown = kcrf("inspect", task / "model.npz", "--importance", task / "test.conll", "--top", 3).text
    assert "c0      " in shown
    shown = kcrf("tag", "-m", task / "model.npz", task / "test.conll", "--explain", 3).text
    assert "c0.city[0]=B-city" in shown and "c0.city[0]=none" in shown


def test_clusters_have_prefixes_of_several_lengths(kcrf, task):
    done = trained(kcrf, task, "--clusters", task / "paths.txt")
    assert "clusters of paths.txt: 54 words; " in done.err
    (task / "paths.txt").unlink()
    assert f1(kcrf, task) > 0.9
    shown = kcrf("inspect", task / "model.npz").text
    # All paths are shorter than ten bits, so that longer prefixes say nothing more.
    assert "2 features c0.clusters4, c0.clusters6: categorical" in shown and "clusters10" not in shown
    assert "clusters of paths.txt, 54 words stored" in shown and "c0.clusters6[0]=110101" in shown


def test_streams_with_a_delay_give_the_labels_of_whole_sequences(kcrf, task):
    """Entries of three words and a window of one look three lines ahead, and as many behind."""
    yaml = "features: [{column: c0}, {column: c0, lookup: city, window: -1..1}, {conjunction: ['c0.city', c0]}]\n"
    (task / "c.yaml").write_text(yaml)
    trained(kcrf, task, *lexicon(task), "-c", task / "c.yaml")
    encoding = Model.load(task / "model.npz").encoding
    assert encoding.reach(["c0.city"]) == (3, 3) and encoding.reach(["c0.city/c0"]) == (2, 2)
    whole = kcrf("tag", "-m", task / "model.npz", task / "test.conll", "--decode", "posterior").out
    done = kcrf("tag", "-m", task / "model.npz", task / "test.conll", "--lag", 20)
    assert done.out == whole
    done = kcrf("tag", "-m", task / "model.npz", task / "test.conll", "--lag", 1)
    assert done.code == 0 and "look 3 lines ahead" in done.err
    # One long sequence: values must not depend on where its context begins.
    one = task / "one.conll"
    one.write_text((task / "test.conll").read_text().replace("\n\n", "\n"))
    scores = [
        kcrf("tag", "-m", task / "model.npz", one, "--marginals", "all", "--decode", "posterior", *options).text
        for options in ([], ["--lag", 60])
    ]
    labels = [[line.split()[2] for line in text.splitlines() if line] for text in scores]
    assert labels[0] == labels[1]


def test_configurations_shards_and_datasets_give_the_same_labels(kcrf, task):
    given = (*lexicon(task), "--clusters", task / "paths.txt")
    trained(kcrf, task, *given)
    out = task / "other.npz"
    dumped = kcrf("train", task / "train.conll", *given, "--sigma2", 1, "--dump-config")
    assert "lexicons:" in dumped.text and "lookup: city" in dumped.text
    (task / "dumped.yaml").write_bytes(dumped.out)
    assert kcrf("train", task / "train.conll", "-c", task / "dumped.yaml", "-o", out).code == 0
    assert out.read_bytes() == (task / "model.npz").read_bytes()
    labels = kcrf("tag", "-m", out, task / "test.conll").out
    for place in ("data.npz", "shards"):
        more = ("--shards", 3) if place == "shards" else ()
        assert kcrf("featurize", task / "train.conll", *given, "-o", task / place, *more).code == 0
        assert kcrf("train", task / place, "--sigma2", 1, "-o", out).code == 0
        assert kcrf("tag", "-m", out, task / "test.conll").out == labels
    done = kcrf("train", task / "data.npz", *lexicon(task), "-o", out)
    assert done.code == 2


def test_audit_looks_words_up(kcrf, task):
    options = ("--folds", 2, "--sigma2", 1)
    assert kcrf("audit", task / "train.conll", *lexicon(task), *options).code == 0
    trained(kcrf, task, *lexicon(task))
    done = kcrf("audit", "-m", task / "model.npz", task / "train.conll", *lexicon(task))
    assert done.code == 2 and "--lexicon" in done.err  # the model has it
    assert kcrf("audit", "-m", task / "model.npz", task / "train.conll").code == 0


def test_other_programs_have_no_lookups(kcrf, task):
    trained(kcrf, task, *lexicon(task))
    assert kcrf("export", task / "model.npz", "-o", task / "m.crfsuite").code == 0
    done = kcrf("export", task / "model.npz", "-o", task / "m.wapiti")
    assert done.code == 2 and "'c0.city' is looked up in a table" in done.err
    done = kcrf("featurize", task / "test.conll", "--like", task / "model.npz", "--export", "crfsuite")
    assert done.code == 0 and "c0.city[0]=B-city" in done.text


def test_options_add_to_the_lexicons_of_a_configuration(kcrf, task):
    (task / "c.yaml").write_text("lexicons: {colour: [red, dark blue]}\n")
    found = kcrf("train", task / "train.conll", "-c", task / "c.yaml", *lexicon(task), "--dump-config").text
    assert "lookup: colour" in found and "lookup: city" in found and "dark blue" in found


def test_attribute_files_name_the_attribute(kcrf, task):
    done = kcrf("train", task / "train.crfsuite", *lexicon(task), "-o", task / "a.npz")
    assert done.code == 2 and "--lookup-column" in done.err
    both = (*lexicon(task), "--clusters", task / "paths.txt", "--lookup-column", "w")
    trained(kcrf, task, *both, data="train.crfsuite")
    assert f1(kcrf, task, data="test.crfsuite") > 0.98
    model = Model.load(task / "model.npz")
    assert model.encoding.names == ["attributes", "w.city", "w.clusters4", "w.clusters6"]
    corpus = read_corpus(task / "train.crfsuite")
    config = {"lexicons": {"city": str(task / "cities.txt")}, "lookup_column": "w"}
    space = tuning.make_space(corpus, config, "options")
    encoding, _ = fit_encoding(parse_config(space.raw(space.seeds[0])), corpus)
    assert "city" in encoding.tables


@pytest.mark.parametrize(
    ("yaml", "code", "message"),
    [
        ("features: [{column: c0, lookup: city}]", 2, "looks 'c0' up in 'city', and none is given"),
        ("lexicons: {town: LEXICON}\nfeatures: [{column: c0, lookup: city}]", 2, "and there is 'town'"),
        (
            "lexicons: {city: LEXICON}\nfeatures: [{column: c0}]",
            2,
            "anything up in the lexicon 'city'",
        ),
        ("clusters: LEXICON", 3, "cities.txt:1: 4 values, where path, word and count"),
        ("lexicons: {city: LEXICON.gone}", 1, "No such file"),
        ("lexicons: {city: []}", 2, "'lexicons' must be a list of names, not an empty list"),
        ("lexicons: {city: ['  ']}", 2, "lexicon 'city' has no entries"),
        ("lexicons: {clusters: LEXICON}", 2, "is no name for a lexicon"),
        ("lexicons: cities.txt", 2, "must name files, as {city: cities.txt}"),
        ("lexicons: {city: LEXICON}\nfeatures: [{column: c0, lookup: city, length: 4}]", 2, "'length' is for clusters"),
        ("lexicons: {city: LEXICON}\nfeatures: [{column: c0, lookup: city, type: real}]", 2, "its type is categorical"),
        ("lexicons: {city: LEXICON}\nfeatures: [{column: c0, lookup: city, scale: unit}]", 2, "takes no 'scale'"),
        ("lexicons: {city: LEXICON}\nlookup_column: c7", 2, "there is no column 'c7'"),
    ],
)
def test_mistakes_in_configurations(yaml, code, message, kcrf, task):
    (task / "wrong.yaml").write_text(yaml.replace("LEXICON", str(task / "cities.txt")))
    done = kcrf("train", task / "train.conll", "-c", task / "wrong.yaml", "-o", task / "x.npz")
    assert done.code == code and message in done.err, done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lexicon", "cities.txt"], "'cities.txt' is not NAME=FILE, such as city=cities.txt"),
        (["--lexicon", "city="], "is not NAME=FILE"),
        (["--lexicon", "a=x", "--lexicon", "a=y"], "'a' twice"),
        (["--lexicon", "embeddings=x"], "is no name for a lexicon"),
        (["--lexicon-case", "lower"], "fold"),
    ],
)
def test_mistakes_in_options(options, message, kcrf, task):
    done = kcrf("train", task / "train.conll", *options, "-o", task / "x.npz")
    assert done.code == 2 and message in done.err


def test_a_lexicon_of_other_words_is_warned_of(kcrf, task):
    (task / "cities.txt").write_text("elsewhere\n")
    done = trained(kcrf, task, *lexicon(task))
    assert "warning: lexicon city of cities.txt: 1 entry; 0.0% of positions are within one" in done.err
    assert "is 'c0' the right column?" in done.err


def test_folds_and_tune_take_the_lexicon_along(task):
    corpus, path = read_corpus(task / "train.conll"), str(task / "cities.txt")
    options = {"lexicon": [["city", path]], "clusters": str(task / "paths.txt"), "sigma2": 1.0}
    plan = make_plan(corpus, {}, "options", make_settings({}, options), Division(2))
    assert corpus_digest(plan.corpus) != corpus_digest(corpus)
    raw = {"lexicons": {"city": path}}
    space = tuning.make_space(corpus, raw, "options")
    for candidate in space.seeds:
        config = parse_config(space.raw(candidate))
        assert "c0.city" in [feature.name for feature in config.features]
    (task / "cities.txt").unlink()
    (task / "paths.txt").unlink()
    found = run_plan(plan, threads=1)
    assert min(result["accuracy"] for result in found.values()) > 0.95


def test_the_estimator_takes_lists_and_files(task):
    def read(name):
        sequences = (task / f"{name}.conll").read_text().strip().split("\n\n")
        rows = [[line.split() for line in one.split("\n")] for one in sequences]
        return [[{"word": word} for word, _ in row] for row in rows], [[label for _, label in row] for row in rows]

    (X, y), (X_test, y_test) = read("train"), read("test")
    crf = KernelCRF(sigma2=1, lexicons={"city": CITIES}).fit(X, y)
    assert crf.score(X_test, y_test) > 0.98 > KernelCRF(sigma2=1).fit(X, y).score(X_test, y_test)
    crf.save(task / "m.npz")
    loaded = KernelCRF.load(task / "m.npz")
    assert loaded.predict(X_test) == crf.predict(X_test)
    assert loaded.config["lexicons"] == {"city": CITIES}
    again = loaded.fit(X, y)
    assert again.predict(X_test) == crf.predict(X_test)
    files = KernelCRF(sigma2=1, lexicons={"city": task / "cities.txt"}, clusters=task / "paths.txt").fit(X, y)
    assert files.score(X_test, y_test) > 0.98
    with pytest.raises(ValueError, match="arrays have none"):
        KernelCRF(clusters=task / "paths.txt").fit([[[1.0]]], [["a"]])
    with pytest.raises(ValueError, match="a dictionary of files"):
        KernelCRF(lexicons=["Paris"]).fit(X, y)


def test_damaged_tables_are_refused(kcrf, task):
    trained(kcrf, task, *lexicon(task), "--clusters", task / "paths.txt")
    from kcrf_core.errors import FileFormatError
    from kcrf_core.files import read_container, write_container

    contents = read_container(task / "model.npz", "model")
    for name, array in (
        ("lookup.clusters.paths", contents.arrays["lookup.clusters.paths"] + 1000),
        ("lookup.city.entries.text", np.frombuffer(b"a  b", np.uint8)),
    ):
        arrays = {**contents.arrays, name: array}
        if name.endswith("text"):
            arrays["lookup.city.entries.ends"] = np.array([len(array)])
        write_container(task / "damaged.npz", "model", contents.header, arrays)
        with pytest.raises(FileFormatError, match="lookup"):
            Model.load(task / "damaged.npz")
