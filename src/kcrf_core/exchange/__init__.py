"""Models of CRFsuite, CRF++ and Wapiti: read as models of ours, and written for their programs to read."""

from .._lazy import lazy

# What they are called, by the words for them.
PROGRAMS = {"crfsuite": "CRFsuite", "crf++": "CRF++", "wapiti": "Wapiti"}

__getattr__, __dir__, __all__ = lazy(__name__)
