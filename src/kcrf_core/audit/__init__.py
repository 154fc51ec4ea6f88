"""Which labels are probably wrong: by models that have not seen them; how many errors that makes, and corrections."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
