"""All options by section: the declared settings of a configuration, those of kernels, and a few short names.

The command line, `KernelCRF` and the manual are made from this table. Nothing here imports NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..kernels import KERNELS, KernelConfig, kernel_settings, kernel_types
from ..system import DeclaredSetting, OneOf, Whole, boolean, settings_of
from . import values
from .config import Config, MapConfig, TrainingConfig

MODEL_SECTIONS = ("kernel", "basis_tolerance", "chain", "training")  # of a model; others are about files


def plain_kernels() -> list[str]:
    """List the kernels that need no parts, which only a configuration can list."""
    return [name for name in kernel_types() if not KERNELS[name].composite]


# Settings that are no field in `config`: those that all kernels have, and short names for several fields.
KERNEL = DeclaredSetting(
    OneOf(plain_kernels),
    KernelConfig.type,
    "Kernel on the inputs; sums and products of them stand in a configuration. Default: linear.",
    option="kernel",
)
COSINE = DeclaredSetting(
    boolean,
    KernelConfig.cosine,
    "Divide the kernel by the lengths of both inputs, k(x,x')/sqrt(k(x,x)k(x',x')). Default: not.",
)
ORDER = DeclaredSetting(
    Whole(1, 2),
    1,
    "Labels that a label depends on directly: the one before, or the two before. Default: 1.",
    "N",
)
C2 = DeclaredSetting(
    values.not_negative,
    None,
    "`sigma2` in CRFsuite's terms, 1/(2 C); 0 (with `c1`) for no such prior. Default: as `sigma2` says.",
    "C",
)


@dataclass(frozen=True)
class DeclaredOption:
    """A declared setting under its name as an option."""

    name: str
    section: str
    setting: DeclaredSetting
    path: str  # its place in the configuration; empty where it stands for several


def declared_options(*wanted: str) -> dict[str, DeclaredOption]:
    """Return options by name: those of the wanted sections, and single ones by name; all of them without any.

    Kernels are imported only where their section is wanted.
    """
    of_kernels = kernel_settings() if not wanted or "kernel" in wanted else {}
    places = (
        ({"type": KERNEL, **of_kernels, "cosine": COSINE}, "terms.node.kernel.{}", "kernel"),
        (settings_of(MapConfig), "terms.node.map.{}", "kernel"),
        (settings_of(Config), "{}", "encoding"),
        ({"order": ORDER}, "", "chain"),
        (settings_of(TrainingConfig), "training.{}", "training"),
        ({"c2": C2}, "", "training"),
    )
    found = [
        DeclaredOption(one.option or name, one.section or section, one, path.format(name))
        for settings, path, section in places
        for name, one in settings.items()
        if one.help
    ]
    return {one.name: one for one in found if not wanted or one.section in wanted or one.name in wanted}


def option_paths() -> dict[str, str]:
    """Return the place in the configuration of each option that is a short name for one."""
    return {name: option.path for name, option in declared_options().items() if "." in option.path}
