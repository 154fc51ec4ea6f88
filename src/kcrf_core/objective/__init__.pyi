from .chunks import MOST_POSITIONS
from .composed_engine import ComposedEngine, ComposedTerm
from .engine import Engine, EngineBlocks, Predictions, TermShape
from .executors import Executor, ExecutorWorkers, LocalExecutor, executor_of
from .inverse_powers import OPERATIONS_PER_CUBE, inverse_power_parts
from .objective import HessianBlocks, Objective, Point, Slack, mixed_bound
from .parts import (
    Accumulator,
    DealtBlock,
    EnginePart,
    MapRecipe,
    PartRecipe,
    Recipe,
    SomeRows,
    summed,
    term_recipe,
)
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
    "EnginePart",
    "Executor",
    "ExecutorWorkers",
    "HessianBlocks",
    "HostVectors",
    "LocalExecutor",
    "MapRecipe",
    "Objective",
    "ObjectiveTerm",
    "Pairs",
    "PartRecipe",
    "Point",
    "Predictions",
    "Recipe",
    "Slack",
    "SomeRows",
    "TermShape",
    "ThreadEngine",
    "Vector",
    "Vectors",
    "executor_of",
    "inverse_power_parts",
    "mixed_bound",
    "summed",
    "term_recipe",
]
