"""kcrf_core: kernelised conditional random fields for sequences, as a library.

The method is that of Altun, Smola and Hofmann, *Exponential Families for Conditional Random Fields*, UAI 2004. Numbers
of equations, lemmas and remarks in docstrings are those of the paper.

docs/architecture.md lists the packages, each of which imports only from those before it.

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

from importlib import import_module

from ._lazy import lazy
from ._version import __version__ as __version__

_lazy_name, _, __all__ = lazy(__name__)


def __getattr__(name: str) -> object:
    if name == "metrics":  # a module
        return import_module(".scoring.metrics", __name__)
    if name == "scorers":  # `from kcrf_core import` shows no message of an AttributeError
        raise ImportError(
            "there are no scorers of sklearn-crfsuite: scikit-learn's make_scorer makes them, as "
            "make_scorer(kcrf_core.metrics.flat_accuracy_score)"
        )
    return _lazy_name(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
