"""What a configuration leaves open about a term: its map, the number of its pivots, and whether there is room."""

from __future__ import annotations

from ..config import GRADIENT, TermConfig
from ..errors import ConfigError
from ..kernels import Inputs
from ..maps import LITTLE_LEFT, MOST_PIVOTS, automatic_size, conjunction_count, why_not
from ..system import Workers, size_text

# An automatic map enumerates no more than this: above it, pivots take less memory.
MOST_CONJUNCTIONS = 300_000_000
# Numbers, keys and hashes while columns are merged, if every conjunction were seen once.
BYTES_PER_CONJUNCTION = 60

# Part of the positions whose input must have stood elsewhere before, for sharing to pay.
WORTH_SHARING = 0.4

# For each pair of pivots: their kernel matrix in double precision, factorised in place; `full` takes copies of it.
BYTES_PER_PAIR, FULL_BYTES_PER_PAIR = 8, 24


def map_type(term: TermConfig, inputs: Inputs) -> str:
    """The map of a term; `auto` is explicit where that is exact, unless pivots were asked for.

    How much memory there is must not decide it, or the result would depend on that.
    """
    if term.map.type != "auto":
        return term.map.type
    pivots = term.map.size is not None or term.map.select == GRADIENT
    if pivots or not term.kernel.kernel.explicit:
        return "reduced"
    if term.kernel.type == "linear":
        return "explicit"
    degree = term.kernel.degree
    if degree == 1 and not term.kernel.cosine:
        return "explicit"
    fits = why_not(inputs, degree) is None and conjunction_count(inputs, degree) <= MOST_CONJUNCTIONS
    return "explicit" if fits else "reduced"


def pivot_limits(term: TermConfig, positions: int) -> tuple[int, float]:
    """How many pivots a term may have, and the part of the trace that is little enough to stop before."""
    if term.map.size is not None:
        return min(term.map.size, positions), term.map.residual
    return automatic_size(positions), term.map.residual or LITTLE_LEFT


def why_so_many(term: TermConfig, size: int, found: int, positions: int) -> str:
    """What decided the number of pivots, where no option did."""
    if term.map.size is not None:
        return ""
    if found < size:
        return ", as many as matter"
    if size == positions:
        return ", every position"
    if size == MOST_PIVOTS:
        return ", the most without --size"
    return f", as many as are soon chosen among {positions:,} positions"


def worth_sharing(distinct: int, positions: int) -> bool:
    return distinct <= (1 - WORTH_SHARING) * positions


def check_memory(term: TermConfig, what: str, needed: int, workers: Workers) -> None:
    """Refuse what has to be in memory at once and cannot, before the work that leads to it."""
    if needed > workers.memory.total:
        raise ConfigError(
            f"term '{term.name}': {what} takes up to {size_text(needed)}, and there is memory for "
            f"{size_text(workers.memory.total)} (--memory); 'map: reduced' with fewer pivots needs less"
        )
