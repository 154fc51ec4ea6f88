"""Arrays of PyTorch, on a GPU or without one. Nothing imports this file unless such an engine is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ..system import DOUBLE, Backend, free_memory, offsets_of, ranges, renew_after_fork

TYPES: dict[np.dtype, torch.dtype] = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.bool_): torch.bool,
}
NUMPY_TYPES = {own: other for other, own in TYPES.items()}

STAGED, STAGES = 32 << 20, 4  # bytes that are on their way from a GPU at a time, and how often
PIECE = 256  # entries of a sparse row that are summed one after another
WARM_UP = 2  # calls before one is recorded: libraries set themselves up in the first


class _Settings:
    """Settings of PyTorch for the whole process: changed while some thread needs that, and then as they were before.

    Products in single precision are to have the digits of single precision.
    """

    def __init__(self) -> None:
        self._lock, self._open = threading.Lock(), 0

    def begin(self, threads: int | None) -> None:
        """Change them, unless another block is open."""
        with self._lock:
            self._open += 1
            if self._open > 1:
                return
            # Since 2.9 libraries have a setting each, and reading one for all raises where these differ.
            both: tuple[Any, ...] = (torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None))
            self._each = [(own, own.fp32_precision) for own in both if hasattr(own, "fp32_precision")]
            try:
                self._precision: str | None = torch.get_float32_matmul_precision()
            except RuntimeError:
                self._precision = None
            torch.set_float32_matmul_precision("highest")
            self._threads = torch.get_num_threads()
            if threads is not None:
                torch.set_num_threads(threads)

    def end(self) -> None:
        """Restore them, unless another block is open."""
        with self._lock:
            self._open -= 1
            if self._open:
                return
            if self._precision is not None:
                torch.set_float32_matmul_precision(self._precision)
            for own, precision in self._each:
                if own.fp32_precision != precision:
                    own.fp32_precision = precision
            if torch.get_num_threads() != self._threads:
                torch.set_num_threads(self._threads)

    def renew(self) -> None:
        self._lock = threading.Lock()


SETTINGS = _Settings()
renew_after_fork(SETTINGS)


class TorchBackend(Backend):
    """Arrays on one device of PyTorch, by its name there."""

    xp = torch

    def __init__(self, name: str, device: str, threads: int | None = None):
        self._threads = threads  # without a GPU
        self.name, self.device = name, torch.device(device)
        self._gpu = self.device.type == "cuda"
        self.title = torch.cuda.get_device_name(self.device) if self._gpu else "PyTorch on the CPU"

    @contextmanager
    def settings(self) -> Iterator[None]:
        SETTINGS.begin(self._threads)
        try:
            yield
        finally:
            SETTINGS.end()

    def array(self, values: np.ndarray, dtype: np.dtype | None = None) -> torch.Tensor:
        values = np.ascontiguousarray(values if dtype is None else np.asarray(values, dtype=dtype))
        if not values.flags.writeable:
            values = values.copy()
        return torch.from_numpy(values).to(self.device, copy=True)

    def numpy(self, values: torch.Tensor) -> np.ndarray:
        if self._gpu and values.nbytes > 2 * STAGED:
            return self._staged(values)
        return values.detach().cpu().numpy()

    def _staged(self, values: torch.Tensor) -> np.ndarray:
        """Copy a large array by way of memory that a GPU writes to directly, and from there by threads.

        Most of the time is spent on new memory, which the system hands out page by page.
        """
        values = values.detach().contiguous()
        out = np.empty(tuple(values.shape), dtype=self.dtype(values))
        flat, there = out.reshape(-1), values.reshape(-1)
        each = STAGED // values.element_size()
        buffers = [torch.empty(each, dtype=values.dtype, pin_memory=True) for _ in range(STAGES)]
        busy: list[Future] = []

        def fill(part: slice, number: int) -> None:
            flat[part] = buffers[number][: part.stop - part.start].numpy()

        with ThreadPoolExecutor(STAGES) as pool:
            for count, part in enumerate(ranges(len(flat), each)):
                if count >= STAGES:
                    busy[count - STAGES].result()
                buffers[count % STAGES][: part.stop - part.start].copy_(there[part])
                busy.append(pool.submit(fill, part, count % STAGES))
            for future in busy:
                future.result()
        return out

    def cast(self, values: torch.Tensor, dtype: np.dtype) -> torch.Tensor:
        return values.to(TYPES[np.dtype(dtype)])

    def dtype(self, values: torch.Tensor) -> np.dtype:
        return NUMPY_TYPES[values.dtype]

    def zeros(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> torch.Tensor:
        return torch.zeros(tuple(shape), dtype=TYPES[np.dtype(dtype)], device=self.device)

    def empty(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=TYPES[np.dtype(dtype)], device=self.device)

    def contiguous(self, values: torch.Tensor) -> torch.Tensor:
        return values.contiguous()

    def rows(self, values: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        return values.index_select(0, which)

    def permuted(self, values: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
        return values.permute(*axes)

    def sparse(self, ends: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int, dtype: np.dtype) -> _Bags:
        return _Bags(ends, columns, values, dtype, self)

    def sparse_product(self, matrix: _Bags, values: torch.Tensor) -> torch.Tensor:
        return matrix.times(values)

    def solve_lower(self, triangle: torch.Tensor, right: torch.Tensor, transposed: bool = False) -> torch.Tensor:
        own = triangle.mT if transposed else triangle
        return torch.linalg.solve_triangular(own, right, upper=transposed)

    def cholesky(self, matrix: torch.Tensor) -> torch.Tensor | None:
        factor, status = torch.linalg.cholesky_ex(matrix)
        return None if int(status) else factor

    def repeated(self, work: Callable[..., tuple[torch.Tensor, ...]]) -> Callable[..., tuple[torch.Tensor, ...]]:
        return _Recorded(work, self.device) if self._gpu else work

    def memory(self) -> int:
        return torch.cuda.mem_get_info(self.device)[1] if self._gpu else free_memory()

    def free_memory(self) -> int:
        if not self._gpu:
            return free_memory()
        free, _ = torch.cuda.mem_get_info(self.device)
        held = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return free + held

    def wait(self) -> None:
        if self._gpu:
            torch.cuda.synchronize(self.device)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, torch.OutOfMemoryError)


class _Bags:
    """A sparse matrix by rows, whose products are sums of rows of the other matrix, in the order of its entries.

    PyTorch's own product of compressed rows gives other bits every time on a GPU. Rows with many entries are summed in
    pieces, then over pieces: one thread goes through a piece.
    """

    def __init__(
        self, ends: np.ndarray, columns: np.ndarray, values: np.ndarray, dtype: np.dtype, backend: TorchBackend
    ):
        lengths = np.diff(ends)
        rows = len(lengths)
        self._shape, self._entries = rows, len(columns)
        # First pieces of all rows come first, then those that are left of long ones.
        more = np.maximum(-(-lengths // PIECE) - 1, 0)
        long = np.flatnonzero(more)
        owners = np.repeat(long, more[long])
        within = np.arange(len(owners)) - np.repeat(np.cumsum(more[long]) - more[long], more[long]) + 1
        starts = np.concatenate([ends[:-1], ends[owners] + within * PIECE]).astype(np.int64)
        sizes = np.concatenate([np.minimum(lengths, PIECE), np.minimum(lengths[owners] - within * PIECE, PIECE)])
        if len(long):
            order = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(len(columns))
            columns, values = columns[order], values[order]
        numbers = np.dtype(np.int32 if len(columns) < np.iinfo(np.int32).max else np.int64)
        self._columns = backend.array(columns, numbers)
        self._ends = backend.array(offsets_of(sizes), numbers)
        self._values = None if (values == 1).all() else backend.array(values, dtype)
        self._long = None
        if len(long):
            parts = np.argsort(np.concatenate([long, owners]), kind="stable")
            pieces = np.concatenate([long, rows + np.arange(len(owners))])[parts]
            totals = offsets_of(more[long] + 1)
            self._long = tuple(backend.array(each, np.dtype(np.int64)) for each in (long, pieces, totals))

    def times(self, values: torch.Tensor) -> torch.Tensor:
        """Return the product [rows, C] with values [width, C]."""
        if not self._entries:
            return values.new_zeros((self._shape, values.shape[1]))
        values = values.contiguous()
        found = _summed(values, self._columns, self._ends, self._values)
        if self._long is None:
            return found
        rows, pieces, totals = self._long
        sums = _summed(found, pieces, totals, None)
        found = found[: self._shape]
        found[rows] = sums
        return found


def _summed(
    values: torch.Tensor, which: torch.Tensor, ends: torch.Tensor, weights: torch.Tensor | None
) -> torch.Tensor:
    """Return weighted sums of some rows, between ends."""
    return torch.nn.functional.embedding_bag(
        which, values, ends, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


class _Recorded:
    """A function whose work on a GPU is recorded as a CUDA graph and replayed: one launch in place of hundreds."""

    def __init__(self, work: Callable[..., tuple[torch.Tensor, ...]], device: torch.device):
        self._work, self._device, self._calls = work, device, 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._given: list[torch.Tensor] = []
        self._found: tuple[torch.Tensor, ...] = ()
        self._plain = False  # it cannot be recorded

    def __call__(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self._graph is None:
            self._calls += 1
            if self._plain or self._calls <= WARM_UP or not self._record(given):
                return self._work(*given)
        for held, new in zip(self._given, given, strict=True):
            held.copy_(new)
        assert self._graph is not None
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
