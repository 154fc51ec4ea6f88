"""Nothing that comes from data, configurations and names of files acts on a terminal."""

from __future__ import annotations

import json
import os
import unicodedata

import pytest

from kcrf_cli.render.visible import shown, shown_json, shown_lines

ESCAPE, CLEAR, OVERRIDE = "\x1b]0;owned\x07", "\x9b2J", "\u202e"
HOSTILE = f"{ESCAPE}{CLEAR}{OVERRIDE}"
LABELS = [f"B-{HOSTILE}", "O", f"I-{HOSTILE}"]
WORDS = [f"w{HOSTILE}{n}" for n in range(4)]


def assert_harmless(text):
    acting = {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u202e\u2066"} - {
        "\n",
        "\t",
    }
    assert not acting, repr(text[:2000])


def rows(count=60):
    lines = [f"{WORDS[i * 7 % 4]} {i * 3 % 5} {LABELS[i % 3]}\n" + ("\n" if i % 6 == 5 else "") for i in range(count)]
    return "".join(lines)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / f"data{HOSTILE}.conll"
    path.write_text(rows(), encoding="utf-8")
    return path


@pytest.fixture
def model(kcrf, data, tmp_path):
    path = tmp_path / f"model{HOSTILE}.npz"
    assert kcrf("train", data, "-o", path, "--sigma2", 1, "-q").code == 0
    return path


def listened(kcrf, *arguments, code=0, out=True, stdin=b""):
    """Run a command, check what it says, and return that."""
    done = kcrf(*arguments, stdin=stdin)
    assert done.code == code, done.err
    assert_harmless(done.err)
    if out:
        assert_harmless(done.text)
    return done


def test_training_and_all_that_is_printed_of_it(kcrf, data, tmp_path):
    columns = f"word{ESCAPE},n{CLEAR},tag{OVERRIDE}"
    config = tmp_path / f"conf{HOSTILE}.yaml"
    named = json.dumps(f"node{HOSTILE}\nforged line")
    config.write_text(f"terms:\n- {{name: {named}}}\n- {{name: other, features: [c0]}}\n- {{type: edge}}\n")
    output = tmp_path / f"m{HOSTILE}.npz"
    done = listened(kcrf, "train", data, "-o", output, "-c", config, "-v", "--dev", data)
    assert "\\x1b]0;owned" in done.err and "\\u202e" in done.err and "\\x9b2J" in done.err
    assert not any(line.startswith("forged") for line in done.err.split("\n"))
    listened(kcrf, "train", data, "-o", output, "--columns", columns, "--weight", f"w{HOSTILE}", code=2)
    listened(kcrf, "train", data, "-o", output, "-c", config, "--select-terms", "--sigma2", 1)
    listened(kcrf, "train", data, "-o", output, "--sigma2", 1, "--json", "--init", output)
    log = listened(kcrf, "train", data, "-o", output, "--sigma2", 1, "-q", "--log", "-").text
    assert json.loads(log.split("\n")[0])["labels"] == sorted(LABELS)
    listened(kcrf, "select-basis", data, "--kernel", "rbf", "--size", 4, "-o", output)
    listened(kcrf, "inspect", output)


def test_looking_at_data_and_models(kcrf, data, model, tmp_path):
    listened(kcrf, "featurize", data, "--show", 20)
    output = tmp_path / f"d{HOSTILE}.npz"
    listened(kcrf, "featurize", data, "-o", output, "--columns", f"w{ESCAPE},n,tag")
    for options in ([], ["--json"], ["--dump"], ["--top", 3]):
        listened(kcrf, "inspect", model, *options)
    listened(kcrf, "inspect", output)


def test_scores(kcrf, data, model, tmp_path):
    tagged = kcrf("tag", "-m", model, data)
    assert tagged.code == 0 and LABELS[0] in tagged.text  # what programs read stays as it is
    for options in ([], ["--details"], ["--json"]):
        done = listened(kcrf, "evaluate", "-", *options, stdin=tagged.out)
        assert "owned" in done.text
    done = listened(kcrf, "evaluate", "-m", model, data, "--compare", model)
    many = tmp_path / "many.conll"  # too many labels for a matrix
    many.write_text("".join(f"w L{HOSTILE}{n % 15} L{HOSTILE}{n % 14}\n" for n in range(60)), encoding="utf-8")
    listened(kcrf, "evaluate", many, "--details")
    explained = kcrf("tag", "-m", model, data, "--explain", 2).text
    assert_harmless("\n".join(line for line in explained.split("\n") if line.startswith("#:")))


