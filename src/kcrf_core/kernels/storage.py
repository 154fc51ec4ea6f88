"""Kernels as plain dictionaries, for the headers of files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..config import DEEPEST_KERNEL
from .inputs import Group, Inputs
from .pictures import Neighbourhoods
from .values import (
    CosineKernel,
    ImageKernel,
    Kernel,
    LinearKernel,
    Part,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    SumKernel,
)


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    out: dict[str, Any] = {"type": kernel.type}
    if isinstance(kernel, PolynomialKernel):
        return out | {
            "degree": kernel.degree,
            "gamma": kernel.gamma,
            "coef0": kernel.coef0,
            "scale": kernel.scale,
        }
    if isinstance(kernel, ImageKernel):
        picture = kernel.picture
        return out | {
            "gamma": kernel.gamma,
            "shape": list(picture.shape),
            "reach": picture.reach,
            "blur": picture.blur,
        }
    if isinstance(kernel, RBFKernel):
        return out | {"gamma": kernel.gamma}
    if isinstance(kernel, SumKernel):
        return out | {"parts": [_part_to_dict(part) for part in kernel.parts], "weights": list(kernel.weights)}
    if isinstance(kernel, ProductKernel):
        return out | {"parts": [_part_to_dict(part) for part in kernel.parts], "scale": kernel.scale}
    if isinstance(kernel, CosineKernel):
        return out | {"kernel": kernel_to_dict(kernel.kernel)}
    return out


def _part_to_dict(part: Part) -> dict[str, Any]:
    group = part.group
    return {
        "codes": list(group.codes),
        "real": list(group.real),
        "bag": group.bag,
        "kernel": kernel_to_dict(part.kernel),
    }


def kernel_from_dict(values: Any, like: Inputs) -> Kernel:
    """Inverse of `kernel_to_dict`, for inputs of a shape; a ValueError on anything else."""
    return _kernel(values, like, 0)


def _kernel(values: Any, like: Inputs, depth: int) -> Kernel:
    if not isinstance(values, dict) or depth > 2 * DEEPEST_KERNEL:  # each with a cosine around it
        raise ValueError("not a kernel")
    kind = values.get("type")
    names = set(values) - {"type"}
    if kind == "linear" and not names:
        return LinearKernel()
    if kind == "poly" and names == {"degree", "gamma", "coef0", "scale"}:
        return PolynomialKernel(
            _whole(values["degree"], 1, 10), *(_number(values[name]) for name in ("gamma", "coef0", "scale"))
        )
    if kind == "rbf" and names == {"gamma"}:
        return RBFKernel(_number(values["gamma"]))
    if kind == "image" and names == {"gamma", "shape", "reach", "blur"}:
        picture = Neighbourhoods(tuple(values["shape"]), values["reach"], values["blur"])
        reason = picture.why_not(like)
        if reason is not None:
            raise ValueError(reason)
        return ImageKernel(_number(values["gamma"]), picture)
    if kind == "cosine" and names == {"kernel"}:
        return CosineKernel(_kernel(values["kernel"], like, depth + 1))
    if kind == "sum" and names == {"parts", "weights"}:
        parts = _parts(values["parts"], like, depth)
        weights = values["weights"]
        if not isinstance(weights, list) or len(weights) != len(parts):
            raise ValueError("kernel weights")
        return SumKernel(parts, tuple(map(_number, weights)))
    if kind == "product" and names == {"parts", "scale"}:
        return ProductKernel(_parts(values["parts"], like, depth), _number(values["scale"]))
    raise ValueError("not a kernel")


def _parts(values: Any, like: Inputs, depth: int) -> tuple[Part, ...]:
    if not isinstance(values, list) or not values:
        raise ValueError("kernel parts")
    return tuple(_part(value, like, depth + 1) for value in values)


def _part(values: Any, like: Inputs, depth: int) -> Part:
    if not isinstance(values, dict) or set(values) != {"codes", "real", "bag", "kernel"}:
        raise ValueError("kernel part")
    columns = [values[name] for name in ("codes", "real")]
    if not all(isinstance(side, list) for side in columns) or not isinstance(values["bag"], bool):
        raise ValueError("kernel part")
    codes, real = (tuple(_whole(column, 0) for column in side) for side in columns)
    group = Group(codes, real, values["bag"])
    if not group.fits(like):
        raise ValueError("kernel part")
    return Part(group, _kernel(values["kernel"], like.columns(group), depth))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value) or value < 0:
        raise ValueError("kernel number")
    return value


def _whole(value: Any, least: int, most: float = np.inf) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError("kernel number")
    return value
