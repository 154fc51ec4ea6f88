from .estimator import KernelCRF as KernelCRF
