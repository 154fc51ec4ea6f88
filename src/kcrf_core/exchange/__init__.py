"""Models of CRFsuite, CRF++ and Wapiti: read as models of ours, and written for these programs and for kcrf-tag."""

from .._lazy import lazy

# Programs that models are written for, by the words for them.
PROGRAMS = {"crfsuite": "CRFsuite", "crf++": "CRF++", "wapiti": "Wapiti", "runtime": "kcrf-tag"}

__getattr__, __dir__, __all__ = lazy(__name__)
