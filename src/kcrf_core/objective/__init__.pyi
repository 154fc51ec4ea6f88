from .composed_engine import ComposedEngine, ComposedTerm
from .crews import Crew, LocalCrew
from .engine import Engine, EngineBlocks, Predictions, TermShape, Vector
from .inverse_powers import OPERATIONS_PER_CUBE, inverse_power_parts
from .parts import (
    Accumulator,
    DealtBlock,
    EnginePart,
    MapRecipe,
    PartRecipe,
    Recipe,
    SomeRows,
    recipes_of,
    summed,
    term_recipe,
)
from .posterior import HessianBlocks, Point, Posterior, Slack, mixed_bound
from .shards import MOST_POSITIONS
from .thread_engine import ObjectiveTerm, ThreadEngine, spread_rows
from .vectors import Vectors, minimised_model

__all__ = [
    "MOST_POSITIONS",
    "OPERATIONS_PER_CUBE",
    "Accumulator",
    "ComposedEngine",
    "ComposedTerm",
    "Crew",
    "DealtBlock",
    "Engine",
    "EngineBlocks",
    "EnginePart",
    "HessianBlocks",
    "LocalCrew",
    "MapRecipe",
    "ObjectiveTerm",
    "PartRecipe",
    "Point",
    "Posterior",
    "Predictions",
    "Recipe",
    "Slack",
    "SomeRows",
    "TermShape",
    "ThreadEngine",
    "Vector",
    "Vectors",
    "inverse_power_parts",
    "minimised_model",
    "mixed_bound",
    "recipes_of",
    "spread_rows",
    "summed",
    "term_recipe",
]
