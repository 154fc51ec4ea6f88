"""Conversion of the parameters of `KernelCRF` to the configuration that training takes.

As in scikit-learn's SVC, parameters that the kernel does not have are not looked at.

Scripts written for sklearn-crfsuite pass parameters that are treated so:

c2                          1 / (2 sigma2), for all terms
max_iterations              the most passes over the data
c1                          an L1 penalty, as in CRFsuite
algorithm                   "lbfgs" alone
all_possible_states         False: weights of features with labels that they are seen with; else all
all_possible_transitions    always so
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import cleandoc
from textwrap import wrap
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..config import EMBEDDINGS, MODEL_SECTIONS, MapConfig, declared_options, parse_config, plain_kernels, with_options
from ..encoding import NUMBER_KERNEL, kernel_is_open, lookups, number_terms, with_terms
from ..errors import ConfigError
from ..kernels import KERNELS, KernelConfig
from ..scoring import Decision
from ..system import ANOTHER, AUTO, Number, OneOf, available_threads, load_plugin, settings_of

Estimator = TypeVar("Estimator")
PluginNames: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None

OFF = (False, 0)

_STOPPING = "leave it out: training stops when the optimum is proven to be near, within 'tolerance'"
_OTHER = "leave it out: 'lbfgs' is the only algorithm"
PORTED = {  # parameters of sklearn-crfsuite that have another name here, or none
    "min_freq": "use 'min_count', which counts attributes",
    "model_filename": "leave it out, and write the model by save(path) after fit",
    "keep_tempfiles": "leave it out: there are no temporary files",
    "trainer_cls": "leave it out: messages of training go to the logger 'kcrf_core'",
    **dict.fromkeys(("epsilon", "delta", "period"), _STOPPING),
    **dict.fromkeys(("linesearch", "max_linesearch", "num_memories"), _STOPPING),
    **dict.fromkeys(("calibration_eta", "calibration_rate", "calibration_samples"), _OTHER),
    **dict.fromkeys(("calibration_candidates", "calibration_max_trials"), _OTHER),
    **dict.fromkeys(("pa_type", "c", "error_sensitive", "averaging", "variance"), _OTHER),
}


def documented(kind: type[Estimator]) -> type[Estimator]:
    """Put the declared settings into the docstring of the estimator."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]  # a dataclass, as the caller knows
    options = [one for one in declared_options().values() if one.section in MODEL_SECTIONS and one.name in known]
    lines: list[str] = []
    for one in options:
        names = one.setting.kind if isinstance(one.setting.kind, OneOf) else ()
        choices = [", ".join(f'"{each}"' for each in names) + "."] if names else []
        text = " ".join([f"{one.name} :", *choices, one.setting.help])
        lines += wrap(text, 116, subsequent_indent=" " * 4, break_on_hyphens=False)
    # Python takes indentation off docstrings since 3.13.
    kind.__doc__ = cleandoc(kind.__doc__ or "").replace("{settings}", "\n".join(lines))
    return kind


def ported(kind: type[Estimator]) -> type[Estimator]:
    """Make the estimator say what takes the place of parameters of sklearn-crfsuite."""
    made = kind.__init__

    @wraps(made)  # whose signature scikit-learn reads
    def checked(self: Any, *arguments: Any, **parameters: Any) -> None:
        foreign = next((name for name in parameters if name in PORTED), None)
        if foreign is not None:
            lacking = f"{kind.__name__} has no parameter {foreign!r} of sklearn-crfsuite"
            raise TypeError(f"{lacking}: {PORTED[foreign]}")
        made(self, *arguments, **parameters)

    kind.__init__ = checked  # type: ignore[method-assign]
    return kind


BONUS = Number(automatic=True)


def decision_of(cost: Any, decode: Any, span_bonus: Any) -> Decision:
    """Return the rule by which `predict` chooses labels: the model's, unless parameters give another."""
    if cost is not None and not isinstance(cost, Mapping):
        raise ConfigError(f"cost={cost!r}: a dictionary from labels to numbers is needed, as {{'event': 20}}")
    costs = {str(_plain(label)): _plain(value) for label, value in (cost or {}).items()}
    return Decision(None if decode in (None, AUTO) else decode, costs, BONUS(_plain(span_bonus)))


