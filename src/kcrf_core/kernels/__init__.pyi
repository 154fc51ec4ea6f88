from ..system import Registry
from .composite import (
    CompositeKernel as CompositeKernel,
    CosineKernel as CosineKernel,
    ProductKernel as ProductKernel,
    SumKernel as SumKernel,
    inverse_roots as inverse_roots,
)
from .gram_blocks import Fill as Fill, Pivots as Pivots, gram as gram
from .image import ImageKernel as ImageKernel, Shape as Shape
from .inputs import NOTHING as NOTHING, UNSEEN as UNSEEN, Group as Group, Inputs as Inputs
from .kernel import (
    DEEPEST_KERNEL as DEEPEST_KERNEL,
    Fitting as Fitting,
    Kernel as Kernel,
    KernelConfig as KernelConfig,
    fit_kernel as fit_kernel,
    kernel_from_dict as kernel_from_dict,
    kernel_settings as kernel_settings,
    kernel_types as kernel_types,
    matching_features as matching_features,
    setting as setting,
)
from .plain import (
    GAMMA as GAMMA,
    InnerProductKernel as InnerProductKernel,
    LinearKernel as LinearKernel,
    PolynomialKernel as PolynomialKernel,
    RBFKernel as RBFKernel,
    median_distance as median_distance,
)

KERNELS: Registry[type[Kernel]]
