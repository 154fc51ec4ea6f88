from .estimator import KernelCRF

__all__ = [
    "KernelCRF",
]
