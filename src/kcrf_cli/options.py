"""Options of commands, each declared once, as the fields of a dataclass that the command gets.

A field that declares no option has the one of its name in `SHARED`. Options of the configuration (`Configuration`) are
those that `kcrf_core.config` declares, made when a command is used, so that plug-ins can add to them.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kcrf_core.errors import ConfigError
from kcrf_core.system import AUTO, Number, OneOf, Whole, boolean

if TYPE_CHECKING:
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.config import DeclaredOption, RulesConfig
    from kcrf_core.corpora import Layout
    from kcrf_core.device import DeviceChoice
    from kcrf_core.model import Model
    from kcrf_core.scoring import Decision
    from kcrf_core.system import DeclaredSetting

Run = TypeVar("Run")

ARGUMENTS = "kcrf.arguments"  # of the subcommand, as they were typed
DEFAULT_FOLDS = 5
EXTENSIBLE = ("kernel", "solver", "format")  # choices that plug-ins add to


@dataclass(frozen=True)
class HelpSection:
    """A section of the help; its methods return fields that are options of it."""

    title: str

    def option(self, help: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
        """Return a field that is an option with the name of the field, or with those given; `more` is for `Option`."""

        def make(name: str) -> click.Parameter:
            return Option([*(names or [flag(name)]), name], section=self.title, help=help, metavar=metavar, **more)

        return field(metadata={"entry": _Single(cache(make))})

    def switch(self, help: str, *names: str, **more: Any) -> Any:
        """Return a field that is an option without a value."""
        return self.option(help, None, *names, is_flag=True, **more)

    def count(self, help: str, default: int | None = None, least: int = 1, **more: Any) -> Any:
        """Return a field that is an option with a whole number N."""
        return self.option(help, "N", type=click.IntRange(min=least), default=default, **more)

    def file(self, help: str, metavar: str = "FILE", *names: str, **more: Any) -> Any:
        """Return a field that is an option with the name of a file to read."""
        return self.option(help, metavar, *names, type=FILE, **more)

    def model(self, help: str, **more: Any) -> Any:
        """Return a field that is an option with a model to read."""
        return self.file(help, "FILE", "-m", "--model", common=True, **more)


# In the order of the help. Options of files to write and of messages need not name theirs, OUTPUT.
SECTIONS = ("Data", "Features", "Model", "Optimisation", "Validation", "Decoding", "Statistics", "Output",
            "Computation", "Help")  # fmt: skip
DATA, FEATURES, MODEL, OPTIMISATION, VALIDATION, DECODING, STATISTICS, OUTPUT, COMPUTATION, HELP = map(
    HelpSection, SECTIONS
)
option, switch, count, file = OUTPUT.option, OUTPUT.switch, OUTPUT.count, OUTPUT.file
FEW = 10  # options that a short help can list all of


class Option(click.Option):
    """An option with its section of the help; `common` ones are in the short help, too."""

    def __init__(self, *arguments: Any, section: str, common: bool = False, **more: Any):
        super().__init__(*arguments, **more)
        self.section, self.common = section, common


def flag(name: str) -> str:
    """Return the option that sets a value of this name."""
    return "--" + name.replace("_", "-")


def with_flags(text: str, settings: Sequence[str]) -> str:
    """Return a message of the library with the options for the settings that it is about."""
    return f"{text} ({', '.join(map(_typed, settings))})" if settings else text


def _typed(name: str) -> str:
    """Return the option that sets a value, behind another command if the running one lacks the option."""
    context = click.get_current_context(silent=True)  # which other threads do not have
    group = None if context is None else context.find_root().command
    if context is None or not isinstance(group, click.Group):
        return flag(name)
    running = context.invoked_subcommand or context.info_name
    for title in (running, "train", *group.commands):
        command = group.commands.get(title or "")
        options = [] if command is None else command.get_params(context)
        if any(flag(name) in (*one.opts, *one.secondary_opts) for one in options):
            return flag(name) if title == running else f"kcrf {title} {flag(name)}"
    return flag(name)


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
                names = [flag(one.name)]
                looks: dict[str, Any] = {"is_flag": True, "default": None}
                if setting.kind is boolean and setting.default is None:  # else the data decides
                    names = [f"{name}/--no-{name.removeprefix('--')}" for name in names]
                if setting.kind is not boolean:
                    several = isinstance(setting.default, tuple)
                    looks = {"type": _type_of(setting), "metavar": setting.metavar, "multiple": several}
                text = re.sub("`([a-z0-9_]+)`", lambda found: flag(found[1]), setting.help)
                looks |= {"section": one.heading, "common": setting.common}
                _MADE[one.name] = setting, Option([*names, one.name], help=text, **looks)
            yield _MADE[one.name][1]

    def value(self, values: dict[str, Any], name: str) -> Any:
        found = {one.name: values[one.name] for one in self._options() if values[one.name] not in (None, ())}
        for one in self._options():
            if isinstance(one.setting.default, tuple) and one.name in found:  # lists, as often as the option is given
                found[one.name] = [item for items in found[one.name] for item in items]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}

    def _options(self) -> list[DeclaredOption]:
        from kcrf_core.config import declared_options

        return list(declared_options(*self.wanted).values())


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
        return [*self._options.parameters(), _PLUGIN, *super().get_params(ctx), _HELP_ALL]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Load plug-ins first, since their kernels have options, too."""
        if any(arg.startswith(_PLUGIN.opts[0]) for arg in args):
            from kcrf_core.system import load_plugin

            ctx.ignore_unknown_options = True
            given = self.make_parser(ctx).parse_args([*args])[0]
            ctx.ignore_unknown_options = False
            for plugin in given.get("plugin", ()):
                load_plugin(plugin)
            names = [one.name for one in self.get_params(ctx)]
            refuse(*((names.count(one) > 1, f"a plug-in declares '{one}', which the command has too") for one in names))
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        text = inspect.cleandoc(self.help or "")
        if self._shortened(ctx):
            *paragraphs, example = text.split("\n\n")
            text = "\n\n".join([*paragraphs[:2], "\n".join(example.split("\n")[:4])])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        short, hidden = self._shortened(ctx), 0
        for title, members in sections_of(self, ctx).items():
            listed = [one for one in members if not short or getattr(one, "common", False)]
            hidden += len(members) - len(listed)
            records = [one.get_help_record(ctx) or ("", "") for one in listed]
            if short:
                records = [(names, _brief(one)) for one, (names, _) in zip(listed, records, strict=True)]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=24 if short else 30)
        if short:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more options: {ctx.command_path} --help-all")

    def _shortened(self, ctx: click.Context) -> bool:
        """Return True if the help lists only common options: the command has many, and not all are asked for."""
        listed = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        return _EVERYTHING not in ctx.meta and len(listed) > FEW