def test_cross_validation(kcrf, data, tmp_path):
    grid = ["--grid", "sigma2=0.5,1"]
    output = tmp_path / f"r{HOSTILE}.json"
    listened(kcrf, "crossval", data, "--folds", 3, *grid, "-o", output, "-v")
    rare = tmp_path / "rare.conll"  # a label that one fold alone has
    rare.write_text(rows(24) + f"w 1 rare{HOSTILE}\n\n", encoding="utf-8")
    done = listened(kcrf, "crossval", rare, "--folds", 3, *grid)
    assert "rare\\x1b" in done.text


@pytest.mark.parametrize(
    "text",
    [
        '"{0}": 1',
        'columns: ["{0}", b, "{0}"]',
        'window: "{0}"',
        'features: [{{column: "{0}"}}]',
        'features: [{{column: a, "{0}": 1}}]',
        'terms: [{{name: "{0}", features: ["{0}"]}}]',
        'terms: [{{name: "{0}\\nx", map: {{size: x}}}}]',
        'terms: [{{kernel: "{0}"}}]',
        "training: {{sigma2: !<{0}> 1}}",
        'a: 1\n"a": "{0}"',
        "U00:%x[0,0]\nU{0}%m[0,0]",
    ],
)
def test_mistakes_of_configurations(kcrf, data, tmp_path, text):
    escaped = HOSTILE if text.startswith("U00") else "\\e]0;owned\\a\\x9b2J\\u202E"
    config = tmp_path / f"conf{HOSTILE}.yaml"
    config.write_text(text.format(escaped) + "\n", encoding="utf-8")
    done = listened(kcrf, "train", data, "-c", config, "-o", tmp_path / "m.npz", code=2)
    assert done.err.count("\n") == 1


def test_mistakes_of_data_and_names_of_files(kcrf, data, model, tmp_path):
    missing = f"missing{HOSTILE}\nforged"
    for command in (
        ["train", missing, "-o", "m.npz"],
        ["tag", "-m", missing],
        ["evaluate", missing],
        ["inspect", missing],
    ):
        assert listened(kcrf, *command, code=1).err.count("\n") == 1
    broken = tmp_path / f"broken{HOSTILE}\n.conll"
    broken.write_text(f"a {WORDS[0]} {LABELS[0]}\nb {LABELS[1]}\n", encoding="utf-8")
    assert listened(kcrf, "train", broken, "-o", "m.npz", code=3).err.count("\n") == 1
    listened(kcrf, "inspect", broken, code=4)
    listened(kcrf, "tag", "-m", model, broken, out=False, code=3)
    listened(kcrf, "train", data, "-o", tmp_path / missing / "m.npz", code=1)
    listened(kcrf, "train", data, "-o", data, code=2)
    for wrong in ([f"--{HOSTILE}"], ["--kernel", HOSTILE], ["--grid", HOSTILE], ["--sigma2", HOSTILE], [HOSTILE]):
        listened(kcrf, "crossval", data, *wrong, code=2)
    listened(kcrf, f"train{HOSTILE}", code=2)
    broken.write_text(f"a {LABELS[0]}\n", encoding="utf-8")
    listened(
        kcrf, "train", broken, "--scheme", "iob2", "--unobserved", f"{HOSTILE}", "--sigma2", 1, "-o", tmp_path / "m"
    )


def test_names_that_are_not_utf_8(kcrf, model, tmp_path):
    path = os.fsdecode(bytes(tmp_path) + b"/\xff\xfe.npz")
    try:
        os.link(model, path)
    except OSError:
        pytest.skip("the file system takes no such names")
    assert "\\udcff" in listened(kcrf, "inspect", path).text
    listened(kcrf, "inspect", path, "--json")
    listened(kcrf, "train", path, "-o", tmp_path / "m.npz", code=4)


def test_what_is_shown_and_what_stays():
    assert shown("a\x00\t\n\x1b\x7f\x85\u2028\u202e\ud800ä日שלום\u200f") == (
        "a\\x00\\x09\\x0a\\x1b\\x7f\\x85\\u2028\\u202e\\ud800ä日שלום\u200f"
    )
    assert shown_lines("a\nb\r") == "a\nb\\x0d"
    value = {"k\x9b\u202e": ["\x1b\x7f", "ä", "\n"]}
    text = shown_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value and "ä" in text
    assert_harmless(text)
