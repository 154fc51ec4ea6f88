"""Options of commands, each declared once, as the fields of a dataclass that the command gets.

A field that declares no option has the one of its name in `SHARED`. Options of the configuration (`Configuration`) are
those that `kcrf_core.config` declares, made when a command is used, so that plug-ins can add to them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kcrf_core.system import AUTO, Number, OneOf, Whole, boolean

if TYPE_CHECKING:
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.config import DeclaredOption
    from kcrf_core.device import DeviceChoice
    from kcrf_core.scoring import Decision
    from kcrf_core.system import DeclaredSetting

Run = TypeVar("Run")

ARGUMENTS = "kcrf.arguments"  # of the subcommand, as they were typed
DEFAULT_FOLDS = 5


def flag(name: str) -> str:
    """Return the option that sets a value of this name."""
    return "--" + name.replace("_", "-")


def refuse(*cases: tuple[object, str]) -> None:
    """Raise a usage error with the message of the first case that is true."""
    for case, message in cases:
        if case:
            raise click.UsageError(message)


@dataclass(frozen=True)
class _Single:
    """One option or argument, and its value."""

    make: Callable[[str], click.Parameter]

    def parameters(self, name: str) -> list[click.Parameter]:
        return [self.make(name)]

    def value(self, values: dict[str, Any], name: str) -> Any:
        return values[name]


@dataclass(frozen=True)
class _Group:
    """Options behind the fields of a dataclass, and the object of their values."""

    kind: Any
    wanted: tuple[str, ...] = ()  # sections or names of the settings behind the field `settings`

    def parameters(self, name: str = "") -> list[click.Parameter]:
        return [one for name, entry in self.entries.items() for one in entry.parameters(name)]

    def value(self, values: dict[str, Any], name: str = "") -> Any:
        return self.kind(**{name: entry.value(values, name) for name, entry in self.entries.items()})

    @cached_property
    def entries(self) -> dict[str, _Single | _Group | _Settings]:
        """Entries by the name of their field; a field that declares none has the shared one of its name."""
        shared = SHARED | {"settings": settings(*self.wanted)}
        found = {each.name: each.metadata or shared[each.name].metadata for each in fields(self.kind)}
        return {name: metadata["entry"] for name, metadata in found.items()}


_MADE: dict[str, tuple[DeclaredSetting, click.Option]] = {}  # click wants the same object whenever it asks


@dataclass(frozen=True)
class _Settings:
    """Options of settings that the core declares, and the values that were typed."""

    wanted: tuple[str, ...]  # sections, or single settings

    def parameters(self, name: str) -> Iterator[click.Parameter]:
        for one in self._options():
            setting = one.setting
            if one.name not in _MADE or _MADE[one.name][0] != setting:
                names = [flag(name) for name in (one.name, *setting.aliases)]
                looks: dict[str, Any] = {"is_flag": True, "default": None}
                if setting.kind is not boolean:
                    looks = {"type": _type_of(setting), "metavar": setting.metavar}
                text = re.sub("`([a-z0-9_]+)`", lambda found: flag(found[1]), setting.help)
                _MADE[one.name] = setting, click.Option([*names, one.name], help=text, **looks)
            yield _MADE[one.name][1]

    def value(self, values: dict[str, Any], name: str) -> Any:
        found = {one.name: values[one.name] for one in self._options() if values[one.name] is not None}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}

    def _options(self) -> list[DeclaredOption]:
        from kcrf_core.config import declared_options

        return list(declared_options(*self.wanted).values())


def option(help: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """Return a field that is an option with the name of the field, or with those given; `more` is for click.Option."""

    def make(name: str) -> click.Parameter:
        return click.Option([*(names or [flag(name)]), name], help=help, metavar=metavar, **more)

    return field(metadata={"entry": _Single(cache(make))})


def switch(help: str, *names: str, **more: Any) -> Any:
    """Return a field that is an option without a value."""
    return option(help, None, *names, is_flag=True, **more)


def count(help: str, default: int | None = None, least: int = 1) -> Any:
    """Return a field that is an option with a whole number N."""
    return option(help, "N", type=click.IntRange(min=least), default=default)


def file(help: str, metavar: str = "FILE", *names: str, **more: Any) -> Any:
    """Return a field that is an option with the name of a file to read."""
    return option(help, metavar, *names, type=click.Path(dir_okay=False), **more)


def argument(metavar: str, type: click.ParamType, **more: Any) -> Any:
    """Return a field that is an argument with a place."""
    made = cache(lambda name: click.Argument([name], type=type, metavar=metavar, **more))
    return field(metadata={"entry": _Single(made)})


def group(kind: type, *wanted: str) -> Any:
    """Return a field that is an object of other options; `wanted` are those behind its field `settings`."""
    return field(metadata={"entry": _Group(kind, wanted)})


def settings(*wanted: str) -> Any:
    """Return a field that has declared settings by name, those that were typed."""
    return field(metadata={"entry": _Settings(wanted)})


class Command(click.Command):
    """A command whose options are the fields of a dataclass, made when they are asked for."""

    def __init__(self, name: str, options: _Group, **more: Any):
        self._options = options
        super().__init__(name, **more)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self._options.parameters(), *super().get_params(ctx)]


def read_options(kind: type[Run], values: dict[str, Any]) -> Run:
    """Make the object of a dataclass of options from the values of a command."""
    return _Group(kind).value(values)


def command(kind: type[Run], name: str = "") -> Callable[[Callable[[Run], None]], click.Command]:
    """Return a decorator that makes a command of a function of these options."""

    def decorate(function: Callable[[Run], None]) -> click.Command:
        def call(**values: Any) -> None:
            function(read_options(kind, values))

        own = name or function.__name__.replace("_", "-")
        return Command(own, _Group(kind), callback=call, help=function.__doc__)

    return decorate


class OfKind(click.ParamType):
    """A value of a kind that the core declares, or that a function below checks; `auto` stays where it is one."""

    def __init__(self, kind: Callable[[Any], Any]):
        self._kind, self.name = kind, getattr(kind, "name", "value")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            found = self._kind(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return AUTO if found is None and value == AUTO else found


class NamedChoice(click.Choice):
    """A choice of names that the core has for something, looked up when the option is used or shown.

    They are given by a function, or by where they stand, as `scoring:SCHEMES`.
    """

    def __init__(self, names: str | Callable[[], Iterable[str]], *more: str, case_sensitive: bool = True):
        self._names, self._more = names, more
        super().__init__((), case_sensitive)

    @property
    def choices(self) -> tuple[str, ...]:
        if callable(self._names):
            return (*self._names(), *self._more)
        module, _, name = self._names.partition(":")
        return (*getattr(import_module(f"kcrf_core.{module}"), name), *self._more)

    @choices.setter
    def choices(self, names: Sequence[str]) -> None:
        """Ignore the names that click sets once, before they are known."""


def _type_of(setting: DeclaredSetting) -> click.ParamType:
    """Return the type of an option whose values are of a kind that the core declares."""
    kind = setting.kind
    if isinstance(kind, OneOf):
        return NamedChoice(lambda: kind)
    if isinstance(kind, Whole):
        return click.IntRange(kind.least, kind.most)
    if isinstance(kind, Number) and not kind.automatic:
        least, most = (None if math.isinf(limit) else limit for limit in (kind.least, kind.most))
        return click.FloatRange(least, most, min_open=kind.above, max_open=kind.below)
    made = OfKind(setting.text or kind)
    if isinstance(kind, Number):
        made.name = "number|auto"
    return made


class FileToWrite(click.Path):
    """The name of a file that a command writes; `-`, where it may be, is stdout."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = os.fsdecode(super().convert(value, param, ctx))
        if not path:
            self.fail("the name is empty: give the name of a file to write", param, ctx)
        if path == "-" and not self.allow_dash:
            self.fail("this output cannot go to stdout: give the name of a file", param, ctx)
        if path.endswith((os.sep, os.altsep or os.sep)) and not self.dir_okay:
            self.fail(f"'{path}' is the name of a directory: give the name of a file to write", param, ctx)
        return path


