"""Fixtures for all tests."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.system import Workers

pytest_plugins = ["each_choice", "processor_time"]

ROOT = Path(__file__).parent.parent


def pytest_collection_finish():
    gc.freeze()  # modules and tests live to the end: the garbage collector need not look at them again and again


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
