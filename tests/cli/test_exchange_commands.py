"""`kcrf import` and `kcrf export`: what they say, write and refuse."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"
WAPITI = os.environ.get("KCRF_WAPITI") or shutil.which("wapiti")  # the program itself
MADE = ("one.npz", "two.npz")
# As GROBID has them: capitals, one name for several lines, a line twice, five positions away.
CAPITALS = """U00:%x[-1,0]
U01:%x[0,0]
U08:%x[4,0]
U08:%x[5,0]
U08:%x[0,1]
U08:%x[0,1]
U09:%x[-1,1]/%x[0,1]

# Output
B
"""


def test_a_model_of_each_program_tags(kcrf, tmp_path):
    for name in ("words.crfpp", "words.wapiti"):
        done = kcrf("import", FOREIGN / name, "-o", tmp_path / "model.npz")
        assert done.code == 0 and done.out == b"" and "model: 3 labels, " in done.err
        tagged = kcrf("tag", "-m", tmp_path / "model.npz", FOREIGN / "words.conll", "-q")
        assert tagged.code == 0
        assert len(tagged.text.splitlines()) == len((FOREIGN / "words.conll").read_text("utf-8").splitlines())
    assert tagged.text == (FOREIGN / "words.wapiti.tagged").read_text("utf-8")
    assert "\nimported from Wapiti\n" in kcrf("inspect", tmp_path / "model.npz", "--top", "2").text


def test_figures_as_json(kcrf, tmp_path):
    done = kcrf("import", FOREIGN / "words.crfsuite-model", "-o", tmp_path / "model.npz", "--json", "-q")
    found = json.loads(done.out)
    assert done.err == "" and found["program"] == "CRFsuite" and found["labels"] == 3
    assert found["bytes"] == (tmp_path / "model.npz").stat().st_size


def test_data_with_more_columns_than_the_model_looks_at(kcrf, tmp_path):
    rows = (FOREIGN / "words.conll").read_text("utf-8").splitlines()
    wider = "\n".join(row if not row else "\t".join([*row.split("\t")[:2], "more", row.split("\t")[2]]) for row in rows)
    (tmp_path / "wide.conll").write_text(wider + "\n", encoding="utf-8")
    model = tmp_path / "model.npz"
    assert kcrf("import", FOREIGN / "words.wapiti", "-o", model, "-q").code == 0
    assert kcrf("tag", "-m", model, tmp_path / "wide.conll").code == 3
    assert kcrf("import", FOREIGN / "words.wapiti", "-o", model, "--columns", "word,class,x,label", "-q").code == 0
    done = kcrf("tag", "-m", model, tmp_path / "wide.conll", "-q")
    expected = [line.split()[-1:] for line in (FOREIGN / "words.wapiti.tagged").read_text("utf-8").splitlines()]
    assert [line.split()[-1:] for line in done.text.splitlines()] == expected
    few = kcrf("import", FOREIGN / "words.wapiti", "-o", model, "--columns", "word,label")
    assert few.code == 2 and "at least 3" in few.err and "--columns" in few.err


def test_what_is_no_model_is_refused_in_one_line(kcrf, tmp_path):
    (tmp_path / "some").write_bytes(b"lCRF" + bytes(60))
    for path, code in ((tmp_path / "some", 4), (FOREIGN / "words.conll", 4), (tmp_path / "none", 1)):
        done = kcrf("import", path, "-o", tmp_path / "model.npz")
        assert done.code == code and done.err.startswith("kcrf: ") and done.err.count("\n") == 1
    assert not (tmp_path / "model.npz").exists()


@pytest.mark.parametrize(
    ("name", "option", "beginning"),
    [
        ("model.crfsuite", [], b"lCRF"),
        ("model.wapiti", [], b"#mdl#2#"),
        ("model", ["--to", "crf++"], b"\x64\0\0\0"),
    ],
)
def test_files_for_other_programs(kcrf, tmp_path, name, option, beginning):
    model = tmp_path / "model.npz"
    kcrf("train", FOREIGN / "words.conll", "--plain", "--sigma2", "1", "--decode", "viterbi", "-o", model, "-q")
    done = kcrf("export", model, "-o", tmp_path / name, *option)
    assert done.code == 0 and f"{name}: " in done.err and (tmp_path / name).read_bytes().startswith(beginning)
    again = kcrf("import", tmp_path / name, "-o", tmp_path / "again.npz", "-q")
    assert again.code == 0
    if name != "model.crfsuite":
        data = FOREIGN / "words.conll"
        own, theirs = (kcrf("tag", "-m", tmp_path / one, data, "-q").out for one in ("model.npz", "again.npz"))
        assert own == theirs


@pytest.mark.parametrize("name", ["model.crfsuite", "model.wapiti", "model.crfpp"])
def test_decoders_that_other_programs_lack_are_reported(kcrf, tmp_path, name):
    model, target = tmp_path / "model.npz", tmp_path / name
    wishes = ("--decode", "posterior", "--once", "all")
    kcrf("train", FOREIGN / "words.conll", "--plain", "--sigma2", "1", *wishes, "-o", model, "-q")
    done = kcrf("export", model, "-o", target)
    assert (
        "decodes by Viterbi, without posterior decoding and rules: some labels will differ from those of kcrf tag"
        in done.err
    )
    assert "differ" not in kcrf("export", model, "-o", target, "-q").err
    if name != "model.crfpp":  # its file begins with a number
        done = kcrf("tag", "-m", target, FOREIGN / "words.conll")
        assert done.code == 4 and f"{name}: a model of " in done.err and "'kcrf import' converts" in done.err


def test_exports_that_are_refused(kcrf, tmp_path):
    model = tmp_path / "model.npz"
    kcrf("train", FOREIGN / "words.conll", "--kernel", "poly", "--plain", "--sigma2", "1", "-o", model, "-q")
    done = kcrf("export", model, "-o", tmp_path / "model.wapiti")
    assert done.code == 2 and "linear one (kcrf train --kernel)" in done.err and done.err.count("\n") == 1
    assert "give --to" in kcrf("export", model, "-o", tmp_path / "model.bin").err
    assert kcrf("export", FOREIGN / "words.wapiti", "-o", tmp_path / "model.wapiti").code == 4
    assert not (tmp_path / "model.wapiti").exists()


def test_training_goes_on_from_an_imported_model(kcrf, tmp_path):
    kcrf("import", FOREIGN / "words.crfpp", "-o", tmp_path / "old.npz", "-q")
    done = kcrf(
        *("train", FOREIGN / "words.conll", "-c", FOREIGN / "template", "--init", tmp_path / "old.npz"),
        *("--sigma2", "1", "-o", tmp_path / "new.npz"),
    )
    assert done.code == 0
    said = re.search(
        r"3 of 3 labels, term node with ([0-9]+) of [0-9]+ features [^,]*, term edge-x with 10 of 10", done.err
    )
    assert said is not None and int(said[1]) > 200, done.err


@pytest.mark.parametrize("name", ["words.crfpp", "words.wapiti"])
def test_imported_models_bring_their_template(kcrf, tmp_path, name):
    kcrf("import", FOREIGN / name, "-o", tmp_path / "old.npz", "-q")
    done = kcrf(
        *("train", FOREIGN / "words.conll", "--init", tmp_path / "old.npz", "--sigma2", "1"),
        *("-o", tmp_path / "new.npz"),
    )
    assert done.code == 0, done.err
    said = re.search(r"term node with ([0-9]+) of [0-9]+ features", done.err)
    assert said is not None and int(said[1]) > 100, done.err


@pytest.mark.parametrize("name", ["words.crfpp", "words.wapiti", "words.crfsuite-model"])
def test_training_starts_from_a_file_of_another_program(kcrf, tmp_path, name):
    data = FOREIGN / "words.conll"
    if name == "words.crfsuite-model":
        data = tmp_path / "words.crfsuite"
        known = json.loads((FOREIGN / "words.crfsuite-model.json").read_text("utf-8"))["sequences"]
        pairs = [pair for one in known[:5] for pair in zip(one["tagged"], one["items"], strict=True)]
        text = "".join("\t".join([label, *(name.replace(":", r"\:") for name in item)]) + "\n" for label, item in pairs)
        data.write_text(text, encoding="utf-8")
    kcrf("import", FOREIGN / name, "-o", tmp_path / "old.npz", "-q")
    said = []
    for start, made in zip((tmp_path / "old.npz", FOREIGN / name), MADE, strict=True):
        done = kcrf("train", data, "--init", start, "--sigma2", "1", "-o", tmp_path / made)
        assert done.code == 0, done.err
        said += re.findall(r"term node with .* of its weights\)", done.err)
    assert len(set(said)) == 1 and said[0].endswith("(100.0% of its weights)") == (name != "words.crfsuite-model")
    one, two = (kcrf("tag", "-m", tmp_path / each, data, "-q", "--marginals", "all").out for each in MADE)
    assert one == two


def test_a_template_brings_its_strings_to_a_start_from_wapiti(kcrf, tmp_path):
    rows = (FOREIGN / "words.conll").read_text("utf-8").splitlines()
    wider = "\n".join(row and "\t".join([*row.split("\t")[:2], "more", row.split("\t")[2]]) for row in rows)
    (tmp_path / "wide.conll").write_text(wider + "\n", encoding="utf-8")
    (tmp_path / "template").write_text(CAPITALS)
    options = ("-c", tmp_path / "template", "--sigma2", "1")
    first = kcrf("train", FOREIGN / "words.conll", *options, "--wapiti", "-o", tmp_path / "first.npz", "-q")
    assert first.code == 0, first.err
    assert kcrf("export", tmp_path / "first.npz", "-o", tmp_path / "first.wapiti", "-q").code == 0
    # Without --wapiti: the model says whose language the template is in. Data may have more columns than it looks at.
    start = ("--init", tmp_path / "first.wapiti")
    done = kcrf("train", tmp_path / "wide.conll", *options, *start, "-o", tmp_path / "second.npz")
    assert done.code == 0 and "(100.0% of its weights)" in done.err, done.err
    # With an L1 penalty, weights that are zero stay zero: training goes on where it ended.
    penalty, log = ("--c1", "0.3", "--sigma2", "100", "--tolerance", "1e-5", "-q"), tmp_path / "log"
    ended = kcrf("train", FOREIGN / "words.conll", *start, *penalty, "--json", "-o", tmp_path / "sparse.npz")
    assert kcrf("export", tmp_path / "sparse.npz", "-o", tmp_path / "sparse.wapiti", "-q").code == 0
    start = ("--init", tmp_path / "sparse.wapiti", "--log", log)
    assert kcrf("train", FOREIGN / "words.conll", *start, *penalty, "-o", tmp_path / "again.npz").code == 0
    events = map(json.loads, log.read_text().splitlines())
    begun = next(event["objective"] for event in events if event["event"] == "pass")
    assert begun == pytest.approx(json.loads(ended.out)["objective"], rel=1e-5)


def wapiti_strings(path):
    """Strings of a model of Wapiti, and numbers and values of its weights."""
    head, _, strings, weights = re.fullmatch(
        rb"#mdl#2#(\d+)\n(#rdr#.*?#qrk#.*?)#qrk#\d+\n(.*?,\n)((?:\d+=[^\n]*\n)*)", path.read_bytes(), re.DOTALL
    ).groups()
    pairs = [line.split(b"=") for line in weights.split()]
    assert len(pairs) == int(head)
    names = [line.partition(b":")[2][:-1].decode() for line in strings.splitlines()]
    return names, [int(number) for number, _ in pairs], [float.fromhex(value.decode()) for _, value in pairs]


def test_a_template_of_grobid_goes_to_wapiti_and_back(kcrf, tmp_path):
    data, template, model = FOREIGN / "words.conll", tmp_path / "template", tmp_path / "model.npz"
    template.write_text(CAPITALS)
    plain = kcrf("train", data, "-c", template, "--sigma2", "1", "-o", model, "-q")
    refused = kcrf("export", model, "-o", tmp_path / "model.wapiti")
    assert plain.code == 0 and refused.code == 2 and "--wapiti" in refused.err
    found = {}
    for name, options in {"all": (), "sparse": ("--c1", "1"), "pruned": ("--prune", "0.5")}.items():
        wishes = ("--wapiti", "--sigma2", "1", "--decode", "viterbi", *options)
        done = kcrf("train", data, "-c", template, *wishes, "-o", model, "-q")
        assert done.code == 0, done.err
        assert kcrf("export", model, "-o", tmp_path / "model.wapiti", "-q").code == 0
        strings, numbers, values = wapiti_strings(tmp_path / "model.wapiti")
        assert all(values) and len(set(strings)) == len(strings)
        labels = 3
        ends = [sum(labels if one[0] == "u" else labels**2 for one in strings[: n + 1]) for n in range(len(strings))]
        found[name] = strings
        # Every string that is there has a weight.
        assert all(any(end - 9 <= number < end for number in numbers) for end in ends)
        kcrf("import", tmp_path / "model.wapiti", "-o", tmp_path / "again.npz", "-q")
        wishes = (data, "-q", "--marginals", "all")
        own, theirs = (kcrf("tag", "-m", tmp_path / one, *wishes).out for one in ("model.npz", "again.npz"))
        assert own == theirs
    assert {"u08:_x+#", "u08:_x+4", "u00:_x-1", "u09:_x-1/C", "b"} <= set(found["all"])
    assert len(found["sparse"]) < len(found["all"]) / 2 and len(found["pruned"]) < len(found["all"])


def test_wapiti_is_for_templates(kcrf, tmp_path):
    for options in ((), ("-c", tmp_path / "config.yaml")):
        (tmp_path / "config.yaml").write_text("features: [{name: w, column: c0, type: categorical}]\n")
        done = kcrf("train", FOREIGN / "words.conll", "--wapiti", *options, "-o", tmp_path / "model.npz")
        assert done.code == 2 and "--wapiti is for a template" in done.err and done.err.count("\n") == 1
    (tmp_path / "bad").write_text("U00:%x[0,0]\n%UC3:%x[0,1]\n")
    done = kcrf("train", FOREIGN / "words.conll", "--wapiti", "-c", tmp_path / "bad", "-o", tmp_path / "model.npz")
    assert done.code == 2 and "bad:2: a line of a template starts with u, b or *, not '%'" in done.err


@pytest.mark.skipif(WAPITI is None, reason="needs Wapiti's program: KCRF_WAPITI=path")
@pytest.mark.parametrize("options", [(), ("--c1", "0.5"), ("--prune", "0.5"), ("--observed-features",)])
def test_wapiti_gives_the_labels_of_exported_models(kcrf, tmp_path, options):
    model, template, data = tmp_path / "model.npz", tmp_path / "template", tmp_path / "data.conll"
    template.write_text(CAPITALS)
    data.write_bytes((FOREIGN / "words.conll").read_bytes().replace(b"\t", b" "))

    def wapiti(*words):
        subprocess.run([WAPITI, *map(str, words)], check=True, capture_output=True)

    # A model of Wapiti is continued, and goes back.
    wapiti("train", "-i", "20", "-p", template, data, tmp_path / "old.wapiti")
    wishes = ("--init", tmp_path / "old.wapiti", "--sigma2", "1", "--decode", "viterbi", *options)
    done = kcrf("train", data, "-c", template, *wishes, "-o", model)
    assert done.code == 0 and "(100.0% of its weights)" in done.err, done.err
    assert kcrf("export", model, "-o", tmp_path / "new.wapiti", "-q").code == 0
    wapiti("label", "-c", "-m", tmp_path / "new.wapiti", data, tmp_path / "theirs")
    own = [line.split()[-1:] for line in kcrf("tag", "-m", model, data, "-q").text.splitlines()]
    assert own == [line.split()[-1:] for line in (tmp_path / "theirs").read_text("utf-8").splitlines()]
    if not options:  # the strings of its own model, which has them all
        assert set(wapiti_strings(tmp_path / "new.wapiti")[0]) == set(wapiti_strings(tmp_path / "old.wapiti")[0])


def test_patterns_are_a_configuration(kcrf, tmp_path):
    model = tmp_path / "model.npz"
    done = kcrf("train", FOREIGN / "words.conll", "-c", FOREIGN / "patterns", "--sigma2", "1", "-o", model)
    assert done.code == 0, done.err
    lagging = kcrf("tag", "-m", model, FOREIGN / "words.conll", "--lag", "3")
    assert lagging.code != 0 and lagging.err.count("\n") == 1  # some patterns look at the last position
    shown = kcrf("featurize", FOREIGN / "words.conll", "-c", FOREIGN / "patterns", "--show", "1")
    assert "u:w=" in shown.text and "*:cap=true" in shown.text


def test_the_form_of_weights_is_for_the_runtime_alone(kcrf, trained, tmp_path):
    done = kcrf("export", trained, "-o", tmp_path / "model.crfsuite", "--quantize", "none")
    assert done.code == 2 and "--quantize is for --to runtime" in done.err
    assert kcrf("export", trained, "-o", tmp_path / "model.kcrf", "--quantize", "none").code == 0
