"""Fixtures for all tests."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.system import Workers

pytest_plugins = ["processor_time"]

ROOT = Path(__file__).parent.parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave combinations of parameters to the slow suite where a test has `@pytest.mark.each_choice`.

    Every day each value of each parameter is tried, with values of the others that take turns: the n-th of each.
    """
    families = defaultdict(list)
    for item in items:
        if item.get_closest_marker("each_choice"):
            families[item.nodeid.partition("[")[0]].append((item, item.callspec.indices))
    for family in families.values():
        sizes = {name: 1 + max(indices[name] for _, indices in family) for name in family[0][1]}
        turns = [{name: turn % size for name, size in sizes.items()} for turn in range(max(sizes.values()))]
        for item, indices in family:
            if indices not in turns:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def rng():
    return np.random.default_rng(20040707)


@pytest.fixture
def workers():
    with Workers(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def sample_data():
    return ROOT / "sample_data"