def sections_of(command: click.Command, ctx: click.Context) -> dict[str, list[click.Option]]:
    """Return the options of a command by the section of the help that lists them."""
    sections: dict[str, list[click.Option]] = {title: [] for title in SECTIONS}
    for one in command.get_params(ctx):
        if isinstance(one, click.Option):
            sections[getattr(one, "section", HELP.title)].append(one)
    return {title: members for title, members in sections.items() if members}


def _brief(option: click.Option) -> str:
    """Return the first sentence of an option's help, and its default if it has one."""
    first, *more = re.split(r"(?<=\.) (?=[A-Z])", option.help or "")
    default = [one for one in more if one.startswith("Default: ") and one != "Default: none."]
    return " ".join([first, *default]) + "  [required]" * option.required


_EVERYTHING = "kcrf.help-all"  # in the context of a command whose whole help is asked for


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_EVERYTHING] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL = Option(
    ["--help-all"],
    section=HELP.title,
    help="Show all options and exit.",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
)


_PLUGIN = Option(
    ["--plugin"],
    section=COMPUTATION.title,
    help="Load kernels, solvers or formats of your own before anything else: a file (mine.py), or the name of an entry "
    "point of kcrf.plugins or of a module. A model has only the name of its plug-in. Can be repeated. Default: none.",
    metavar="FILE|NAME",
    multiple=True,
    expose_value=False,
)


