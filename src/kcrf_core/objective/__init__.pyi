from .bounds import Mixture as Mixture, Slack as Slack, SparseDual as SparseDual
from .engine import Engine as Engine
from .executors import (
    Arguments as Arguments,
    Deal as Deal,
    Executor as Executor,
    LocalExecutor as LocalExecutor,
    Method as Method,
    called as called,
    dealt_here as dealt_here,
)
from .inverse_powers import OPERATIONS_PER_CUBE as OPERATIONS_PER_CUBE, inverse_power_parts as inverse_power_parts
from .objective import HessianBlocks as HessianBlocks, Objective as Objective, Point as Point
from .partition import Partition as Partition, TermPlace as TermPlace
from .sources import PartitionSource as PartitionSource
from .sums import Accumulator as Accumulator, SomeRows as SomeRows, plus as plus
from .terms import (
    DistantRows as DistantRows,
    ObjectiveTerm as ObjectiveTerm,
    Source as Source,
    block_slices as block_slices,
)
from .vectors import HostVectors as HostVectors, Pairs as Pairs, Vector as Vector, Vectors as Vectors
