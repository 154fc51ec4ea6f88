from .choice import (
    DeviceChoice as DeviceChoice,
    is_device as is_device,
    open_device as open_device,
)
from .device import Device as Device, Scorer as Scorer
from .device_engine import DeviceEngine as DeviceEngine
from .device_vectors import DeviceVectors as DeviceVectors
