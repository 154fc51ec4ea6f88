"""Linear models of kcrf in the form of the library, made without NumPy and without a `Model`.

It is for the kind that `train` and `KernelCRF` make of attributes: one linear term, first order, no rules, no
calibration and no bonus. The bytes are those of `runtime_image`, but for weights of zero, which it leaves out.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import sub
from typing import Any

from ..errors import KcrfError
from ..files import LARGEST, Contents, PlainContents, read_container
from ..model import attribute_image
from ..runtime import RuntimeModel

NODE = "node"  # with two labels, one column of weights for both
STATE = "state"
DECODERS = {"viterbi": 0, "posterior": 1}
MEMBERS = {"magic", "kind", "format", "version", "info", "decode", "encoding", "terms"}
EDGES = ("transitions", 2), ("start", 1), ("end", 1)
BREAKS = set("\t\n\r\0")


def linear_model(data: bytes, source: str) -> RuntimeModel | None:
    """Return a model in the form of the library; None: it is of another kind or damaged, which its reader says."""
    try:
        contents = read_container(source, "model", data=data, form=PlainContents)
        return RuntimeModel(library_image(contents)) if is_plain(contents) else None
    except (KcrfError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def is_plain(contents: Contents) -> bool:
    """Return True for a model of one linear term of attributes, of first order."""
    header, (feature,), (term,) = contents.header, contents.header["encoding"]["features"], contents.header["terms"]
    name, columns = feature["config"]["name"], header["encoding"]["columns"]
    config = {"name": name, "type": "attributes", "window": [0]}
    encoding = {"columns": columns[:1], "features": [{"complete": feature["complete"], "config": config}]}
    kind = {"name": term["name"], "type": term["type"], "map": "explicit", "features": [name]}
    return (
        header.keys() == MEMBERS
        and header["encoding"] == encoding | {"format": "crfsuite"}
        and term["type"] in (NODE, STATE)
        and term in (kind, kind | {"weights": "sparse"})
        and not any(name == "triples" or name.endswith(".allowed") for name in contents.arrays)
    )


def library_image(contents: Contents) -> bytes:
    """Return the model in the form of the library."""
    labels, names = contents.strings("labels"), contents.strings("feature0.values")
    Y, D = len(labels), len(names)
    width = 1 if Y == 2 and contents.header["terms"][0]["type"] == NODE else Y
    if len({*labels}) < Y or "" in labels or BREAKS & {*"".join(labels)} or len({*names}) < D:
        raise contents.error("a label or an attribute is no name, or is there twice")
    del names
    ends = contents.array("feature0.values.ends", "int64", 1)
    starts = array("q", [0])
    starts.frombytes(ends[:-1].tobytes())
    text = contents.array("feature0.values.text", "uint8", 1), starts, array("q", map(sub, ends.tolist(), starts))
    transitions, start, end = (contents.array(name, "float64", n, LARGEST) for name, n in EDGES)
    if transitions.shape != (Y, Y) or not start.shape == end.shape == (Y,):
        raise contents.error("transitions do not fit the labels")
    posterior = DECODERS[contents.header["decode"]]
    weights = width, *_weights(contents, D, width)
    return attribute_image(labels, text, weights, transitions, (start, end), posterior=posterior)


def _weights(contents: Contents, D: int, width: int) -> tuple[Any, Any, Any]:
    """Return where the weights of rows end, their columns and values."""
    at = "term0.weights"
    if "weights" not in contents.header["terms"][0]:
        weights: Any = contents.array(at, "float64", 2, LARGEST)
        if weights.shape != (D, width):
            raise contents.error(f"'{at}' does not fit its features")
        ends = array("q", range(0, D * width + 1, width))
        return ends, array("i", range(width)) * D, weights.cast("B").cast("d")
    counts, columns = (contents.array(f"{at}.{name}", "uint8", 1) for name in ("counts", "columns"))
    ends, values = array("q", accumulate(counts, initial=0)), contents.array(f"{at}.values", "float64", 1, LARGEST)
    if len(counts) != D or not ends[-1] == len(columns) == len(values):
        raise contents.error(f"'{at}' does not fit its features")
    return ends, array("i", columns), values
