"""Kernels k(x, x') as small frozen values, the rows of inputs that they are evaluated on, and blocks of kernel values.

A kernel is one class in `KERNELS`; its settings are fields that configuration, options and files take from it.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "fitting": ["fit_kernel"],
        "gram_blocks": ["Pivots", "gram"],
        "inputs": ["Group", "Inputs", "NOTHING", "UNSEEN"],
        "storage": ["kernel_from_dict", "kernel_to_dict"],
        "values": ["Kernel", "PolynomialKernel", "inverse_roots"],
    },
)
