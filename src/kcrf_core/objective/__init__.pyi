from .chunks import MOST_POSITIONS
from .composed_engine import ComposedEngine, ComposedTerm
from .engine import Engine, EngineBlocks, Predictions, TermShape
from .engine_partition import (
    Accumulator,
    DealtBlock,
    EnginePartition,
    EnginePartitionSpec,
    MapSpec,
    PartitionSpec,
    SomeRows,
    plus,
    term_spec,
)
from .executors import Executor, ExecutorWorkers, LocalExecutor, executor_of
from .inverse_powers import OPERATIONS_PER_CUBE, inverse_power_parts
from .objective import HessianBlocks, Objective, Point, Slack, mixed_bound
from .thread_engine import ObjectiveTerm, ThreadEngine
from .vectors import HostVectors, Pairs, Vector, Vectors

__all__ = [
    "MOST_POSITIONS",
    "OPERATIONS_PER_CUBE",
    "Accumulator",
    "ComposedEngine",
    "ComposedTerm",
    "DealtBlock",
    "Engine",
    "EngineBlocks",
    "EnginePartition",
    "EnginePartitionSpec",
    "Executor",
    "ExecutorWorkers",
    "HessianBlocks",
    "HostVectors",
    "LocalExecutor",
    "MapSpec",
    "Objective",
    "ObjectiveTerm",
    "Pairs",
    "PartitionSpec",
    "Point",
    "Predictions",
    "Slack",
    "SomeRows",
    "TermShape",
    "ThreadEngine",
    "Vector",
    "Vectors",
    "executor_of",
    "inverse_power_parts",
    "mixed_bound",
    "plus",
    "term_spec",
]
