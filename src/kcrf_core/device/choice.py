"""Devices by the names that users give them.

cuda         the first GPU of this machine, by PyTorch
cuda:1       the second
torch:cpu    PyTorch without a GPU, for trying it
numpy        the same engine on NumPy, for testing it
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING

from ..errors import ConfigError, DeviceError
from ..system import available_threads

if TYPE_CHECKING:
    from ..system import Backend
    from .device import Device

KINDS = "cuda, cuda:NUMBER, torch:cpu and numpy"
GPU = re.compile(r"cuda(?::(\d+))?")


def is_device(name: str) -> bool:
    """Return True if an engine of this name is a device, not a cluster."""
    return name.partition(":")[0] in ("cuda", "torch", "numpy")


@dataclass(frozen=True)
class DeviceChoice:
    """A device by its name.

    >>> DeviceChoice("cuda:1").address
    'cuda:1'
    """

    address: str

    def __post_init__(self) -> None:
        if self.address not in ("torch:cpu", "numpy") and not GPU.fullmatch(self.address):
            raise ConfigError(f"unknown engine '{self.address}': devices are {KINDS}", settings=["engine"])


def open_device(
    choice: DeviceChoice,
    memory: int | None = None,
    tell: Callable[[str], None] | None = None,
    threads: int | None = None,
) -> Device:
    """Return the device, with `memory` bytes for tables; `tell` is called with a line about it.

    `threads` are for PyTorch without a GPU.
    """
    from ..system import Backend
    from .device import Device

    began = perf_counter()
    backend = Backend() if choice.address == "numpy" else _with_torch(choice.address, threads)
    device = Device(backend, memory, tell)
    if tell is not None:
        tell(f"engine {choice.address}: {backend.title}, ready after {perf_counter() - began:.2f} s")
    return device


def _with_torch(address: str, threads: int | None) -> Backend:
    if find_spec("torch") is None:
        raise ConfigError(
            f"the engine '{address}' needs PyTorch, which is not installed: pip install torch, or leave out 'engine'",
            settings=["engine"],
        )
    try:
        import torch
    except Exception as error:  # libraries of CUDA are often missing or of another version, which may end in anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DeviceError(
            f"the engine '{address}' needs PyTorch, and the one here cannot be imported ({reason}): "
            "install the one for this machine (https://pytorch.org), or leave out 'engine'",
            settings=["engine"],
        ) from None
    from .torch_backend import TorchBackend

    if address == "torch:cpu":
        return TorchBackend(address, "cpu", threads or available_threads())
    if not torch.cuda.is_available():
        raise ConfigError(
            f"the engine '{address}' needs a GPU that PyTorch {torch.__version__} can use, and there is none: leave "
            "out 'engine' to use threads, or try torch:cpu",
            settings=["engine"],
        )
    number = int(address.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        there = ", ".join(f"cuda:{each}" for each in range(torch.cuda.device_count()))
        raise ConfigError(f"there is no '{address}': this machine has {there}", settings=["engine"])
    backend = TorchBackend(address, f"cuda:{number}")
    backend.zeros((1,))  # starts what has to be started
    backend.wait()
    return backend