class PlotToDraw(FileToWrite):
    """The name of a plot, which is refused before the work is done if it cannot be drawn."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if os.path.splitext(path)[1].lower() not in PLOTS:
            raise click.UsageError(f"--plot {path}: the name must end in one of {', '.join(PLOTS)}")
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise click.UsageError("--plot needs matplotlib: pip install 'kcrf[plot]'") from None
        return path


PLOTS = (".png", ".svg", ".pdf")
FILE = click.Path(dir_okay=False)  # that is read
DATA = click.Path(allow_dash=True)  # text, or what `featurize` wrote


def memory_size(text: str) -> int:
    """Read a number of bytes such as 500M or 4G."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = 0 if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))
    if not 0 < size < 1 << 60:
        raise ValueError(f"'{text}' is not a size such as 500M or 4G")
    return size


def duration(text: str) -> float:
    """Read a time such as 90s, 10m or 1.5h in seconds."""
    units = {"s": 1, "m": 60, "min": 60, "h": 3600}
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(s|m|min|h)?", text.strip(), re.IGNORECASE)
    seconds = 0.0 if found is None else float(found[1]) * units[(found[2] or "s").lower()]
    if not 0 < seconds < 1e9:
        raise ValueError(f"'{text}' is not a time such as 90s, 10m or 1.5h")
    return seconds


