"""The negative log-posterior P: a sum over chunks of sequences, its gradient, its Hessian and what they prove.

An engine does the arithmetic and owns the vectors; `Objective` is the prior plus an engine.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ._sweeps import model_minimum, sweep
    from .bounds import Mixture, Slack, SparseDual
    from .engine import Engine
    from .executors import Arguments, Deal, Executor, LocalExecutor, Method, called, dealt_here
    from .inverse_powers import OPERATIONS_PER_CUBE, inverse_power_parts
    from .objective import HessianBlocks, Objective, Point
    from .partition import Partition, TermPlace
    from .sources import PartitionSource
    from .sums import Accumulator, SomeRows, plus
    from .terms import DistantRows, ObjectiveTerm, Source, block_slices
    from .vectors import HostVectors, Pairs, Vector, Vectors
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
