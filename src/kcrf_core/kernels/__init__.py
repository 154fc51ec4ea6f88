"""Kernels k(x, x') as small frozen values, the rows of inputs that they are evaluated on, and blocks of kernel values.

A kernel is one class in `KERNELS`: its fields declare the keys of a configuration, the options of the command line and
what is stored of it; its methods fit it to inputs and evaluate it.
"""

from .._lazy import lazy
from ..system import Registry

KERNELS = Registry(
    "kernel",
    __name__,
    {
        "linear": "plain:LinearKernel",
        "poly": "plain:PolynomialKernel",
        "rbf": "plain:RBFKernel",
        "image": "image:ImageKernel",
        "sum": "composite:SumKernel",
        "product": "composite:ProductKernel",
        "cosine": "composite:CosineKernel",
    },
)

__getattr__, __dir__, __all__ = lazy(__name__)
