"""From a dataset and a configuration to a model with its certificate, in stages.

`training` is the run itself, a stage a method; `task` holds what all stages share, terms on their data and the P that
follows from them.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