def with_reading(layout: Layout, **rules: str | None) -> Layout:
    """Return a layout with those rules for reading texts that were given."""
    from kcrf_core.config import parse_config

    given = {name: rule for name, rule in rules.items() if rule is not None}
    checked = parse_config(given).layout
    return replace(layout, **{name: getattr(checked, name) for name in given})


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

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            more = " --plugin mine.py adds one of your own." if param and param.name in EXTENSIBLE else ""
            raise click.BadParameter(error.message + more, ctx, param) from None

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


class DataToRead(click.Path):
    """The name of a data file; `-` is stdin, with a message where that is a terminal."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        typed = value == "-" and sys.stdin is not None and sys.stdin.isatty()
        if typed and not (ctx is not None and ctx.resilient_parsing):
            click.echo("reading data from the terminal; Ctrl-D ends it", err=True)
        return super().convert(value, param, ctx)


class FileToWrite(click.Path):
    """The name of a file that a command writes; `-`, where it may be, is stdout.

    A file that is write-protected is refused, although a new one could take its place.
    """

    def __init__(self, **settings: Any):
        super().__init__(writable=True, readable=False, **settings)

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
            raise click.UsageError("--plot needs matplotlib: pip install matplotlib") from None
        return path


PLOTS = (".png", ".svg", ".pdf")
FILE = click.Path(dir_okay=False)  # that is read
DATA_FILE = DataToRead(allow_dash=True)  # text, or what `featurize` wrote


def memory_size(text: str) -> int:
    """Read a number of bytes such as 500M or 4G."""
    units = {f"{unit}{end}": 1024**power for power, unit in enumerate(("", *"kmgt")) for end in ("", "b", "ib")}
    return math.ceil(_quantity(text, units, "a size such as 500M or 4G", 1 << 60))


def duration(text: str) -> float:
    """Read a time such as 90s, 10m or 1.5h in seconds."""
    return _quantity(text, {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}, "a time such as 90s, 10m or 1.5h", 10**9)


def _quantity(text: str, units: Mapping[str, int], what: str, most: int) -> float:
    """Read a number with a unit."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", text.strip().lower())
    number = 0.0 if found is None else float(found[1]) * units.get(found[2], 0)
    if not 0 < number < most:
        raise ValueError(f"'{text}' is not {what}")
    return number


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
    kind = FileToWrite(dir_okay=False, allow_dash=stdout)
    return option(help, "FILE", "-o", "--output", type=kind, required=required, common=True)


def written(help: str, metavar: str = "FILE", stdout: bool = False, **more: Any) -> Any:
    """Return an option that names one more file to write."""
    return option(help, metavar, type=FileToWrite(dir_okay=False, allow_dash=stdout), **more)


def plot(help: str, metavar: str = "FILE", **more: Any) -> Any:
    """Return an option that names a plot to draw."""
    return option(help, metavar, type=PlotToDraw(dir_okay=False), **more)


