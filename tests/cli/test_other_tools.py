"""Hands that know CRFsuite, CRF++ and Wapiti are told what to type here, in one line."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from kcrf_cli.main import main
from kcrf_cli.other_tools import COMMANDS, OPTIONS, close_names, option_hint


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("train template train.conll model", "kcrf train -c template train.conll -o model.npz"),
        ("train train.conll model", "kcrf train train.conll -o model.npz"),
        ("train -f 3 train.conll -o m.npz", "--min-count 3"),
        ("train -c 1.5 train.conll -o m.npz", "--sigma2 1.5"),
        ("train -a l2sgd train.conll -o m.npz", "leave it out"),
        ("train -p c2=0.1 train.conll -o m.npz", "--c2 0.1"),
        ("train -p max_iterations=10 train.conll -o m.npz", "--max-passes 10"),
        ("train -p 4 train.conll -o m.npz", "--threads 4"),
        ("train -p pattern.txt train.conll model", "-c pattern.txt"),
        ("train -2 0.5 train.conll -o m.npz", "--sigma2 2"),
        ("train -m 100 train.conll -o m.npz", "--max-passes 100"),
        ("train -m model train.conll", "-o model"),
        ("train -t 2 train.conll -o m.npz", "--threads 2"),
        ("train --maxiter=7 train.conll -o m.npz", "--max-passes 7"),
        ("train -g 5 -x train.conll", "kcrf crossval DATA --folds 5"),
        ("train --devel dev.conll train.conll -o m.npz", "--dev dev.conll"),
        ("tag -m m.npz -v2 test.conll", "--marginals all"),
        ("tag -m m.npz -n 5 test.conll", "--nbest 5"),
        ("tag -m m.npz -r test.conll", "leave it out"),
        ("tag -m m.npz test.conll out.conll", "-o out.conll"),
        ("evaluate m.npz test.conll", "kcrf evaluate -m m.npz test.conll"),
        ("learn -m model train.crfsuite", "kcrf train"),
        ("label -m model test.conll", "kcrf tag"),
        ("crf_test -m model test.conll", "kcrf tag"),
        ("dump model", "kcrf inspect model.npz --dump"),
    ],
)
def test_what_others_type_is_answered_in_one_line(kcrf, typed, told):
    done = kcrf(*shlex.split(typed))
    assert done.code == 2
    last = done.err.strip().splitlines()[-1]
    assert told in last, last


def test_far_fetched_names_are_not_suggested(kcrf):
    assert close_names("--rho1", ["--reach"]) == [] and close_names("--sigma", ["--sigma2"]) == ["--sigma2"]
    assert close_names("--tolerence", ["--tolerance"]) == ["--tolerance"]
    assert "Did you mean" not in kcrf("train", "--algorithms", "x", "data").err
    assert "Did you mean '--sigma2'" in kcrf("train", "--sigma", "1", "data").err


def test_hints_name_what_there_is():
    """Options that hints name exist, and what they answer does not."""
    known = {
        name: {option for one in command.get_params(click.Context(command)) for option in one.opts}
        for name, command in main.commands.items()
    }
    every = set().union(*known.values())
    for command, hints in OPTIONS.items():
        for names in hints:
            for name in names:
                if name in known[command]:
                    continue
                for value in ("3", "c2=1", "some.file", ""):
                    hint = option_hint(command, name, [name, value])
                    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", hint)) <= every | {name}, hint
    for name, hint in COMMANDS.items():
        assert name not in main.commands and re.search(r"\b(train|tag|inspect|import|evaluate)\b", hint)
