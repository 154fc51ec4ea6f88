"""Grids: what was typed is kept, what was meant is used, what means nothing is told."""

from __future__ import annotations

import pytest

from kcrf_core.config import parse_config, with_options
from kcrf_core.errors import ConfigError
from kcrf_core.selection import make_settings, parse_grid
from kcrf_core.selection.grid import path_of


def test_values_are_those_of_yaml():
    grid = parse_grid(["degree=1,2", "kernel=poly, rbf", "tolerance=1e-3,0.01", "window=-1..1,0..0", "f.x=[0,1],[2]"])
    assert grid == {
        "degree": [1, 2],
        "kernel": ["poly", "rbf"],
        "tolerance": [0.001, 0.01],
        "window": ["-1..1", "0..0"],
        "f.x": [[0, 1], [2]],
    }


def test_numbers_of_a_grid_are_read_as_people_write_them():
    grid = parse_grid(["sigma2=1e5,010,1.50,.5,1_000", "window=1:2", "scheme=no,iob2"])
    assert grid == {"sigma2": [1e5, 10.0, 1.5, 0.5, 1000.0], "window": ["1:2"], "scheme": ["no", "iob2"]}
    with pytest.raises(ConfigError, match=r"'window' must be .*1:2"):
        parse_config(with_options({}, make_settings({"window": grid["window"]}, {})[0].options))


def test_settings_are_named_as_typed_and_mean_options():
    settings = make_settings(parse_grid(["c2=0.5,1e-1", "min-count=2", "select=greedy"]), {"kernel": "poly"})
    assert [setting.name for setting in settings] == [
        "c2=0.5 min-count=2 select=greedy",
        "c2=0.1 min-count=2 select=greedy",
    ]
    assert settings[0].options == {"kernel": "poly", "sigma2": 1.0, "min_count": 2, "select": "greedy"}
    assert settings[1].options["sigma2"] == 5.0
    assert [setting.name for setting in make_settings({}, {})] == ["all"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["degree"], "KEY=VALUE"),
        (["degree="], "KEY=VALUE"),
        (["=1"], "KEY=VALUE"),
        ([""], "KEY=VALUE"),
        (["degree=1,"], "cannot read"),
        (["degree=1,,2"], "cannot read"),
        (["degree=]"], "cannot read"),
        (["degree=1,1.0"], "twice"),
        (["degree=1", "degree=2"], "names 'degree' twice"),
        (["sigma2=1", "c2=2"], "names 'c2' twice .as 'sigma2'."),
        (["degree=1", "terms.node.kernel.degree=2"], "twice"),
        (["degre=1"], "did you mean 'degree'"),
        (["min_cout=1"], "did you mean 'min-count'"),
        (["jobs=1,2"], "no option or key 'jobs'"),
    ],
)
def test_grids_that_are_none(entries, message):
    with pytest.raises(ConfigError, match=message):
        parse_grid(entries)


def test_a_grid_may_not_set_what_an_option_sets():
    with pytest.raises(ConfigError, match="'c2', and so does an option"):
        make_settings(parse_grid(["c2=1,2"]), {"sigma2": 3.0})
    with pytest.raises(ConfigError, match=r"c2 must be a number, 0 or more .*, not -1"):
        make_settings(parse_grid(["c2=-1"]), {})


def test_paths():
    assert path_of("c2") == path_of("sigma2") == "training.sigma2"
    assert path_of("max-passes") == "training.max_passes"
    assert path_of("terms.a.sigma2") == "terms.a.sigma2"