def train_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that `train` takes beside a configuration."""
    if params["certify"] not in ("estimate", "exact"):
        raise ConfigError(f"certify={params['certify']!r}: there are estimate and exact")
    prune = params["prune"]
    if prune is not None and not (isinstance(prune, (int, float, np.number)) and prune >= 0):
        raise ConfigError(f"prune={prune!r}: a number of at least 0 is needed")
    return {name: params[name] for name in ("certify", "prune", "select_terms")}


def raw_config(
    params: Mapping[str, Any],
    columns: int | Sequence[str] | None,
    vectors: Sequence[str] = (),
    positions: int = 0,
    mixed: bool = False,
    taken: Collection[str] = (),
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the configuration for data with this many columns, or names of columns, and vectors by name.

    Columns are None for attributes, and `mixed` if there are words among them; those of a data frame that are `taken`
    are no inputs. It is that of a file, with options to lay over it once there are default features, and its name in
    messages.
    """
    if params["config"] is not None:
        _check_old_names(params)
        raw = _given_config(params, columns, mixed, taken)
        if columns is not None and not mixed and kernel_is_open(raw, {}, positions):
            raw["terms"] = number_terms()
        return raw, {}, "config"
    looked_up, of_labels = _lookup_settings(params, columns, mixed), _label_settings(params)
    params = {name: _plain(value) for name, value in params.items()}
    _check_old_names(params)
    options = {name: params[name] for name in _names("chain", "training") if params[name] is not None}
    kernel = params["kernel"]
    if kernel is None:
        kernel = KernelConfig.type
        asked = {name: params[name] for name, usual in (("map", AUTO), ("cut_off", 1)) if params[name] != usual}
        if mixed:
            usual = dict.fromkeys(KERNELS[NUMBER_KERNEL].settings()) | vars(MapConfig())
            options |= asked | {name: params[name] for name in usual if params.get(name) not in (None, usual[name])}
        asked |= {"c1": params["c1"], "observed_features": params["all_possible_states"] in OFF}
        if columns is not None and not mixed and kernel_is_open({}, asked, positions):
            node = number_terms()[0]
            kernel, params["size"] = node["kernel"]["type"], params["size"] or node["map"]["size"]
    if isinstance(kernel, Mapping):
        options["terms.node.kernel"] = dict(kernel)
    else:
        known = plain_kernels()
        if kernel not in known:
            raise ConfigError(f"kernel={kernel!r}: there are {', '.join(known[:-1])} and {known[-1]}; {ANOTHER}")
        if not mixed or params["kernel"] is not None:
            options["kernel"] = kernel
        options |= {name: params[name] for name in KERNELS[kernel].settings() if params.get(name) is not None}
    if params["cosine"]:
        options["cosine"] = params["cosine"]
    if kernel != KernelConfig.type or params["map"] != AUTO:
        options |= {name: params[name] for name in settings_of(MapConfig) if params.get(name) is not None}
        options["map"] = params["map"]
    if params["max_iterations"] is not None:
        options["max_passes"] = params["max_iterations"]
    if params["all_possible_states"] in OFF:
        options["observed_features"] = True
    options["seed"] = seed_of(params["random_state"])
    raw = {"min_count": 1 if params["min_count"] is None else params["min_count"], **of_labels}
    shape = {key: params[key] for key in ("scale", "window") if params[key] is not None}
    if mixed:
        if params["scale"] not in (None, AUTO):
            raise ConfigError("scale is for columns of numbers, and some are words: give 'config' with features")
        raw |= column_titles(columns)
        options |= {} if params["window"] is None else {"window": params["window"]}
        options |= {"missing_indicator": True} if params["missing"] == "indicator" else {}
    elif columns is not None:
        raw |= column_titles(columns)
        names = [name for name in raw["columns"][:-1] if name != params["group"]]
        shape |= {} if params["group"] is None else {"group": params["group"]}
        lacking = {} if params["missing"] is None else {"missing": params["missing"]}
        raw["features"] = [{"name": "x", "columns": names, "type": "real", **shape, **lacking}]
    elif vectors or looked_up:
        raw["features"] = [{"type": "attributes"}, *({"vectors": name, **shape} for name in vectors)]
    elif params["window"] is not None:
        raise ConfigError("window is for arrays: put attributes of neighbours into the dictionaries")
    if mixed:
        return {**raw, **looked_up}, options, "KernelCRF"
    if not looked_up:
        return with_options(raw, options), {}, "KernelCRF"
    for feature in lookups(parse_config(looked_up, "KernelCRF"), {}):
        own = shape if feature["lookup"] == EMBEDDINGS else {key: shape[key] for key in ("window",) if key in shape}
        raw["features"].append({**feature, **own})
    raw = with_options({**raw, **looked_up, "suggested": True}, options)
    return with_terms(raw, 0, (), "KernelCRF"), {}, "KernelCRF"


def _check_old_names(params: Mapping[str, Any]) -> None:
    """Refuse, or warn of, values of parameters of sklearn-crfsuite that have no counterpart."""
    if params["algorithm"] not in (None, "lbfgs"):
        raise ConfigError(
            f"algorithm={params['algorithm']!r}: only 'lbfgs' is supported; 'solver' chooses a way to its optimum"
        )
    if params["all_possible_transitions"] in OFF:
        message = "all_possible_transitions=False has no effect: all of them have weights"
        warnings.warn(message, UserWarning, stacklevel=5)  # in the caller of `fit`


