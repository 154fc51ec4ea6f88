from .choice import DeviceChoice, device_of, is_device, open_device
from .device import Device, Scorer
from .device_engine import DeviceEngine
from .device_vectors import DeviceVectors

__all__ = [
    "Device",
    "DeviceChoice",
    "DeviceEngine",
    "DeviceVectors",
    "Scorer",
    "device_of",
    "is_device",
    "open_device",
]
