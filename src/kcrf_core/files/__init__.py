"""Files: atomic writing, `.npz` containers, compression, scratch folders, trees of values without pickle."""

from .._lazy import lazy

# The largest number that a model may hold, with its sign left out. The weights of a trained model have a squared length
# of at most 2 sigma2 N log Y (P is no larger than at zero), so that none comes near it, whatever the columns hold.
LARGEST = 1e100

__getattr__, __dir__, __all__ = lazy(__name__)
