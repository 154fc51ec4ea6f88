"""kcrf_core: kernelised conditional random fields for sequences, as a library.

What is public stands in `__all__` and is described in docs/python.md. Two ways in:

`KernelCRF` takes arrays or dictionaries and is used like a scikit-learn estimator:

>>> from kcrf_core import KernelCRF
>>> crf = KernelCRF(kernel="rbf", sigma2=10).fit([[[0.0], [3.0]], [[3.0], [0.0]]], [["a", "b"], ["b", "a"]])
>>> crf.predict([[[0.1], [2.9], [0.2]]])
[['a', 'b', 'a']]

and the steps of the commands take files:

>>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
>>> corpus = read_corpus("sample_data/pitch_accent.conll")
>>> config = parse_config({"training": {"sigma2": 1.0}})
>>> encoding, dataset = fit_encoding(config, corpus)
>>> with Workers() as workers:
...     model, report = train(encoding, dataset, config, workers=workers)
>>> report.result.reason
'certified'
>>> len(model.tag_corpus(corpus)) == corpus.positions
True

Names are imported when they are first used, so that importing the package itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import metrics
    from .config import Config
    from .config_reader import parse_config
    from .corpus import Corpus
    from .encoding import Encoding
    from .encoding_fitting import fit_encoding
    from .errors import ConfigError, DataError, FileFormatError, KcrfError, NumericError
    from .estimator import KernelCRF
    from .estimator import KernelCRF as CRF
    from .evaluation import Evaluation, evaluate
    from .formats import read_corpus
    from .model import Model
    from .parallel import Workers
    from .training import Report, train

# Public names and the modules that define them.
_HOMES = {
    "Config": "config",
    "ConfigError": "errors",
    "Corpus": "corpus",
    "DataError": "errors",
    "Encoding": "encoding",
    "Evaluation": "evaluation",
    "FileFormatError": "errors",
    "KcrfError": "errors",
    "KernelCRF": "estimator",
    "Model": "model",
    "NumericError": "errors",
    "Report": "training",
    "Workers": "parallel",
    "evaluate": "evaluation",
    "fit_encoding": "encoding_fitting",
    "parse_config": "config_reader",
    "read_corpus": "formats",
    "train": "training",
}

__all__ = [
    "CRF",
    "Config",
    "ConfigError",
    "Corpus",
    "DataError",
    "Encoding",
    "Evaluation",
    "FileFormatError",
    "KcrfError",
    "KernelCRF",
    "Model",
    "NumericError",
    "Report",
    "Workers",
    "__version__",
    "evaluate",
    "fit_encoding",
    "metrics",
    "parse_config",
    "read_corpus",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module(".metrics", __name__)
    if name == "CRF":  # what the class is called in sklearn-crfsuite
        return __getattr__("KernelCRF")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
