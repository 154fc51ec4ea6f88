"""The negative log-posterior P: a sum over shards of sequences, its gradient, its Hessian and what they prove.

An engine does the arithmetic and owns the vectors; `Posterior` is the prior plus an engine.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "composed_engine": ["ComposedEngine", "ComposedTerm"],
        "crews": ["Crew", "LocalCrew"],
        "engine": ["Engine", "EngineBlocks", "Predictions", "TermShape", "Vector"],
        "inverse_powers": ["OPERATIONS_PER_CUBE", "inverse_power_parts"],
        "parts": [
            "Accumulator",
            "DealtBlock",
            "EnginePart",
            "MapRecipe",
            "PartRecipe",
            "Recipe",
            "SomeRows",
            "recipes_of",
            "summed",
            "term_recipe",
        ],
        "posterior": ["HessianBlocks", "Point", "Posterior", "Slack", "mixed_bound"],
        "shards": ["MOST_POSITIONS"],
        "vectors": ["Vectors", "minimised_model"],
        "thread_engine": ["ObjectiveTerm", "ThreadEngine", "spread_rows"],
    },
)
