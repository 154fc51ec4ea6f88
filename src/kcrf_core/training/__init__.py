"""From a dataset and a configuration to a model with its certificate, in stages.

`training` is the run itself, a stage a method; `task` holds what all stages share, terms on their data and the P that
follows from them.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "checkpoint": ["Checkpoint", "EVERY"],
        "engines": ["OpenEngine", "named_engine", "open_engine"],
        "decoder_choice": ["DecoderChoice", "choose_decoder"],
        "dev": ["DevReport"],
        "growth": ["Growth"],
        "held_out": [
            "Blocks",
            "HoldOut",
            "Pieces",
            "SEQUENCES",
            "Split",
            "Splits",
            "apart",
            "blocks_of",
            "deal",
            "make_splits",
        ],
        "shard_run": ["SAMPLE_POSITIONS", "train_shards"],
        "structure": ["MIN_GAIN"],
        "training": ["Report", "Verdict", "judge", "problem_splits", "train"],
        "warm_start": ["WarmStart"],
    },
)
