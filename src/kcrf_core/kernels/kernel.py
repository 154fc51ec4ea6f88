"""Base of kernels: a kernel declares settings, is fitted to inputs, evaluates, and is stored.

A kernel is a frozen dataclass in `KERNELS`. Its fields say all that a file keeps of it:

    degree: int = setting(Whole(1, 10), 2, "Degree of poly. Default: 2.", "D")      # a key of the configuration, too
    scale: float = fitted(Number(0))                                                # found when it is fitted

NumPy is imported where values are computed, so that configurations can be read without it.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .._lazy import deferred
from ..errors import ConfigError, FileFormatError, suggestion
from ..system import DeclaredSetting, listed
from . import KERNELS

if TYPE_CHECKING:
    import numpy as np

    from .inputs import Group, Inputs

    Prepared: TypeAlias = Callable[[Inputs], Callable[[slice, np.ndarray], None]]  # pivots laid out for one kernel
else:
    np = deferred("numpy")

DEEPEST_KERNEL = 4  # sums of products of ...
GLOB = re.compile(r"[*?\[]")

# Eight roundings, each of half a unit in the last place.
VALUE_ERROR = 8 * 2.0**-53

# Keys of a kernel that are not settings of its class.
COMMON_KEYS = ("type", "cosine", "parts", "features", "weight", "plugin")


def setting(
    kind: Callable[[Any], Any] | DeclaredSetting,
    default: Any = None,
    help: str = "",
    metavar: str | None = None,
    needed: str | None = None,
) -> Any:
    """Declare a field that a configuration may set; fitting may put a number in the place of None."""
    declared = kind if isinstance(kind, DeclaredSetting) else DeclaredSetting(kind, default, help, metavar, needed)
    return field(metadata={"setting": declared, "kind": declared.kind})


def fitted(kind: Callable[[Any], Any]) -> Any:
    """Declare a field that is found when the kernel is fitted."""
    return field(metadata={"kind": kind})


class Kernel(ABC):
    """Base of all kernels.

    One that is a function of inner products or distances derives from `InnerProductKernel` and has the methods
    that it leaves open; any other has `diagonal` and `prepared` itself.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]  # all that are no base are dataclasses

    type: ClassVar[str]  # its name in the registry, in configurations and in files
    title: ClassVar[str | None] = None  # in messages; None for the same name
    configured: ClassVar[bool] = True  # a configuration may name it
    composite: ClassVar[bool] = False  # made of `parts`, which only a configuration can list
    weighs_parts: ClassVar[bool] = False  # its parts have a `weight`
    explicit: ClassVar[bool] = False  # an explicit map may hold it
    normalised: ClassVar[bool] = False  # k(x, x) is 1 everywhere, so that it is its own cosine

    @classmethod
    def settings(cls) -> dict[str, DeclaredSetting]:
        """Return the settings that a configuration may give, by name, in the order of the fields."""
        return {item.name: item.metadata["setting"] for item in fields(cls) if "setting" in item.metadata}

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Kernel:
        """Make the kernel of these settings, with scales that suit the inputs."""
        return cls(**config.settings)

    @property
    def linear(self) -> bool:
        """True if it is an inner product of columns as they are, and so never rescaled."""
        return False

    def why_not(self, inputs: Inputs) -> str | None:
        """Say why it cannot be evaluated on such inputs; None if it can."""
        return None

    @abstractmethod
    def diagonal(self, inputs: Inputs) -> np.ndarray:
        """Return k(x, x) of each row, [N]."""

    @classmethod
    def has_array_form(cls) -> bool:
        """Return True if devices compute its values, given parts that they compute."""
        return False

    def value_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        """Bound the errors of each row's values in double precision, as a part of the largest k(x, x), [N].

        The bound of a row depends on that row and the pivots alone.
        """
        return np.full(len(inputs), VALUE_ERROR)

    def relative_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray | None:
        """Bound the same errors as a part of sqrt(k(x, x) k(x', x')), [N]; None if not known.

        Products that are too small for a double are left aside. The root is never more than the
        largest k(x, x), and of rows near zero much less.
        """
        return self.value_errors(inputs, pivots) if self.normalised else None

    @abstractmethod
    def prepared(self, pivots: Inputs, dtype: np.dtype) -> Prepared:
        """Return a function of rows to one that writes kernel values of some of them with all pivots, [n, M]."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plain dictionary that a file keeps."""
        own = {"type": self.type, **KERNELS.origin(self.type)}
        return own | {name: _plain(getattr(self, name)) for name in self._kinds()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], like: Inputs, depth: int) -> Kernel:
        """Make the kernel of such a dictionary, for inputs of the shape of `like`; a ValueError on anything else."""
        kinds = cls._kinds()
        if values.keys() - {"plugin"} != {"type", *kinds}:
            if "plugin" not in values:
                raise ValueError("not a kernel")
            then = f"load '{values['plugin']['name']}' as it was then"
            raise FileFormatError(f"the kernel '{cls.type}' has other settings here: {then}", settings=["plugin"])
        kernel = cls(**{name: cls._stored(name, values[name], like, depth) for name in kinds})
        reason = kernel.why_not(like)
        if reason is not None:
            raise ValueError(reason)
        return kernel

    @classmethod
    def _stored(cls, name: str, stored: Any, like: Inputs, depth: int) -> Any:
        """Return the value of a field, as a file has it."""
        return stored_value(cls._kinds()[name], stored)

    @classmethod
    def _kinds(cls) -> dict[str, Callable[[Any], Any]]:
        return {item.name: item.metadata["kind"] for item in fields(cls) if "kind" in item.metadata}


