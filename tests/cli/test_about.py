"""Help, completion, and the configuration in force."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import click
import pytest

from kcrf_cli.main import main
from kcrf_cli.options import FEW, SECTIONS

SHELLS = ("bash", "zsh", "fish")


def test_without_arguments_there_is_the_help(kcrf):
    done = kcrf()
    assert done == kcrf("--help") and done.code == 0
    assert done.text.startswith("Usage: kcrf [OPTIONS] COMMAND [ARGS]...\n\n  Label sequences")


def listed(text):
    """Options of a help text by section, in order; names of options stand two spaces from the margin."""
    found = {}
    for line in text.splitlines():
        if title := re.fullmatch(r"([A-Z]\w+):", line):
            section = found.setdefault(title[1], [])
        elif found and (names := re.match(r"  (?:-\w, )?(--[a-z0-9-]+)", line)):
            section.append(names[1])
    return found


@pytest.mark.parametrize("name", main.commands)
def test_each_option_has_one_section_and_the_short_help_fits_a_page(kcrf, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    command = main.commands[name]
    with click.Context(command, info_name=name, help_option_names=["-h", "--help"]) as context:
        flags = [flag for one in command.get_params(context) if isinstance(one, click.Option) for flag in one.opts]
    short, whole = kcrf(name, "--help").text, kcrf(name, "--help-all").text
    sections, common = listed(whole), listed(short)
    every = [flag for members in sections.values() for flag in members]
    assert len(every) == len({*every}) and {*every} <= {*flags}
    assert {flag for flag in flags if flag.startswith("--")} <= {*every}
    assert list(sections) == [title for title in SECTIONS if title in sections]
    assert len(short.splitlines()) <= 45
    hidden = len(every) - sum(map(len, common.values()))
    assert all([*filter(members.__contains__, sections[title])] == members for title, members in common.items())
    if hidden:
        assert len(every) > FEW and short.endswith(f"\n\n{hidden} more options: kcrf {name} --help-all\n")
        assert 5 <= len(every) - hidden <= 16
    else:
        assert short == whole


def test_help_has_the_help_of_a_command(kcrf):
    assert {*listed(kcrf("train", "-h").text)} >= {"Data", "Features", "Model", "Optimisation", "Output"}
    assert kcrf("help", "train") == kcrf("train", "--help")
    assert kcrf("help", "train", "--all") == kcrf("train", "--help-all") == kcrf("help", "--all", "train")
    assert kcrf("help", "--all") == kcrf("help") == kcrf("--help")
    wrong = kcrf("help", "tran")
    assert wrong.code == 2 and "No such command 'tran'" in wrong.err


@pytest.fixture
def completed(kcrf, monkeypatch):
    """Return what a shell is offered for the last of some words; `test_bash_completes` starts a process."""

    def complete(words, shell):
        monkeypatch.setenv("_KCRF_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
        done = kcrf()
        assert done.err == ""
        return done.text

    return complete


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options_are_offered(completed, shell):
    assert "train" in completed(["kcrf", "tr"], shell)
    assert "--kernel" in completed(["kcrf", "train", "--ker"], shell)
    offered = completed(["kcrf", "train", "--kernel", ""], shell)
    assert all(kernel in offered for kernel in ("linear", "poly", "rbf", "image"))
    assert "file" in completed(["kcrf", "tag", "-m", ""], shell)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes(kcrf, tmp_path, monkeypatch):
    """The script as bash runs it: the function is called for a line, and fills COMPREPLY."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kcrf").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kcrf_cli "$@"\n')
    (folder / "kcrf").chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("_KCRF_COMPLETE", "bash_source")
        script = kcrf().text
    lines = f'{script}\nCOMP_WORDS=(kcrf cross); COMP_CWORD=1; _kcrf_completion kcrf; echo "${{COMPREPLY[@]}}"\n'
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", lines], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "crossval"


# ----------------------------------------------------------------------------- configurations

RUNS = {
    "defaults": [],
    "options": ["--kernel", "poly", "--degree", "3", "--size", "50", "--sigma2", "2", "--order", "2"],
    "a file": ["-c", "accent.yaml", "--sigma2", "3"],
    "a template": ["-c", "template", "--c2", "0.1"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_a_configuration_that_was_dumped_gives_the_same_model(kcrf, sample_data, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    shutil.copy(sample_data / "accent.yaml", tmp_path)
    (tmp_path / "template").write_text("U00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\nB\n")
    data = tmp_path / "data.conll"
    sequences = (sample_data / "pitch_accent.conll").read_text().split("\n\n")[:25]
    data.write_text("\n\n".join(sequences) + "\n")
    done = kcrf("train", data, *options, "--dump-config")
    assert done.code == 0 and done.err == "" and done.text.startswith("# configuration of kcrf ")
    (tmp_path / "dumped.yaml").write_bytes(done.out)
    assert kcrf("train", data, *options, "-q", "-o", "first.npz").code == 0
    assert kcrf("train", data, "-c", "dumped.yaml", "-q", "-o", "second.npz").code == 0
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
    assert kcrf("train", data, "-c", "dumped.yaml", "--dump-config").out == done.out


def test_a_basis_has_a_configuration_too(kcrf, sample_data):
    assert kcrf("select-basis", sample_data / "digits.conll", "--kernel", "rbf", "--dump-config").code == 0


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys\n"
        "from kcrf_cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "found = [name for name in sys.modules if name in ('numpy', 'kcrf_core.config') or 'commands.' in name]\n"
        "sys.exit(bool(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in main.commands)
    assert all(command.short_help in done.stdout for command in main.commands.values())
