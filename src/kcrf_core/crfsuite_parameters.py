"""Parameters that a script written for sklearn-crfsuite passes, and what becomes of them here.

c2                          1 / (2 sigma2), for all terms
max_iterations              the most passes over the data
algorithm, c1, min_freq     only where they ask for what is done anyway
all_possible_states         False: weights of features with labels that they are seen with; else all
all_possible_transitions    always so
the rest                    fine points of another optimiser: told of, and left aside
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from .errors import ConfigError

OTHER_OPTIMISER = ("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "keep_tempfiles")

TO_CALLER = 4  # of `fit`, which has the configuration made, which has parameters checked


def check_crfsuite_parameters(params: Mapping[str, Any]) -> None:
    """Refuse what cannot be had, warn of what has no effect."""
    if params["algorithm"] not in (None, "lbfgs"):
        raise ConfigError(
            f"algorithm={params['algorithm']!r}: only what 'lbfgs' maximises is there, and 'solver' says by which means"
        )
    if params["c1"]:
        raise ConfigError(f"c1={params['c1']!r}: there is no L1 penalty here; c1 must be 0, and c2 (or sigma2) is free")
    if params["min_freq"] not in (None, 0, 1):
        raise ConfigError(f"min_freq={params['min_freq']!r}: min_count leaves out attributes seen less often")
    if params["model_filename"] is not None:
        raise ConfigError("model_filename: write a model with save(path), read it with KernelCRF.load(path)")
    if _switched_off(params["all_possible_transitions"]):
        message = "all_possible_transitions=False has no effect: all of them have weights"
        warnings.warn(message, UserWarning, stacklevel=TO_CALLER)
    idle = [name for name in OTHER_OPTIMISER if params[name] not in (None, False)]
    if idle:
        warnings.warn(
            f"no effect: {', '.join(idle)}. Training stops when the optimum is certified to 'tolerance'",
            UserWarning,
            stacklevel=TO_CALLER,
        )


def observed_features(params: Mapping[str, Any]) -> bool:
    """Whether features have weights only for labels that they are seen with."""
    return _switched_off(params["all_possible_states"])


def _switched_off(value: Any) -> bool:
    return value is not None and not value


def prior_variance(sigma2: Any, c2: Any) -> Any:
    """sigma2, by either of its names."""
    if c2 is None:
        return sigma2
    if sigma2 not in (None, "auto"):
        raise ConfigError("c2 is another name for sigma2: give one of them")
    if isinstance(c2, bool) or not isinstance(c2, (int, float)) or not 0 < c2 < float("inf"):
        raise ConfigError(f"c2 must be a number greater than 0, not {c2!r}")
    return 1.0 / (2.0 * c2)