def _label_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of labels that are not known, and of rules that labels obey."""
    found: dict[str, Any] = {name: True for name in ("label_sets", "soft_labels") if params[name]}
    if params["unobserved"] is not None:
        found["unobserved"] = str(_plain(params["unobserved"]))
    if params["rules"] is not None:
        found["rules"] = dict(params["rules"])
    return found


def _given_config(
    params: Mapping[str, Any], columns: int | Sequence[str] | None, mixed: bool, taken: Collection[str]
) -> dict[str, Any]:
    """Return the parameter `config`, or no settings without it, for data with these columns.

    A data frame names its columns by itself, and those that are `taken` for sequences, groups and the like are no
    inputs that the configuration could leave out.
    """
    config = {} if params["config"] is None else params["config"]
    if not isinstance(config, Mapping):
        raise ConfigError(f"config={config!r}: a dictionary in the layout of a configuration file is needed")
    titles, of_labels = column_titles(columns), _label_settings(params)
    of_frame = {} if isinstance(columns, int) else titles
    raw = {**titles, **of_labels, **config, **of_frame, **_lookup_settings(params, columns, mixed)}
    if "rules" in of_labels:
        raw["rules"] = of_labels["rules"]
    if isinstance(raw.get("sequence"), str) and raw["sequence"] in taken:
        del raw["sequence"]
    ignored = raw.pop("ignore", None) or ()
    left_out = [name for name in ([ignored] if isinstance(ignored, str) else ignored) if name not in taken]
    return {**raw, "ignore": left_out} if left_out else raw


def _lookup_settings(params: Mapping[str, Any], columns: int | Sequence[str] | None, mixed: bool) -> dict[str, Any]:
    """Return the settings of embeddings, lexicons and clusters, if there are any."""
    found: dict[str, Any] = {}
    if params["embeddings"] is not None:
        found = {"embeddings": os.fspath(params["embeddings"])}
    if params["lexicons"] is not None:
        if not isinstance(params["lexicons"], Mapping):
            raise ConfigError(f"lexicons={params['lexicons']!r}: a dictionary of files or lists of entries is needed")
        found["lexicons"] = {
            name: os.fspath(given) if isinstance(given, (str, os.PathLike)) else list(given)
            for name, given in params["lexicons"].items()
        }
        found["lexicon_case"] = params["lexicon_case"]
    if params["clusters"] is not None:
        found["clusters"] = os.fspath(params["clusters"])
    if found and columns is not None and not mixed:
        raise ConfigError("embeddings, lexicons and clusters are for dictionaries with a word: arrays have none")
    column = params["lookup_column"] or ("word" if columns is None else None)
    return found | ({"lookup_column": column} if found and column is not None else {})


def column_titles(columns: int | Sequence[str] | None) -> dict[str, Any]:
    """Return names of columns, as configurations have them; nothing for attributes."""
    if isinstance(columns, int):
        columns = [*(f"c{number}" for number in range(columns)), "label"]
        return {"columns": columns}
    # Files with the columns of a data frame are as pandas writes them.
    return {} if columns is None else {"columns": list(columns), "separator": ",", "header": True}


def search_config(
    params: Mapping[str, Any],
    columns: int | Sequence[str] | None,
    positions: int = 0,
    mixed: bool = False,
    taken: Collection[str] = (),
) -> dict[str, Any]:
    """Return the configuration that a search begins with, for data as `raw_config` takes it.

    Where `config` has no value for them, it keeps seed, solver, tolerance, the scheme of labels and the decoder.
    """
    raw = _given_config(params, columns, mixed or not isinstance(columns, int), taken)
    numbers = columns is not None and not mixed
    if raw.get("features") is not None and numbers and kernel_is_open(raw, {}, positions):
        raw["terms"] = number_terms()  # as `fit` has them
    kept = ("solver", "tolerance", "scheme", "decode", "span_bonus", "near_copies")
    named = {name: _plain(params[name]) for name in kept}
    training = {name: value for name, value in named.items() if value not in (None, AUTO)}
    training["seed"] = seed_of(params["random_state"])
    return {**raw, "training": {**training, **(raw.get("training") or {})}}


def _names(*sections: str) -> list[str]:
    """List the parameters that are declared settings of these sections under the same name."""
    other = ("max_passes", "seed", "observed_features")  # max_iterations, random_state, all_possible_states
    return [name for name, one in declared_options().items() if one.section in sections and name not in other]


def _plain(value: Any) -> Any:
    """Return numbers of NumPy, which grids are made of, and ranges as plain values."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, (range, tuple)) else value


def load_plugins(plugin: PluginNames) -> None:
    """Load the plug-ins of a parameter: one, several or none."""
    for one in [plugin] if isinstance(plugin, (str, os.PathLike)) else plugin or ():
        load_plugin(one)


def seed_of(random_state: Any) -> int:
    """Return the random seed of a `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return 0 if random_state is None else random_state


def threads_of(n_jobs: Any) -> int:
    """Return the number of threads by scikit-learn's rule: None is one, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ConfigError(f"n_jobs must be a whole number other than 0, not {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, available_threads() + 1 + int(n_jobs))
