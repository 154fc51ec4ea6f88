from .backend import Backend, NumpyBackend
from .choice import DeviceChoice, is_device, open_device
from .device import Device, Scorer
from .device_engine import DeviceEngine
from .device_vectors import DeviceVectors

__all__ = [
    "Backend",
    "Device",
    "DeviceChoice",
    "DeviceEngine",
    "DeviceVectors",
    "NumpyBackend",
    "Scorer",
    "is_device",
    "open_device",
]