def named_path(text: str) -> tuple[str, str]:
    """Read NAME=FILE as a pair."""
    name, equals, path = text.partition("=")
    if not (name.strip() and equals and path):
        raise ValueError(f"'{text}' is not NAME=FILE, such as emb=train.npy")
    return name.strip(), path


def label_number(text: str) -> tuple[str, float]:
    """Read a label and a number, as event=20; the label may have an equals sign inside."""
    label, _, number = text.rpartition("=")
    try:
        found = float(number) if label else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"'{text}' is not a label and a number, as event=20")
    return label, found


def output(help: str = "File to write.", required: bool = True, stdout: bool = False) -> Any:
    """Return -o for a file, or for stdout where that may be."""
    return option(
        help, "FILE", "-o", "--output", type=FileToWrite(dir_okay=False, allow_dash=stdout), required=required
    )


def written(help: str, metavar: str = "FILE", stdout: bool = False) -> Any:
    """Return an option that names one more file to write."""
    return option(help, metavar, type=FileToWrite(dir_okay=False, allow_dash=stdout))


def plot(help: str, metavar: str = "FILE") -> Any:
    """Return an option that names a plot to draw."""
    return option(help, metavar, type=PlotToDraw(dir_okay=False))


def vectors(help: str) -> Any:
    """Return an option that names files of vectors."""
    return option(help, "NAME=FILE", type=OfKind(named_path), multiple=True)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A configuration file, and options that set something in it."""

    config: str | None = option(
        "Description of columns, features, terms and training: YAML, or a CRF++ template. Default: features by what "
        "the columns look like, numbers, words or tags.",
        "FILE",
        "-c",
        "--config",
        type=FILE,
    )
    set: tuple[str, ...] = option(
        "Set a value anywhere in the configuration, as terms.pssm.map.size=3000 or features.word.window=-1..1; terms "
        "and features are called by name or number. Can be repeated. Default: none.",
        "PATH=VALUE",
        multiple=True,
    )
    settings: dict[str, Any]

    @property
    def source(self) -> str:
        """Name of the configuration in messages."""
        return self.config or "options"

    @cached_property
    def typed(self) -> dict[str, Any]:
        """Options that were typed, and values that --set puts anywhere in the configuration."""
        from kcrf_core.config import option_paths, parse_settings

        if not self.set:
            return self.settings
        found, paths = dict(self.settings), option_paths()
        taken = {paths.get(name, name): name for name in found}
        for path, value in parse_settings(self.set).items():
            name = taken.get(paths.get(path, path))
            if name is not None:
                raise click.UsageError(f"--set {path} and {flag(name)} set the same: give one of them")
            found[path] = value
        return found

    @cached_property
    def chosen(self) -> dict[str, Any]:
        """Options that were typed, with --c2 as sigma2."""
        from kcrf_core.config import resolve_c2

        typed = self.typed
        return resolve_c2(typed) if "c2" in typed else typed


MODEL_SECTIONS = ("kernel", "basis_tolerance", "layout", "encoding", "chain", "training")  # of models of folds


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The compute backend of a training, with its threads and its memory."""

    threads: int | None
    memory: int | None = option(
        "Memory for feature maps, as 500M or 4G: what does not fit is computed again, with the same result. Program, "
        "data and weights come on top. Default: 60 % of what is free.",
        "SIZE",
        type=OfKind(memory_size),
    )
    engine: str | None = option(
        "Compute backend. A GPU by PyTorch (pip install 'kcrf[gpu]'): cuda, or cuda:1 for the second; torch:cpu to try "
        "it without one. A Dask cluster (pip install 'kcrf[cluster]'): dask://HOST:PORT or tls://HOST:PORT of its "
        "scheduler; dask for one on this machine, to try it, with a worker for each of --threads. --memory is then "
        "that of the GPU, or of each worker. A cluster gives the same result to the last bit, a GPU within the same "
        "certificate. Default: threads of this process.",
        "ENGINE",
    )
    engine_timeout: float | None = option(
        "Seconds to wait for the first worker of a cluster, and for one that is silent. Default: 60.",
        "SECONDS",
        type=click.FloatRange(min=0, min_open=True),
    )
    tls_ca: str | None = option("With tls://: certificates of who signs others (PEM). Default: none.", "FILE")
    tls_cert: str | None = option("With tls://: your own certificate (PEM). Default: none.", "FILE")
    tls_key: str | None = option("With tls://: the key of your certificate (PEM). Default: none.", "FILE")

    def choice(self) -> ClusterEngine | DeviceChoice | None:
        """Return what the options ask for; None for threads."""
        known = ("engine_timeout", "tls_ca", "tls_cert", "tls_key")
        more = [flag(name) for name in known if getattr(self, name) is not None]
        if self.engine is None:
            if more:
                raise click.UsageError(f"{more[0]} is for a cluster: give --engine, too")
            return None
        from kcrf_core.cluster import ClusterEngine
        from kcrf_core.device import DeviceChoice, is_device

        if is_device(self.engine):
            if more:
                raise click.UsageError(f"{more[0]} is for a cluster: {self.engine} is none")
            return DeviceChoice(self.engine)
        timeout = {} if self.engine_timeout is None else {"timeout": self.engine_timeout}
        return ClusterEngine(self.engine, self.tls_ca, self.tls_cert, self.tls_key, **timeout)


