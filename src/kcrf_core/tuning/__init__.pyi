from .search import Listener, Outcome, Search
from .space import Candidate, Space
from .tuning import Nested, Tuning, make_space, tune

EFFORTS: dict[str, float]

__all__ = [
    "Candidate",
    "Listener",
    "Nested",
    "Outcome",
    "Search",
    "Space",
    "Tuning",
    "make_space",
    "tune",
]
