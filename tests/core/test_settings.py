"""Each setting is declared once: options, parameters of KernelCRF and keys of a configuration follow from that."""

from __future__ import annotations

import inspect
import re

import click
import pytest

from kcrf_cli.main import main
from kcrf_core import KernelCRF
from kcrf_core.config import MODEL_SECTIONS, declared_options, parse_config, with_options
from kcrf_core.errors import ConfigError
from kcrf_core.system import AUTO, Automatic, Number, OneOf, Whole, boolean

# Options of train and tag that are an argument or a method of KernelCRF under another name.
CALLED = {
    "max_passes": "max_iterations",
    "seed": "random_state",
    "observed_features": "all_possible_states",
    "threads": "n_jobs",
    "group": "groups",
    "folds_file": "folds",
    "weight": "sample_weight",
    "dev": "X_dev",
    "marginals": "predict_marginals",
    "sequence_probability": "predict_nbest",
    "nbest": "predict_nbest",
    "model": "load",
    "output": "save",
    "missing_indicator": "missing",
    "lexicon": "lexicons",
    "json": "report_",
    **dict.fromkeys(("once", "require", "at_most", "forbid", "when_impossible", "no_rules"), "rules"),
}
# Those that it has not, and why.
FILES = "about files, and KernelCRF takes values that are read"
CONNECTION = "in the `ClusterEngine` that `engine` may be"
COMMAND = "about what a command prints or how it exits"
NOT_THERE = {
    "data": "X",
    "ignore": "columns are left out of X",
    **dict.fromkeys(
        ("columns", "separator", "header", "comment", "format", "tokens", "span_labels", "empty_labels", "text", "to"),
        FILES,
    ),
    **dict.fromkeys(("vectors", "dev_vectors"), "arrays stand within the dictionaries of X"),
    "engine_timeout": CONNECTION,
    **dict.fromkeys(("dump_config", "quiet", "log", "strict", "json_lines", "help_all", "explain_errors"), COMMAND),
    **dict.fromkeys(("allowed", "allowed_separator"), "`predict` and `predict_nbest` take lists of labels"),
    "set": "a path into `config`, which is a dictionary",
    "plain": "arrays and dictionaries get no features but their own",
    "basis": "pivots of a file, for runs that share them",
    "wapiti": "`config` is a dictionary, no template",
    **dict.fromkeys(("checkpoint", "checkpoint_every"), "`training.train` takes a `Checkpoint`"),
    **dict.fromkeys(("force", "free"), "`model.Decoder` takes `Wishes(force=True)`"),
    **dict.fromkeys(("review", "sets", "max_set"), "thresholds are those of `kcrf guarantee`, for files"),
}


def test_every_setting_is_a_parameter_of_the_estimator():
    parameters = inspect.signature(KernelCRF).parameters
    documentation = inspect.getdoc(KernelCRF)
    for name, option in declared_options().items():
        if option.section not in MODEL_SECTIONS:
            continue
        own = CALLED.get(name, name)
        assert own in parameters, f"KernelCRF lacks {name}"
        if own == name:
            default = option.setting.default
            usual = (None, "linear") if name == "kernel" else (default, AUTO if default is None else default)
            assert parameters[name].default in usual, name
            assert f"\n{name} : " in documentation


@pytest.mark.parametrize("name", ["train", "tag"])
def test_every_option_has_its_place_in_the_estimator(name):
    command = main.commands[name]
    options = {one.name for one in command.get_params(click.Context(command)) if one.name[0] != "_"}
    there = {*dir(KernelCRF), *inspect.signature(KernelCRF).parameters, *inspect.signature(KernelCRF.fit).parameters}
    lacking = {option for option in options - set(NOT_THERE) if CALLED.get(option, option) not in there}
    assert not lacking, f"KernelCRF lacks {sorted(lacking)}"
    assert not there & set(NOT_THERE), "in the list of what is not there"


def test_exceptions_are_options():
    commands = [main.commands[name] for name in ("train", "tag")]
    known = {one.name for command in commands for one in command.get_params(click.Context(command))}
    assert known >= {*CALLED, *NOT_THERE}


def test_every_setting_is_an_option_of_train():
    command = main.commands["train"]
    parameters = {one.name: one for one in command.get_params(click.Context(command))}
    for name, option in declared_options().items():
        assert parameters[name].help.endswith(".") and "`" not in parameters[name].help
        assert f"--{name.replace('_', '-')}" in parameters[name].opts
        kind = option.setting.kind
        assert parameters[name].is_flag == (kind is boolean)
        assert isinstance(parameters[name].type, click.Choice) == isinstance(kind, OneOf)


def test_words_in_quotes_of_help_are_options():
    """They become flags in the help of commands."""
    context = click.Context(main)
    known = {one.name for name in main.commands for one in main.commands[name].get_params(context)}
    for name, option in declared_options().items():
        named = set(re.findall("`([a-z0-9_]+)`", option.setting.help))
        assert named <= known, name


def test_every_option_has_a_place_in_the_configuration():
    for name, option in declared_options().items():
        value = option.setting.default
        if not option.path or value is None or isinstance(value, tuple) or option.section == "rules":
            continue  # rules are written where they are not the default
        given = {"kernel": "image", "shape": "8x8"} if name in ("reach", "blur") else {"kernel": "poly"}
        place = parse_config(with_options({}, {**given, name: value})).to_dict()
        for key in option.path.split(".")[:-1]:
            place = place[0] if key == "node" else place[key]
        assert place.get(option.path.split(".")[-1], False) == value, name


@pytest.mark.parametrize(
    ("kind", "good", "wrong", "message"),
    [
        (Number(0, above=True), 0.5, 0, "must be greater than 0, not 0"),
        (Number(0, 1, below=True), 0, 1, "must be at least 0 and below 1, not 1"),
        (Number(0, infinite=True), "inf", "-inf", "must be a finite number"),
        (Whole(1, 3), 2, 4, "must be from 1 to 3, not 4"),
        (Automatic(Whole(1)), AUTO, 0, "must be at least 1, not 0"),
        (OneOf(("linear", "poly")), "poly", "ploy", "must be one of linear, poly, not 'ploy' (did you mean 'poly'?)"),
        (boolean, True, 1, "must be true or false, not 1"),
    ],
)
def test_kinds(kind, good, wrong, message):
    kind(good)
    with pytest.raises(ConfigError) as caught:
        kind(wrong)
    assert message in str(caught.value)
