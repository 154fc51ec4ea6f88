"""Each setting is declared once: options, parameters of KernelCRF and keys of a configuration follow from that."""

from __future__ import annotations

import inspect

import click
import pytest

from kcrf_cli.main import main
from kcrf_core import KernelCRF
from kcrf_core.config import MODEL_SECTIONS, declared_options, parse_config, with_options
from kcrf_core.errors import ConfigError
from kcrf_core.system import AUTO, Automatic, Number, OneOf, Whole, boolean

# Parameters that scikit-learn and sklearn-crfsuite call otherwise.
RENAMED = {"max_passes": "max_iterations", "seed": "random_state", "observed_features": "all_possible_states"}


def test_every_setting_is_a_parameter_of_the_estimator():
    parameters = inspect.signature(KernelCRF).parameters
    documentation = inspect.getdoc(KernelCRF)
    for name, option in declared_options().items():
        if option.section not in MODEL_SECTIONS:
            continue
        own = RENAMED.get(name, name)
        assert own in parameters, f"KernelCRF lacks {name}"
        if own == name:
            default = option.setting.default
            assert parameters[name].default in (default, AUTO if default is None else default), name
            assert f"\n{name} : " in documentation


def test_every_setting_is_an_option_of_train():
    command = main.commands["train"]
    parameters = {one.name: one for one in command.get_params(click.Context(command))}
    for name, option in declared_options().items():
        assert parameters[name].help.endswith(".") and "`" not in parameters[name].help
        assert f"--{name.replace('_', '-')}" in parameters[name].opts
        kind = option.setting.kind
        assert parameters[name].is_flag == (kind is boolean)
        assert isinstance(parameters[name].type, click.Choice) == isinstance(kind, OneOf)


def test_every_option_has_a_place_in_the_configuration():
    for name, option in declared_options().items():
        value = option.setting.default
        if not option.path or value is None or isinstance(value, tuple):
            continue
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
