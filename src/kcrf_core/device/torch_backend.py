"""Arrays of PyTorch, on a card or without one. Nothing imports this file unless such an engine is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..system import free_memory
from .backend import DOUBLE

TYPES = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.bool_): torch.bool,
}
NUMPY_TYPES = {own: other for other, own in TYPES.items()}

WARM_UP = 2  # calls before one is recorded: libraries set themselves up in the first


class TorchBackend:
    """Arrays on one device of PyTorch, by its name there."""

    def __init__(self, name: str, device: str):
        self.name, self.device = name, torch.device(device)
        self._card = self.device.type == "cuda"
        self.title = torch.cuda.get_device_name(self.device) if self._card else "PyTorch on the CPU"
        # Products in single precision are to have the digits of single precision.
        torch.set_float32_matmul_precision("highest")

    def array(self, values: np.ndarray, dtype: np.dtype | None = None) -> torch.Tensor:
        values = np.ascontiguousarray(values if dtype is None else np.asarray(values, dtype=dtype))
        if not values.flags.writeable:
            values = values.copy()
        made = torch.from_numpy(values)
        return made.to(self.device, copy=True)

    def numpy(self, values: torch.Tensor) -> np.ndarray:
        return values.detach().cpu().numpy()

    def cast(self, values: torch.Tensor, dtype: np.dtype) -> torch.Tensor:
        return values.to(TYPES[np.dtype(dtype)])

    def dtype(self, values: torch.Tensor) -> np.dtype:
        return NUMPY_TYPES[values.dtype]

    def zeros(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> torch.Tensor:
        return torch.zeros(tuple(shape), dtype=TYPES[np.dtype(dtype)], device=self.device)

    def empty(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=TYPES[np.dtype(dtype)], device=self.device)

    def copy(self, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    def rows(self, values: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        return values.index_select(0, which)

    def together(self, parts: Sequence[torch.Tensor], axis: int = 0) -> torch.Tensor:
        return torch.cat(list(parts), dim=axis)

    def stack(self, parts: Sequence[torch.Tensor], axis: int = 0) -> torch.Tensor:
        return torch.stack(list(parts), dim=axis)

    def permuted(self, values: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
        return values.permute(*axes)

    def exp(self, values: torch.Tensor) -> torch.Tensor:
        return torch.exp(values)

    def log(self, values: torch.Tensor) -> torch.Tensor:
        return torch.log(values)

    def sqrt(self, values: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(values)

    def sign(self, values: torch.Tensor) -> torch.Tensor:
        return torch.sign(values)

    def largest(self, values: torch.Tensor, axis: int | None = None) -> torch.Tensor:
        return torch.amax(values) if axis is None else torch.amax(values, dim=axis)

    def best(self, values: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.argmax(values, dim=axis)

    def at_least(self, values: torch.Tensor, least: float) -> torch.Tensor:
        return torch.clamp(values, min=least)

    def clipped_exp(self, values: torch.Tensor) -> torch.Tensor:
        return values.clamp_(max=0).exp_()

    def where(self, condition: torch.Tensor, a: torch.Tensor | float, b: torch.Tensor | float) -> torch.Tensor:
        return torch.where(condition, a, b)

    def nonzero(self, condition: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(condition).reshape(-1)

    def equal_pairs(self, a: torch.Tensor, b: torch.Tensor, dtype: np.dtype) -> torch.Tensor:
        return (a[:, None] == b[None, :]).to(TYPES[np.dtype(dtype)])

    def sparse(self, ends: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int, dtype: np.dtype) -> Any:
        small = max(len(columns), width, len(ends)) < np.iinfo(np.int32).max
        numbers = np.int32 if small else np.int64
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that compressed rows are new there
            return torch.sparse_csr_tensor(
                self.array(ends, numbers),
                self.array(columns, numbers),
                self.array(values, dtype),
                size=(len(ends) - 1, width),
                check_invariants=False,
            )

    def sparse_product(self, matrix: Any, values: torch.Tensor) -> torch.Tensor:
        return matrix @ values

    def solve_lower(self, triangle: torch.Tensor, right: torch.Tensor, transposed: bool = False) -> torch.Tensor:
        own = triangle.mT if transposed else triangle
        return torch.linalg.solve_triangular(own, right, upper=transposed)

    def inverse_lower(self, triangle: torch.Tensor) -> torch.Tensor:
        unit = torch.eye(len(triangle), dtype=triangle.dtype, device=self.device)
        return torch.linalg.solve_triangular(triangle, unit, upper=False)

    def cholesky(self, matrix: torch.Tensor) -> torch.Tensor | None:
        factor, status = torch.linalg.cholesky_ex(matrix)
        return None if int(status) else factor

    def inverse(self, matrix: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(matrix)

    def repeated(self, work: Callable[..., tuple[torch.Tensor, ...]]) -> Callable[..., tuple[torch.Tensor, ...]]:
        return _Recorded(work, self.device) if self._card else work

    def free_memory(self) -> int:
        if not self._card:
            return free_memory()
        free, _ = torch.cuda.mem_get_info(self.device)
        held = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return free + held

    def wait(self) -> None:
        if self._card:
            torch.cuda.synchronize(self.device)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, torch.OutOfMemoryError)


class _Recorded:
    """A function whose work on a card is recorded as a CUDA graph and replayed: one launch in place of hundreds."""

    def __init__(self, work: Callable[..., tuple[torch.Tensor, ...]], device: torch.device):
        self._work, self._device, self._calls = work, device, 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._given: list[torch.Tensor] = []
        self._found: tuple[torch.Tensor, ...] = ()
        self._plain = False  # whether it cannot be recorded

    def __call__(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self._graph is None:
            self._calls += 1
            if self._plain or self._calls <= WARM_UP or not self._record(given):
                return self._work(*given)
        for held, new in zip(self._given, given, strict=True):
            held.copy_(new)
        self._graph.replay()
        return self._found

    def _record(self, given: Sequence[torch.Tensor]) -> bool:
        held = [each.clone() for each in given]
        aside = torch.cuda.Stream(self._device)
        aside.wait_stream(torch.cuda.current_stream(self._device))
        try:
            with torch.cuda.stream(aside):
                self._work(*held)
            torch.cuda.current_stream(self._device).wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.device(self._device), torch.cuda.graph(graph):
                found = self._work(*held)
        except RuntimeError:  # what a library does there cannot be recorded, or memory for it is short
            torch.cuda.synchronize(self._device)
            self._plain = True
            return False
        self._graph, self._given, self._found = graph, held, tuple(found)
        return True
