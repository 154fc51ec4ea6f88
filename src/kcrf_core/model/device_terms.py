"""A model whose scores of pivots are computed on a device; labels are decoded by threads, as always."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from ..device import Device
from ..kernels import Inputs
from .kernel_term import KernelTerm
from .model import Model


@dataclass(frozen=True)
class DeviceKernelTerm(KernelTerm):
    """Pivots and their dual coefficients on a device."""

    likes_many_rows: ClassVar[bool] = True

    scorer: Any = field(kw_only=True)

    @classmethod
    def of(cls, term: KernelTerm, device: Device) -> DeviceKernelTerm | None:
        """The same term there; None where the device does not know its kernel."""
        dtype = np.float32 if term.precision == "single" else np.float64
        scorer = device.scorer(term.pivots, term.kernel, term.alpha, dtype)
        if scorer is None:
            return None
        return cls(**{item.name: getattr(term, item.name) for item in fields(term)}, scorer=scorer)

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        out += self.scorer.scores(inputs)


def on_device(model: Model, device: Device) -> tuple[Model, list[str]]:
    """A model whose terms with pivots are on a device, and the names of those that are not."""
    terms, here = [], []
    for term in model.terms:
        own = DeviceKernelTerm.of(term, device) if isinstance(term, KernelTerm) else None
        here += [term.name] if own is None else []
        terms.append(term if own is None else own)
    return replace(model, terms=tuple(terms)), here
