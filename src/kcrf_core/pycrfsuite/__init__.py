"""The classes of python-crfsuite on this library: a program changes one line, `from kcrf_core import pycrfsuite`.

`Tagger` opens models of CRFsuite and of kcrf; `Trainer` writes models of CRFsuite, which both packages read.

>>> from kcrf_core.pycrfsuite import Tagger, Trainer
>>> trainer = Trainer(params={"c2": 0.1}, verbose=False)
>>> trainer.append([{"word": "the"}, {"word": "cat"}], ["DET", "NOUN"])
>>> trainer.train("words.crfsuite")
>>> with Tagger().open("words.crfsuite") as tagger:
...     tagger.tag([{"word": "the"}, {"word": "cat"}])
['DET', 'NOUN']
"""

from .._lazy import lazy

CRFSUITE_VERSION = "0.12"  # whose files are read and written

__getattr__, __dir__, __all__ = lazy(__name__)
__all__ = sorted([*__all__, "CRFSUITE_VERSION"])