def verbose(what: str) -> Any:
    """Return --verbose, for a command with `quiet`, which is eager so that this can see it."""

    def check(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
        if value and ctx.params["quiet"]:
            raise click.UsageError("--quiet and --verbose contradict each other: give one of them")
        return value

    text = f"Print a line on stderr for each {what}. Default: a progress bar, and only on a terminal."
    return switch(text, "-v", "--verbose", callback=check)


@dataclass(frozen=True)
class HeldOutOptions:
    """Sequences that are held out together."""

    group: str | None = option(
        "Keep sequences with the same value in this column (a speaker, a document) together where some are held out; "
        "it is no feature unless the configuration says so. Default: each sequence for itself.",
        "COLUMN",
    )
    folds_file: str | None = file(
        "Take the folds from a file with the number of a fold on each line, one for each sequence. Default: none."
    )
    block: int | None = count(
        "Hold out blocks of about N positions, with gaps beside them that are not learnt from. Default: whole "
        "sequences, and blocks where there are fewer than 20."
    )

    def __post_init__(self) -> None:
        names = [flag(item.name) for item in fields(self) if getattr(self, item.name) is not None]
        if len(names) > 1:
            raise click.UsageError(f"{' and '.join(names)} both say what is held out together: give one of them")


@dataclass(frozen=True)
class Weighing:
    """Costs of labels in posterior decoding."""

    cost: tuple[tuple[str, float], ...] = option(
        "Posterior decoding (labels of largest marginal) in which missing this label costs C times as much as missing "
        "another: the label of the largest cost times probability is given; PER means B-PER, I-PER and so on. Can be "
        "repeated. Default: 1.",
        "LABEL=C",
        type=OfKind(label_number),
        multiple=True,
    )
    threshold: tuple[str, float] | None = option(
        "Posterior decoding of two labels: give this one where its probability is at least P. Default: 0.5.",
        "LABEL=P",
        type=OfKind(label_number),
    )

    def decision(self, decode: str | None) -> Decision:
        """Return the decision that these options and a decoder ask for."""
        from kcrf_core.scoring import Decision

        names = [name for name, _ in self.cost]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise click.UsageError(f"two costs for '{twice[0]}': give one")
        return Decision(decode, dict(self.cost), {} if self.threshold is None else dict([self.threshold]))


SHARED: dict[str, Any] = {  # options of several commands, by the name of their field
    "data": argument("DATA", DATA),
    "format": option(
        "Format of text data. Default: the model's if there is one, else that which the name ends in, as in "
        "data.conllu, else conll.",
        type=NamedChoice("corpora:FORMATS"),
    ),
    "vectors": vectors(
        "Vectors beside the text: a .npy file of floats, [positions, width], with a row for each position, as "
        "emb=train.npy. Of files with the same name rows follow one another. Default: none."
    ),
    "dev_vectors": vectors("Vectors beside DEV, as --vectors has them beside DATA. Default: none."),
    "metric": option(
        "The figure that counts: F1 of spans, the plain mean of F1 over types of spans or over labels, accuracy, or "
        "log-loss of labels. Default: f1 where labels are those of a scheme (B-X, I-X, O and the like), else accuracy.",
        type=NamedChoice("scoring:METRICS"),
    ),
    "decode": option(
        "Labels to give: the most probable labelling as a whole, or at each position the label of the largest marginal "
        "(of labellings that are possible, where transitions are forbidden). Default: as the model stores it.",
        type=NamedChoice("scoring:DECODINGS"),
    ),
    "weighing": group(Weighing),
    "held_out": group(HeldOutOptions),
    "folds": option(f"Number of folds. Default: {DEFAULT_FOLDS}.", "K", type=click.IntRange(min=2)),
    "threads": count("Threads; they never change the result. Default: one for each core (and job)."),
    "engine": group(EngineOptions),
    "dry_run": switch("Print how much memory the command would take, and stop."),
    "dump_config": switch("Print the configuration in force as YAML, and stop: with -c, it gives the same run."),
    "json": switch("Print figures as JSON on stdout."),
    "quiet": switch("Print nothing but errors on stderr.", "-q", "--quiet", is_eager=True),
}


@dataclass(frozen=True, kw_only=True)
class PreparedArguments:
    """Arguments of commands that encode training data, and can print what they would do instead."""

    data: str
    output: str | None = output("Output file (required unless --dry-run or --dump-config).", required=False)
    configuration: Configuration
    format: str | None
    vectors: tuple[tuple[str, str], ...]
    engine: EngineOptions
    dry_run: bool
    dump_config: bool
    json: bool
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse a command without an output, unless something else is asked for."""
        instead = self.dry_run or self.dump_config
        refuse(
            (self.dry_run and self.dump_config, "--dry-run and --dump-config print different things: give one of them"),
            (self.output is None and not instead, "Missing option '-o' / '--output'."),
        )