def vectors(help: str) -> Any:
    """Return an option that names files of vectors."""
    return DATA.option(help, "NAME=FILE", type=OfKind(named_path), multiple=True)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A configuration file, and options that set something in it."""

    config: str | None = FEATURES.file(
        "YAML configuration or template. Without it, features suit the columns: numbers, words or tags. Default: "
        "automatic.",
        "FILE",
        "-c",
        "--config",
        common=True,
    )
    set: tuple[str, ...] = FEATURES.option(
        "Set a value of the configuration, as terms.pssm.map.size=3000 or features.word.window=-1..1; PATH names "
        "terms and features by name or number. Can be repeated. Default: none.",
        "PATH=VALUE",
        multiple=True,
    )
    wapiti: bool = FEATURES.switch(
        "Read the template as Wapiti does, also one in capitals alone, as those of GROBID, and train no weights of "
        "first and last labels: `export` then writes exactly its lines and strings for Wapiti. Default: capitals as "
        "CRF++ does.",
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


MODEL_SECTIONS = ("kernel", "basis_tolerance", "layout", "encoding", "chain", "training", "rules")  # of models of folds


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The compute backend of a training, with its threads and its memory."""

    threads: int | None
    memory: int | None = COMPUTATION.option(
        "Memory for feature maps, as 500M or 4G. Values that do not fit are computed again, with the same result. The "
        "program, the data and the weights need further memory. Default: 60 % of the free memory.",
        "SIZE",
        type=OfKind(memory_size),
    )
    engine: str | None = COMPUTATION.option(
        "Compute backend. A GPU with PyTorch (pip install torch): cuda, or cuda:1 for the second GPU; torch:cpu "
        "runs the same code without a GPU. A Dask cluster (pip install distributed): tcp://HOST:PORT or "
        "tls://HOST:PORT of its scheduler; dask starts a cluster on this machine with one worker per thread. --memory "
        "then applies to the GPU or to each worker. A cluster gives the same bits as threads, a GPU a result that is "
        "certified to the same tolerance. Default: threads of this process.",
        "ENGINE",
    )
    engine_timeout: float | None = COMPUTATION.option(
        "Seconds to wait for the first worker of a cluster, and for all to answer. Default: 60.",
        "SECONDS",
        type=click.FloatRange(min=0, min_open=True),
    )

    def choice(self) -> ClusterEngine | DeviceChoice | None:
        """Return what the options ask for; None for threads."""
        timeout = {} if self.engine_timeout is None else {"timeout": self.engine_timeout}
        if self.engine is None:
            refuse((timeout, "--engine-timeout is for a cluster: give --engine, too"))
            return None
        from kcrf_core.cluster import ClusterEngine
        from kcrf_core.device import DeviceChoice, is_device

        if is_device(self.engine):
            refuse((timeout, f"--engine-timeout is for a cluster: {self.engine} is none"))
            return DeviceChoice(self.engine)
        return ClusterEngine(self.engine, **timeout)


