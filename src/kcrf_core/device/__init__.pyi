from .choice import (
    DeviceChoice as DeviceChoice,
    is_device as is_device,
    open_device as open_device,
)
from .device import Device as Device
