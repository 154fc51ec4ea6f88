from .estimator import CRF as CRF, KernelCRF as KernelCRF
