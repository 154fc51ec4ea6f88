"""Examples that are typed as they stand: those of every --help, and the console sessions of the README."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import click
import pytest

from console import differences, sessions
from kcrf_cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def help_examples(command: click.Command) -> list[str]:
    """Command lines of a help text's last paragraph, continued lines joined."""
    example = command.help.split("Example:")[1]
    joined = re.sub(r"\\\n\s*", " ", example.replace("\b", ""))
    return [line.strip() for line in joined.strip().split("\n") if line.strip()]


def test_commands_of_the_documentation_are_run_once(shell, tmp_path, remembered):
    """The same command on the same files is played back; on others it is run."""
    (tmp_path / "small.conll").write_text("own\t0\nrun\t1\n\nonce\t0\n")
    line = "kcrf train small.conll --sigma2 1 -o {}.npz && kcrf tag -m {}.npz < small.conll"
    first, again = shell(line.format("first", "first")), shell(line.format("first", "first"))
    assert first.returncode == again.returncode == 0 and "certified" in first.stderr
    assert (first.stdout, first.stderr) == (again.stdout, again.stderr) and first.stdout.startswith("own\t0\t")
    outputs = [json.loads(path.read_text())["output"] for path in remembered.glob("*/about.json")]
    assert outputs.count("first.npz") == 1
    (tmp_path / "small.conll").write_text("own\t1\nrun\t0\n\nonce\t1\n")
    assert shell(line.format("c", "c")).stdout.startswith("own\t1\t")
    assert shell("kcrf tag -m none.npz small.conll").returncode == 1
    assert "Usage" in shell("kcrf --help").stdout


# Commands whose examples are run every day; those of the others take seconds.
SHORT = ("featurize",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.slow]) for name in ["main", *main.commands]],
)
def test_help_examples(shell, name):
    lines = help_examples(main if name == "main" else main.commands[name])
    assert lines and all(line.startswith("kcrf ") for line in lines)
    for line in lines:
        # What five seconds are enough for depends on the machine.
        done = shell(line.replace("--budget 5s", "--effort small"))
        assert done.returncode == 0, (line, done.stderr)


@pytest.mark.slow
def test_readme_session(shell):
    """The README's session on sample data: every command works and says what the README shows."""
    setup, first, second = sessions(ROOT / "README.md")
    assert {"make demo", "make test"} <= {" ".join(command.split()[:2]) for command, _ in setup}
    assert first[0][0].startswith("awk") and len(second) == 2
    for command, output in [*first, *second]:
        done = shell(f"exec 2>&1; {command}")
        assert done.returncode == 0, (command, done.stdout)
        assert not differences(output, done.stdout), command


@pytest.mark.slow
def test_foreign_formats(shell, tmp_path):
    """A template and an attribute file are typed as the page about other tools shows."""
    (tmp_path / "template").write_text("U00:%x[0,0]\nU01:%x[-1,1]/%x[0,1]\nB\n")
    (tmp_path / "train.conll").write_text("the\tD\t0\ncat\tN\t1\n\na\tD\t0\ndog\tN\t1\n")
    for kind in ("train", "test"):
        (tmp_path / f"{kind}.crfsuite").write_text("0\tw=the\tlen:3\n1\tw=cat\tlen:3\n\n0\tw=a\tlen:1\n1\tw=dog\n")
    for command in (
        "kcrf train -c template train.conll -o model.npz",
        "kcrf train train.crfsuite -o model.npz",
        "kcrf tag -m model.npz test.crfsuite",
        "kcrf featurize train.conll --export crfsuite -o out.crfsuite",
    ):
        done = shell(command)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.slow
def test_pipeline(shell, tmp_path, sample_data):
    """The Makefile of the tour goes from text to scores, and its line for .bashrc is one that bash understands."""
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    (tmp_path / "Makefile").write_text(re.search(r"```make\n(.*?)```", text, re.DOTALL)[1])
    sequences = (sample_data / "pitch_accent.conll").read_text().split("\n\n")
    for kind, part in (("train", sequences[:30]), ("test", sequences[60:80])):
        (tmp_path / f"accent.{kind}.conll").write_text("\n\n".join(part) + "\n")
    done = shell("make accent.scores.json")
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "accent.scores.json").read_text())
    assert figures["accuracy"] > 0.5 and figures["sequences"] == 20
    line = re.search(r"`(eval [^`]*)` in `~/.bashrc`", text)[1]
    assert "kcrf" in shell(f"{line}; complete -p kcrf").stdout


def test_template_about_formats(shell, tmp_path):
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    (tmp_path / "template").write_text(re.search(r"```\n(# word and class.*?)```", text, re.DOTALL)[1])
    done = shell("kcrf train sample_data/pitch_accent.conll -c template --sigma2 1 -q -o model.npz")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", ["sample_data/make_word_vectors.py", "examples/server.py"])
@pytest.mark.parametrize("arguments", [[], ["one"], ["one", "two"]], ids=len)
def test_scripts_print_their_usage(script, arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert ended.value.code == 2 and capsys.readouterr().err.startswith("usage: ")


@pytest.mark.parametrize("command", [[], *([name] for name in main.commands)], ids=" ".join)
def test_help_is_quick_to_import(command):
    """`--help` imports neither NumPy nor SciPy, though it lists kernels and their settings: start-up matters."""
    code = (
        "import sys\nfrom kcrf_cli.main import main\n"
        f"try: main({['help', *command, '--all']})\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'yaml'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
