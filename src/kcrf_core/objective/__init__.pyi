from .composed_engine import ComposedEngine as ComposedEngine
from .engine import Engine as Engine, EngineBlocks as EngineBlocks, Predictions as Predictions, TermShape as TermShape
from .engine_partition import (
    Accumulator as Accumulator,
    DealtBlock as DealtBlock,
    EnginePartition as EnginePartition,
    EnginePartitionSpec as EnginePartitionSpec,
    MapSpec as MapSpec,
    SomeRows as SomeRows,
    plus as plus,
)
from .executors import (
    Executor as Executor,
    LocalExecutor as LocalExecutor,
)
from .inverse_powers import OPERATIONS_PER_CUBE as OPERATIONS_PER_CUBE, inverse_power_parts as inverse_power_parts
from .objective import (
    HessianBlocks as HessianBlocks,
    Objective as Objective,
    Point as Point,
    Slack as Slack,
    mixed_bound as mixed_bound,
)
from .thread_engine import ObjectiveTerm as ObjectiveTerm, ThreadEngine as ThreadEngine
from .vectors import HostVectors as HostVectors, Pairs as Pairs, Vector as Vector, Vectors as Vectors
