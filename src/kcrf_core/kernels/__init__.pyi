from ..system import Registry
from .composite import CompositeKernel, CosineKernel, ProductKernel, SumKernel, inverse_roots
from .gram_blocks import Fill, Pivots, gram
from .image import ImageKernel
from .inputs import NOTHING, UNSEEN, Group, Inputs
from .kernel import (
    DEEPEST_KERNEL,
    Fitting,
    Kernel,
    KernelConfig,
    fit_kernel,
    fitted,
    kernel_from_dict,
    kernel_settings,
    kernel_types,
    matching_features,
    setting,
)
from .plain import GAMMA, InnerProductKernel, LinearKernel, PolynomialKernel, RBFKernel, mean_diagonal, median_distance

KERNELS: Registry[type[Kernel]]

__all__ = [
    "DEEPEST_KERNEL",
    "GAMMA",
    "NOTHING",
    "UNSEEN",
    "CompositeKernel",
    "CosineKernel",
    "Fill",
    "Fitting",
    "Group",
    "ImageKernel",
    "InnerProductKernel",
    "Inputs",
    "Kernel",
    "KernelConfig",
    "LinearKernel",
    "Pivots",
    "PolynomialKernel",
    "ProductKernel",
    "RBFKernel",
    "SumKernel",
    "fit_kernel",
    "fitted",
    "gram",
    "inverse_roots",
    "kernel_from_dict",
    "kernel_settings",
    "kernel_types",
    "matching_features",
    "mean_diagonal",
    "median_distance",
    "setting",
]