def verbose(what: str) -> Any:
    """Return --verbose, for a command with `quiet`, which is eager so that this can see it."""

    def check(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
        if value and ctx.params["quiet"]:
            raise click.UsageError("--quiet and --verbose contradict each other: give one of them")
        return value

    text = f"Print details on stderr: {what}. Default: results, and the remaining time of long work."
    return switch(text, "-v", "--verbose", callback=check)


@dataclass(frozen=True)
class HeldOutOptions:
    """Sequences that are held out together."""

    group: str | None = VALIDATION.option(
        "Hold out sequences with the same value in this column (a speaker, a document) together. The column is not a "
        "feature unless the configuration lists it. Default: each sequence by itself.",
        "COLUMN",
    )
    folds_file: str | None = VALIDATION.file(
        "File with the number of a fold on each line, one line per sequence. Default: folds are drawn at random.",
    )
    block: int | None = VALIDATION.count(
        "Hold out blocks of about N positions; positions beside a block are not used for training. Default: whole "
        "sequences, or blocks if there are fewer than five sequences.",
    )

    def __post_init__(self) -> None:
        names = [flag(item.name) for item in fields(self) if getattr(self, item.name) is not None]
        if len(names) > 1:
            raise click.UsageError(f"{' and '.join(names)} both define what is held out together: give one of them")


@dataclass(frozen=True)
class Weighing:
    """Costs of labels in posterior decoding."""

    cost: tuple[tuple[str, float], ...] = DECODING.option(
        "Posterior decoding (labels of largest marginal) with the label of the largest cost times probability: missing "
        "LABEL costs C times as much as missing another label. PER means B-PER, I-PER and so on. Can be repeated. "
        "Default: 1.",
        "LABEL=C",
        type=OfKind(label_number),
        multiple=True,
    )

    def decision(self, decode: str | None, span_bonus: float | None = None) -> Decision:
        """Return the decision that these options and a decoder ask for."""
        from kcrf_core.scoring import Decision

        names = [name for name, _ in self.cost]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise click.UsageError(f"two costs for '{twice[0]}': give one")
        return Decision(decode, dict(self.cost), span_bonus)


@dataclass(frozen=True)
class RuleOptions:
    """Rules that predicted labels obey."""

    typed: Mapping[str, Any] = settings("rules")
    no_rules: bool = DECODING.switch("Ignore the rules that the model stores. Default: labels obey them.")

    def softened(self, model: Model) -> Model:
        """Return the model with impossible transitions as rules if sequences that break all of them have an option."""
        return model.softened() if "when_impossible" in self.typed else model

    def of(self, model: Model) -> RulesConfig:
        """Return the rules that were typed, together with those of the model unless they are to be ignored."""
        from kcrf_core.config import parse_config
        from kcrf_core.model import combined

        typed = parse_config({"rules": dict(self.typed)}).rules
        found = combined(None if self.no_rules else model.rules, typed)
        some = found.rules or model.permitted is not None
        idle = [name for name in self.typed if not some or (name == "allowed_separator" and not found.allowed)]
        if idle:
            raise ConfigError(f"no rule is given that '{idle[0]}' is about", settings=idle)
        return found


SHARED: dict[str, Any] = {  # options of several commands, by the name of their field
    "data": argument("DATA", DATA_FILE),
    "format": DATA.option(
        "Format of text data. Default: the format of the model if there is one, else by the name of the file "
        "(.conllu, .crfsuite), else conll.",
        type=NamedChoice("corpora:FORMATS"),
    ),
    "vectors": vectors(
        "Vectors beside the text, as emb=train.npy: an array of floats [positions, width] with one row per position. "
        "Files with the same name are concatenated. Default: none."
    ),
    "text": DATA.switch(
        "The data is text without columns: each line is a sequence, its tokens are the words.", common=True
    ),
    "tokens": DATA.option(
        "Tokens of texts: whitespace, words, characters, or a regular expression. Default: as in training.", "RULE"
    ),
    "empty_labels": DATA.option(
        "Texts whose list of labels is empty: labelled, and nothing is in them, or unlabelled. Default: as in "
        "training, else labelled.",
        type=NamedChoice("corpora:EMPTY_LABELS"),
    ),
    "dev_vectors": vectors("Vectors beside DEV, in the form of --vectors. Default: none."),
    "metric": VALIDATION.option(
        "Metric to choose by: F1 of spans (f1), the unweighted mean of F1 over types of spans or over labels, "
        "accuracy, or log-loss of labels. Default: f1 if the labels follow a scheme (B-X, I-X, O), else accuracy.",
        type=NamedChoice("scoring:METRICS"),
    ),
    "decode": DECODING.option(
        "Decoder: the most probable labelling as a whole (viterbi), or the label of the largest marginal at each "
        "position (posterior). Forbidden transitions stay impossible. Default: that of the model.",
        type=NamedChoice("scoring:DECODINGS"),
    ),
    "span_bonus": DECODING.option(
        "Viterbi decoding in which each span adds B to the score of a labelling: more spans are found, and more of "
        "them are wrong. Default: that of the model, or 0 with --decode.",
        "B",
        type=OfKind(Number()),
    ),
    "weighing": group(Weighing),
    "rules": group(RuleOptions),
    "held_out": group(HeldOutOptions),
    "folds": VALIDATION.option(
        f"Number of folds. Default: {DEFAULT_FOLDS}.", "K", type=click.IntRange(min=2), common=True
    ),
    "threads": COMPUTATION.count("Number of threads; it does not change the result. Default: all cores."),
    "engine": group(EngineOptions),
    "dump_config": switch("Print the complete configuration as YAML, and stop; -c reads it for the same run."),
    "json": switch("Print the results as JSON on stdout."),
    "quiet": switch("Print nothing but errors on stderr.", "-q", "--quiet", is_eager=True),
}


@dataclass(frozen=True, kw_only=True)
class PreparedArguments:
    """Arguments of commands that encode training data, and can print what they would do instead."""

    data: str
    output: str | None = output("Output file (required unless --dump-config).", required=False)
    configuration: Configuration
    format: str | None
    vectors: tuple[tuple[str, str], ...]
    engine: EngineOptions
    dump_config: bool
    json: bool
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse a command without an output, unless something else is asked for."""
        refuse((self.output is None and not self.dump_config, "Missing option '-o' / '--output'."))
