"""Importing and using the library leaves the settings of the process as they were."""

from __future__ import annotations

import locale
import logging
import os
import signal
import threading
import warnings

import numpy as np
import pytest
import yaml
from test_estimator import number_data, word_data

from kcrf_core import KernelCRF
from kcrf_core.config import configuration_text, load_yaml


def settings():
    """What a program may have set for all of its process."""
    return {
        "errors of numpy": np.geterr(),
        "printing of numpy": np.get_printoptions(),
        "random numbers of numpy": np.random.get_state()[2],
        "warnings": list(warnings.filters),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)},
        "environment": dict(os.environ),
        "logging": (logging.root.level, list(logging.root.handlers), logging.getLogger("kcrf_core").level),
        "handlers": list(logging.getLogger("kcrf_core").handlers),
        "dumper of yaml": dict(yaml.SafeDumper.yaml_representers),
        "loader of yaml": dict(yaml.SafeLoader.yaml_constructors),
        "folder": os.getcwd(),
    }


def test_settings_of_the_process_stay(rng, tmp_path):
    import scipy.sparse
    import scipy.special  # noqa: F401  # these add filters of warnings by themselves

    before = settings()
    numbers, words = number_data(rng, 8), word_data(rng, 8)
    crf = KernelCRF(sigma2=3, size=5, verbose=True).fit(*numbers)
    crf.predict_proba(numbers[0])
    crf.save(tmp_path / "model.npz")
    KernelCRF.load(tmp_path / "model.npz").predict(numbers[0])
    KernelCRF(c2=1).audit(*words, folds=2)
    assert settings() == before


def test_located_mappings_are_known_to_our_dumper_alone():
    found = load_yaml("training: {sigma2: 3}", "text")
    assert configuration_text(found) == "training: {sigma2: 3}\n"
    with pytest.raises(yaml.representer.RepresenterError):
        yaml.safe_dump(found)


@pytest.mark.parametrize("api", ["one", "each"])
def test_settings_of_pytorch_stay(rng, api):
    """Set for all libraries at once, or, as later versions have it, for one of them."""
    torch = pytest.importorskip("torch")
    libraries = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
    libraries = [library for library in libraries if hasattr(library, "fp32_precision")]
    threads = torch.get_num_threads()
    try:
        if api == "one":
            torch.set_float32_matmul_precision("medium")
        elif not libraries:
            pytest.skip("this version of PyTorch has no precision of single libraries")
        else:
            torch.set_float32_matmul_precision("highest")
            libraries[0].fp32_precision = "tf32"
        torch.set_num_threads(3)
        before = [library.fp32_precision for library in libraries]
        X, y = number_data(rng, 8)
        KernelCRF(sigma2=3, size=5, engine="torch:cpu", n_jobs=1).fit(X, y)
        assert [library.fp32_precision for library in libraries] == before and torch.get_num_threads() == 3
        if api == "one":
            assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.set_num_threads(threads)


def test_settings_of_pytorch_while_threads_overlap():
    """The last block that ends restores them, on whichever thread."""
    torch = pytest.importorskip("torch")
    from kcrf_core.device import DeviceChoice, open_device

    device = open_device(DeviceChoice("torch:cpu"))
    torch.set_float32_matmul_precision("medium")
    try:
        entered, leave = threading.Event(), threading.Event()

        def work():
            with device.watched():
                entered.set()
                leave.wait()

        with device.watched():
            thread = threading.Thread(target=work)
            thread.start()
            entered.wait()
        assert torch.get_float32_matmul_precision() == "highest"
        leave.set()
        thread.join()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.slow
def test_loggers_of_dask_keep_their_levels():
    """While an engine is open they print nothing; a scheduler that is not there is the shortest such time."""
    pytest.importorskip("distributed")
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.errors import KcrfError
    from kcrf_core.training import open_engine

    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado", "asyncio")]
    before = [logger.level for logger in loggers]
    with pytest.raises(KcrfError), open_engine(ClusterEngine("tcp://127.0.0.1:9", timeout=0.2)):
        pass
    assert [logger.level for logger in loggers] == before