KernelType: TypeAlias = type[Kernel]  # where `type` is the name of a field


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def stored_value(kind: Callable[[Any], Any], stored: Any) -> Any:
    """Check a value of a file: it has no text for a number and no 2.0 for a whole one."""
    value = kind(stored)
    if value is None or not _same(value, stored):
        raise ValueError("kernel value")
    return value


def _same(value: Any, stored: Any) -> bool:
    if isinstance(value, tuple):
        return isinstance(stored, list) and len(value) == len(stored) and all(map(_same, value, stored))
    whole = isinstance(value, float) and isinstance(stored, int)
    return value == stored and (type(value) is type(stored) or whole)


def kernel_from_dict(values: Any, like: Inputs, depth: int = 0) -> Kernel:
    """Make the kernel of the dictionary that `Kernel.to_dict` returns, for inputs of the shape of `like`.

    A kernel that is not registered is a `NotRegistered` error, which is a `FileFormatError` and a `ValueError`;
    anything else that is wrong is a `ValueError`.
    """
    if not isinstance(values, dict) or depth > 2 * DEEPEST_KERNEL:  # each with a cosine around it
        raise ValueError("not a kernel")
    return KERNELS.stored(values.get("type"), values.get("plugin")).from_dict(values, like, depth)


def kernel_types() -> list[str]:
    """List the kernels that a configuration may name."""
    return [name for name, kind in KERNELS.items() if kind.configured]


def kernel_settings() -> dict[str, DeclaredSetting]:
    """Collect the settings of all kernels by name. A name must mean the same wherever it is declared."""
    out: dict[str, DeclaredSetting] = {}
    for name, kind in KERNELS.items():
        for key, declared in kind.settings().items():
            if key in COMMON_KEYS or out.setdefault(key, declared).kind != declared.kind:
                raise ConfigError(f"the kernel '{name}' declares '{key}', which means something else elsewhere")
    return out


@dataclass(frozen=True)
class KernelConfig:
    """Description of a kernel in a configuration. Settings are attributes, too: `config.degree`."""

    type: str = "linear"
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # what is not given has its default
    cosine: bool = False  # divided by the roots of its diagonal
    parts: tuple[KernelConfig, ...] = ()  # of a composite kernel
    features: tuple[str, ...] = ("*",)  # of a part: those that it looks at, among those of what it is part of
    weight: float = 1.0  # of a part of a sum
    title: str = field(init=False)  # in messages

    def __post_init__(self) -> None:
        declared = self.kernel.settings()
        for key in self.settings:
            if key not in declared:
                raise ConfigError(f"'{key}' does not belong to the kernel '{self.type}'")
        settings = {key: self.settings.get(key, one.default) for key, one in declared.items()}
        object.__setattr__(self, "settings", settings)
        name = f"{self.type} of {', '.join(part.title for part in self.parts)}" if self.parts else self.type
        object.__setattr__(self, "title", f"cosine {name}" if self.cosine else name)

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("settings", {})
        if name not in settings:
            raise AttributeError(f"the kernel '{self.__dict__.get('type')}' has no setting '{name}'")
        return settings[name]

    @property
    def kernel(self) -> KernelType:
        """Class of such kernels."""
        return KERNELS[self.type]

    def to_dict(self, within: KernelConfig | None = None) -> dict[str, Any]:
        """Return the layout of the YAML file, for the kernel of a term or for a part of the kernel `within`."""
        out: dict[str, Any] = {"type": self.type}
        out |= {key: _plain(value) for key, value in self.settings.items() if value is not None}
        if self.parts:
            out["parts"] = [part.to_dict(self) for part in self.parts]
        if self.cosine:
            out["cosine"] = True
        if within is not None:
            out["features"] = list(self.features)
            if within.kernel.weighs_parts:
                out["weight"] = self.weight
        return out


@dataclass(frozen=True)
class Fitting:
    """Context in which the kernels of one term are fitted, beside their settings and inputs."""

    seed: int
    term: str  # its name, for messages
    groups: Mapping[str, Group]  # where each feature stands in the inputs

    def kernel(self, config: KernelConfig, inputs: Inputs) -> Kernel:
        """Fit the kernel of a configuration."""
        kernel = config.kernel.fit(config, inputs, self)
        if not config.cosine or kernel.normalised:
            return kernel
        return KERNELS["cosine"](kernel)  # type: ignore[call-arg]  # its only field, which a base has not


def fit_kernel(
    config: KernelConfig, inputs: Inputs, seed: int, groups: Mapping[str, Group] | None = None, term: str = ""
) -> Kernel:
    """Fit the kernel of a term; `groups` says where the features stand that parts of it may name."""
    return Fitting(seed, term, groups or {}).kernel(config, inputs)


def matching_features(patterns: tuple[str, ...], names: list[str], term: str) -> list[str]:
    """Return the names that match a term's globs, in the order of `names`. A glob that matches nothing is an error."""
    matching, known = set[str](), set(names)
    for pattern in patterns:
        # Names such as word[-1]/pos and speed [m/s] look like globs, and as globs match others. A term may list as many
        # names as there are.
        meant = {pattern} & known
        if not meant and GLOB.search(pattern):
            meant = {name for name in names if fnmatchcase(name, pattern)}
        matching |= meant
        if not meant:
            raise ConfigError(
                f"term '{term}': no feature is called '{pattern}'{suggestion(pattern, names)}; "
                f"there are: {listed(names)}"
            )
    return [name for name in names if name in matching]
