"""Every option that more than one command has, defined once.

Options that set something in the configuration are left at None when not given, so that a configuration
file, a basis or a dataset can speak; `given` collects those that were.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from kcrf_core.errors import ConfigError
from kcrf_core.system import LEAST_TOLERANCE

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

# Names in the configuration of the options below; the same words, with - for _.
LAYOUT_OPTIONS = ("separator", "header", "comment")
ENCODING_OPTIONS = (
    *("columns", "window", "min_count", "unobserved", "weight", "missing", "missing_indicator", "plain"),
    *LAYOUT_OPTIONS,
)
PIVOT_OPTIONS = ("size", "select", "residual", "basis_tolerance")
CHAIN_OPTIONS = ("order", "scheme", "scheme_violations", "observed_transitions")
TRAINING_OPTIONS = (
    *("observed_features", "sigma2", "c1", "decode", "metric", "solver", "tolerance", "max_passes", "seed"),
    "precision",
)


def kernel_options() -> tuple[str, ...]:
    """Names of all options about the kernel and its map."""
    from kcrf_core.kernels import kernel_settings

    return ("kernel", *kernel_settings(), "cosine", "map", "cut_off", *PIVOT_OPTIONS)


def group(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, shown in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def check_held_out(group: str | None, folds_file: str | None, block: int | None) -> None:
    """A usage error where more than one of them says what is held out."""
    said = {"--group": group, "--folds-file": folds_file, "--block": block}
    names = [name for name, value in said.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} both say what is held out together: give one of them")


ARGUMENTS = "kcrf.arguments"  # of the subcommand, as they were typed


def typed_command() -> list[str]:
    """The subcommand and its arguments, as they were typed."""
    context = click.get_current_context()
    return [context.info_name or "", *context.meta.get(ARGUMENTS, ())]


def given(values: dict[str, Any], *names: Sequence[str]) -> dict[str, Any]:
    """The options among `names` that were typed, and what --set puts anywhere in the configuration."""
    found = {name: values[name] for group_ in names for name in group_ if values.get(name) is not None}
    if values.get("set"):
        from kcrf_core.config import option_paths, parse_settings

        paths = option_paths()
        taken = {paths.get(name, name): name for name in found}
        for path, value in parse_settings(values["set"]).items():
            option = taken.get(paths.get(path, path))
            if option is not None:
                raise click.UsageError(f"--set {path} and --{option.replace('_', '-')} set the same: give one of them")
            found[path] = value
    return found


class FiniteNumber(click.FloatRange):
    """A number from 0 on; Click takes inf and nan for numbers, too."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"must be a finite number, not {value}", param, ctx)
        return number


class AutoNumber(click.ParamType):
    """A positive number, or the word auto."""

    name = "number|auto"

    def __init__(self, most: float = math.inf) -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "auto":
            return value
        try:
            number = float(value)
        except (TypeError, ValueError):
            self.fail(f"'{value}' is neither a number nor 'auto'", param, ctx)
        if not 0 < number < float("inf"):
            self.fail(f"must be greater than 0 and finite, not {value}", param, ctx)
        if number > self._most:
            self.fail(f"must be at most {self._most:g}, not {value}", param, ctx)
        return number


class MemorySize(click.ParamType):
    """A number of bytes such as 500M or 4G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
        size = 0 if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))
        if not 0 < size < 1 << 60:
            self.fail(f"'{value}' is not a size such as 500M or 4G", param, ctx)
        return size


class FileToWrite(click.Path):
    """The name of a file that a command writes; `-`, where it may be, is stdout."""

    def __init__(self, stdout: bool = False, folder: bool = False):
        super().__init__(dir_okay=folder, allow_dash=stdout)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = os.fsdecode(super().convert(value, param, ctx))
        if not path:
            self.fail("the name is empty: give the name of a file to write", param, ctx)
        if path.endswith((os.sep, os.altsep or os.sep)) and not self.dir_okay:
            self.fail(f"'{path}' is the name of a directory: give the name of a file to write", param, ctx)
        return path


class Duration(click.ParamType):
    """A time such as 90s, 10m or 1.5h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(s|m|min|h)?", value.strip(), re.IGNORECASE)
        seconds = 0.0 if found is None else float(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[
            (found[2] or "s").lower()
        ]  # fmt: skip
        if not 0 < seconds < 1e9:
            self.fail(f"'{value}' is not a time such as 90s, 10m or 1.5h", param, ctx)
        return seconds


class NamedPath(click.ParamType):
    """NAME=FILE, as a pair."""

    name = "name=file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        name, equals, path = value.partition("=")
        if not (name.strip() and equals and path):
            self.fail(f"'{value}' is not NAME=FILE, such as emb=train.npy", param, ctx)
        return name.strip(), path


class Window(click.ParamType):
    """A range of offsets such as -2..2."""

    name = "a..b"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kcrf_core.config import parse_config

        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value) and int(value):
            offset, away = int(value), abs(int(value))
            self.fail(
                f"'{value}' is no range: {-away}..{away} is all up to {away} away, {offset}..{offset} that one alone",
                param,
                ctx,
            )
        try:
            return list(parse_config({"window": value}, "--window").window or ())
        except ConfigError as error:
            self.fail(str(error).split("'window' ", 1)[-1], param, ctx)


class LabelNumber(click.ParamType):
    """A label and a number, as event=20; the label may have an equals sign inside."""

    name = "label=number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        label, _, number = value.rpartition("=")
        try:
            found = float(number) if label else math.nan
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.fail(f"'{value}' is not a label and a number, as event=20", param, ctx)
        return label, found


class Names(click.ParamType):
    """Names of columns, separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        names = value if isinstance(value, list) else [name.strip() for name in value.split(",")]
        if not all(names):
            self.fail(f"'{value}' has an empty name", param, ctx)
        return names


class NamedChoice(click.Choice):
    """One of the names that the core has for something; they are asked for when the option is used or shown."""

    def __init__(self, names: Callable[[], Iterable[str]], *more: str, case_sensitive: bool = True):
        self._names, self._more = names, more
        super().__init__((), case_sensitive)

    @property
    def choices(self) -> tuple[str, ...]:
        return (*self._names(), *self._more)

    @choices.setter
    def choices(self, names: Sequence[str]) -> None:
        """Click sets them once, before they are known."""


class OfKind(click.ParamType):
    """A value of a kind that the core declares."""

    def __init__(self, kind: Callable[[Any], Any]):
        self._kind, self.name = kind, getattr(kind, "name", "value")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            found = self._kind(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        return list(found) if isinstance(found, tuple) else found


def _type_of(kind: Callable[[Any], Any]) -> click.ParamType:
    """The type of an option whose values are of a kind that the core declares."""
    from kcrf_core.system import Number, Whole

    if isinstance(kind, Whole):
        return click.IntRange(kind.least, kind.most)
    if isinstance(kind, Number) and not kind.automatic:
        least, most = (None if math.isinf(limit) else limit for limit in (kind.least, kind.most))
        return click.FloatRange(least, most, min_open=kind.above)
    if isinstance(kind, Number) and kind == Number(0, kind.most, above=True, automatic=True):
        return AutoNumber(kind.most)
    return OfKind(kind)


class KernelOption(click.Option):
    """The option `--kernel`, behind which stand the options of the settings that kernels declare."""

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self._made: dict[str, tuple[Any, click.Option]] = {}

    def settings(self) -> list[click.Option]:
        """An option for each setting of each kernel that is registered now."""
        from kcrf_core.kernels import kernel_settings

        for name, one in kernel_settings().items():
            if self._made.get(name, (None,))[0] != one:
                option = f"--{name.replace('_', '-')}"
                made = click.Option([option, name], type=_type_of(one.kind), metavar=one.metavar, help=one.help)
                self._made[name] = one, made
        return [self._made[name][1] for name in kernel_settings()]


class Command(click.Command):
    """A command whose options about kernels follow the registry of kernels."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        out: list[click.Parameter] = []
        for parameter in super().get_params(ctx):
            out.append(parameter)
            if isinstance(parameter, KernelOption):
                out += parameter.settings()
        return out


def decoders() -> Iterable[str]:
    from kcrf_core.scoring import DECODINGS

    return DECODINGS


def exports() -> Iterable[str]:
    from kcrf_core.encoding import EXPORTS

    return EXPORTS


def formats() -> Iterable[str]:
    from kcrf_core.corpora import FORMATS

    return FORMATS


def programs() -> Iterable[str]:
    from kcrf_core.exchange import PROGRAMS

    return PROGRAMS


def label_columns() -> Iterable[str]:
    """Columns that can be labels, of formats that have names for columns."""
    from kcrf_core.corpora import FORMATS

    return dict.fromkeys(name for format_ in FORMATS.values() for name in format_.label_columns)


def kernels() -> Iterable[str]:
    """Those that need no parts, which only a configuration can list."""
    from kcrf_core.kernels import KERNELS, kernel_types

    return [name for name in kernel_types() if not KERNELS[name].composite]


def maps() -> Iterable[str]:
    from kcrf_core.config import MAPS

    return MAPS


def metrics() -> Iterable[str]:
    from kcrf_core.scoring import METRICS

    return METRICS


def precisions() -> Iterable[str]:
    from kcrf_core.config import PRECISIONS

    return PRECISIONS


def schemes() -> Iterable[str]:
    from kcrf_core.scoring import SCHEMES

    return SCHEMES


def scheme_violations() -> Iterable[str]:
    from kcrf_core.config import SCHEME_VIOLATIONS

    return SCHEME_VIOLATIONS


def selections() -> Iterable[str]:
    from kcrf_core.config import selections

    return selections()


def solvers() -> Iterable[str]:
    from kcrf_core.solvers import SOLVERS

    return SOLVERS


data = click.argument("data", type=click.Path(allow_dash=True), metavar="DATA")

output = click.option("-o", "--output", required=True, type=FileToWrite(), metavar="FILE", help="File to write.")

output_unless_dry = click.option(
    "-o",
    "--output",
    type=FileToWrite(),
    metavar="FILE",
    help="File to write. Needed, but for what only prints.",
)

config = group(
    click.option(
        "-c",
        "--config",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Description of columns, features, terms and training: YAML, or a CRF++ template. "
        "Default: features by what the columns look like, numbers, words or tags.",
    ),
    click.option(
        "--set",
        multiple=True,
        metavar="PATH=VALUE",
        help="Set a value anywhere in the configuration, as terms.pssm.map.size=3000 or features.word.window=-1..1; "
        "terms and features are called by name or number. Can be repeated. Default: none.",
    ),
)

format = click.option(
    "--format",
    "format_",
    type=NamedChoice(formats),
    help="Format of text data. Default: the model's if there is one, else that which the name ends in, as in "
    "data.conllu, else conll.",
)


class Separator(click.ParamType):
    """One character, or a name for it."""

    name = "character"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kcrf_core.config import parse_config

        try:
            return parse_config({"separator": value}, "--separator").separator
        except ConfigError as error:
            self.fail(str(error).split("'separator' ", 1)[-1], param, ctx)


class Texts(click.ParamType):
    """Texts, separated by commas."""

    name = "texts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, list) else [text.strip() for text in value.split(",")]


layout = group(
    click.option(
        "--separator",
        type=Separator(),
        metavar="CHARACTER",
        help="What separates columns: ',' reads CSV, with quotes as spreadsheets write them; also tab and space. "
        "Default: TABs if the first line has one, else spaces.",
    ),
    click.option(
        "--header",
        is_flag=True,
        default=None,
        help="The first line has the names of the columns. Default: it is data.",
    ),
    click.option(
        "--comment",
        type=Texts(),
        metavar="MARKS",
        help="Pass over lines that begin so, as '#', or '#,-DOCSTART-' for either. Default: all lines are data.",
    ),
)

encoding = group(
    layout,
    click.option(
        "--missing",
        type=Texts(),
        metavar="MARKS",
        help="What stands for missing numbers, as NA,-999 or 'NA,--undefined--'; they become the training mean. "
        "Default: NA, ?, _, nan and nothing.",
    ),
    click.option(
        "--missing-indicator",
        is_flag=True,
        default=None,
        help="One more column for each real one, which says where values are missing. Default: none.",
    ),
    click.option(
        "--columns",
        type=Names(),
        metavar="NAMES",
        help="Names of the columns, the label's last, as word,class,label. Of a CoNLL-U file those to use, as "
        "form,lemma,upos. Default: c0,c1,...,label, and form,upos of CoNLL-U.",
    ),
    click.option(
        "--window",
        type=Window(),
        help="Offsets that columns are looked at, as -1..1, where the configuration names none. Default: -2..2 for "
        "categorical columns and for real ones whose neighbours correlate, 0 for other real ones.",
    ),
    click.option(
        "--plain",
        is_flag=True,
        default=None,
        help="Take columns as they are. Default: words also by their parts, shape and lower case, tags with their "
        "neighbours, as --dump-config shows.",
    ),
    click.option(
        "--min-count",
        type=click.IntRange(min=1),
        metavar="N",
        help="Ignore values, conjunctions and attributes that occur less often in the training data. Default: 1.",
    ),
)

vectors = click.option(
    "--vectors",
    type=NamedPath(),
    multiple=True,
    metavar="NAME=FILE",
    help="Vectors beside the text: a .npy file of floats, [positions, width], with a row for each position, as "
    "emb=train.npy. Of files with the same name rows follow one another. Default: none.",
)

weight = click.option(
    "--weight",
    metavar="COLUMN",
    help="Column with the weight of the sequence, the same in all its rows; it is no feature. Default: all weigh 1.",
)

unobserved = click.option(
    "--unobserved",
    metavar="LABEL",
    help="This label, ? for one, stands for labels that are not observed: training sums over what they may be. "
    "Default: all labels are observed.",
)

kernel = group(
    click.option(
        "--kernel",
        cls=KernelOption,
        type=NamedChoice(kernels),
        help="Kernel on the inputs; sums and products of them stand in a configuration. Default: linear.",
    ),
    click.option(
        "--cosine",
        is_flag=True,
        default=None,
        help="Divide the kernel by the lengths of both inputs, k(x,x')/sqrt(k(x,x)k(x',x')). Default: not.",
    ),
    click.option(
        "--map",
        type=NamedChoice(maps),
        help="Feature map: explicit features (linear; poly of degree 1, or on binary features), pivots, or every "
        "distinct input as a pivot. Default: auto, explicit where it is exact and --size is not given, else reduced.",
    ),
    click.option(
        "--size",
        type=click.IntRange(min=1),
        metavar="M",
        help="Number of pivots. Default: auto, up to 2000, as many as are soon chosen and as matter.",
    ),
    click.option(
        "--select",
        "--method",
        type=NamedChoice(selections),
        help="How pivots are chosen: drawn by what is left of the kernel, where most is left, any, the middles of "
        "clusters, or those that lower the objective most, while training goes on. Default: random.",
    ),
    click.option(
        "--residual",
        type=click.FloatRange(min=0, max=1, max_open=True),
        metavar="R",
        help="Choose no more pivots once this part of the kernel's trace is left unexplained. Default: 0.",
    ),
    click.option(
        "--cut-off",
        type=click.IntRange(min=1),
        metavar="N",
        help="Leave out conjunctions that are in fewer training positions (explicit poly). Default: 1.",
    ),
)

basis_tolerance = click.option(
    "--basis-tolerance",
    type=click.FloatRange(min=0),
    metavar="B",
    help="With --select gradient: add no more pivots once what they could still gain is proven to be no more than "
    "this part of the objective. Default: 0.01.",
)

seed = click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of all chance. Default: 0.")

precision = click.option(
    "--precision",
    type=NamedChoice(precisions),
    help="Precision of feature maps and scores. Default: single.",
)

metric = click.option(
    "--metric",
    type=NamedChoice(metrics),
    help="The figure that counts: F1 of spans, the plain mean of F1 over types of spans or over labels, accuracy, or "
    "log-loss of labels. Default: f1 where labels are those of a scheme (B-X, I-X, O and the like), else accuracy.",
)

training = group(
    click.option(
        "--observed-features",
        is_flag=True,
        default=None,
        help="Weights only for features with the labels that they stand with in DATA, as CRFsuite has them (explicit "
        "maps): a far smaller model. Default: for all labels.",
    ),
    click.option(
        "--sigma2",
        type=AutoNumber(),
        help="Prior variance of weights, for kernels other than linear that of scores. "
        "Default: auto, chosen per term on held-out sequences.",
    ),
    click.option(
        "--c2",
        type=click.FloatRange(min=0),
        metavar="C",
        help="The same in CRFsuite's terms: sigma2 = 1/(2 C); 0 (with --c1) for none.",
    ),
    click.option(
        "--c1",
        type=click.FloatRange(min=0),
        metavar="C",
        help="An L1 penalty on weights, as CRFsuite's: most become zero, and the model small (explicit maps; with or "
        "without --c2). Default: 0.",
    ),
    click.option(
        "--decode",
        type=NamedChoice(decoders, "auto"),
        help="How the model gives labels: the most probable labelling as a whole, or the most probable label at each "
        "position. Default: auto, posterior where held-out data shows it to be better by more than a standard error.",
    ),
    metric,
    click.option(
        "--solver",
        type=NamedChoice(solvers),
        help="Solver. Default: auto, L-BFGS that begins on a part of the pivots; with --c1 proximal.",
    ),
    click.option(
        "--tolerance",
        type=click.FloatRange(min=LEAST_TOLERANCE),
        metavar="T",
        help="Stop when the certified relative gap to the optimum is this small, 1e-12 at least. Default: 0.001.",
    ),
    click.option(
        "--max-passes",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop the fit after this many passes over the data, certified or not. Default: 1000.",
    ),
    precision,
    seed,
)

chain = group(
    click.option(
        "--order",
        type=click.IntRange(1, 2),
        metavar="N",
        help="Labels that a label depends on directly: the one before, or the two before. Default: 1.",
    ),
    click.option(
        "--scheme",
        type=NamedChoice(schemes),
        help="Scheme of the labels: what it forbids gets probability zero, and costs no time. Default: none.",
    ),
    click.option(
        "--scheme-violations",
        type=NamedChoice(scheme_violations),
        help="With --scheme: labels of DATA that it forbids where they stand are an error, have their sequences left "
        "out (drop), or are taken as not observed (free), after which nothing is certified. Default: error.",
    ),
    click.option(
        "--observed-transitions",
        is_flag=True,
        default=None,
        help="Give probability zero to pairs of labels that do not follow each other in DATA.",
    ),
)

threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads; they never change the result. Default: one for each core (and job).",
)

memory = click.option(
    "--memory",
    type=MemorySize(),
    metavar="SIZE",
    help="Memory for feature maps, as 500M or 4G: what does not fit is computed again, with the same result. Program, "
    "data and weights come on top. Default: 60 % of what is free.",
)

engine = group(
    click.option(
        "--engine",
        metavar="ENGINE",
        help="Who does the arithmetic. A card by PyTorch (pip install 'kcrf[gpu]'): cuda, or cuda:1 for the second; "
        "torch:cpu to try it without one. A Dask cluster (pip install 'kcrf[cluster]'): dask://HOST:PORT or "
        "tls://HOST:PORT of its scheduler; dask for one on this machine, to try it, with a worker for each of "
        "--threads. --memory is then that of the card, or of each worker. A cluster gives the same result to the last "
        "bit, a card within the same certificate. Default: threads of this process.",
    ),
    click.option(
        "--engine-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="How long to wait for the first worker of a cluster, and for one that is silent. Default: 60.",
    ),
    click.option(
        "--tls-ca", metavar="FILE", help="With tls://: certificates of who signs others (PEM). Default: none."
    ),
    click.option("--tls-cert", metavar="FILE", help="With tls://: your own certificate (PEM). Default: none."),
    click.option("--tls-key", metavar="FILE", help="With tls://: the key of your certificate (PEM). Default: none."),
)

ENGINE_OPTIONS = ("engine_timeout", "tls_ca", "tls_cert", "tls_key")


def engine_of(values: dict[str, Any]) -> Any:
    """What the options above ask for, a `cluster.ClusterEngine` or a `device.DeviceChoice`; None for threads."""
    address, more = values["engine"], {name: values[name] for name in ENGINE_OPTIONS if values[name] is not None}
    if address is None:
        if more:
            raise click.UsageError(f"--{next(iter(more)).replace('_', '-')} is for a cluster: give --engine, too")
        return None
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.device import DeviceChoice, is_device

    if is_device(address):
        if more:
            raise click.UsageError(f"--{next(iter(more)).replace('_', '-')} is for a cluster: {address} is none")
        return DeviceChoice(address)
    timeout = {"timeout": more.pop("engine_timeout")} if "engine_timeout" in more else {}
    return ClusterEngine(address, **more, **timeout)


device = click.option(
    "--engine",
    metavar="ENGINE",
    help="Compute scores of pivots on a card by PyTorch (pip install 'kcrf[gpu]'): cuda, or cuda:1 for the second; "
    "torch:cpu to try it without one. Labels are the same, but for ties. Default: threads of this process.",
)

dry_run = click.option("--dry-run", is_flag=True, help="Print how much memory it would take, and do nothing.")

dump_config = click.option(
    "--dump-config",
    is_flag=True,
    help="Print the configuration in force as YAML, and do nothing: with -c, it gives the same run.",
)

quiet = click.option("-q", "--quiet", is_flag=True, is_eager=True, help="Say nothing on stderr but errors.")


def verbose(what: str) -> Decorator:
    """Beside `quiet`, which is eager so that this can see it."""

    def check(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
        if value and ctx.params["quiet"]:
            raise click.UsageError("--quiet and --verbose contradict each other: give one of them")
        return value

    text = f"Say more on stderr: a line for each {what}. Default: a bar, and only on a terminal."
    return click.option("-v", "--verbose", is_flag=True, callback=check, help=text)


json = click.option("--json", "as_json", is_flag=True, help="Print figures as JSON on stdout.")


def check_output(output: str | None, *instead: bool) -> None:
    """An output is needed, unless something else is asked for."""
    if sum(instead) > 1:
        raise click.UsageError("--dry-run and --dump-config print different things: give one of them")
    if output is None and not any(instead):
        raise click.UsageError("Missing option '-o' / '--output'.")


def resolve_c2(values: dict[str, Any]) -> None:
    """Turn --c2 into --sigma2."""
    c2 = values.pop("c2", None)
    if c2 is None:
        return
    if values.get("sigma2") is not None:
        raise click.UsageError("--c2 is another name for --sigma2: give one of them")
    values["sigma2"] = 1.0 / (2.0 * c2) if c2 else math.inf


held_out = group(
    click.option(
        "--group",
        metavar="COLUMN",
        help="Keep sequences with the same value in this column (a speaker, a document) together where some are held "
        "out; it is no feature unless the configuration says so. Default: each sequence for itself.",
    ),
    click.option(
        "--folds-file",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Take the folds from a file with the number of a fold on each line, one for each sequence. Default: none.",
    ),
    click.option(
        "--block",
        type=click.IntRange(min=1),
        metavar="N",
        help="Hold out blocks of about N positions, with gaps beside them that are not learnt from. Default: whole "
        "sequences, and blocks where there are fewer than 20.",
    ),
)

DEFAULT_FOLDS = 5

folds = group(
    click.option(
        "--folds", type=click.IntRange(min=2), metavar="K", help=f"Number of folds. Default: {DEFAULT_FOLDS}."
    ),
    held_out,
)

# What the models of folds are made of, and what they are trained with.
models_of_folds = group(kernel, basis_tolerance, encoding, weight, vectors, chain, training, threads, memory, engine)


def described_by(values: dict[str, Any], *more: str) -> dict[str, Any]:
    """The options that were typed about the kernel, the columns, the chain and the training, and `more`."""
    return given(values, kernel_options(), ENCODING_OPTIONS, CHAIN_OPTIONS, TRAINING_OPTIONS, more)


weighing = group(
    click.option(
        "--cost",
        type=LabelNumber(),
        multiple=True,
        metavar="LABEL=C",
        help="Posterior decoding in which missing this label costs C times as much as missing another: the label of "
        "the largest cost times probability is given; PER means B-PER, I-PER and so on. Can be repeated. Default: 1.",
    ),
    click.option(
        "--threshold",
        type=LabelNumber(),
        metavar="LABEL=P",
        help="Posterior decoding of two labels: give this one where its probability is at least P. Default: 0.5.",
    ),
)

decision = group(
    click.option(
        "--decode",
        type=NamedChoice(decoders),
        help="Labels to give: the most probable labelling as a whole, or at each position the label of the largest "
        "marginal (of labellings that are possible, where transitions are forbidden). Default: as the model stores it.",
    ),
    weighing,
)


def decision_of(decode: str | None, cost: Sequence[tuple[str, float]], threshold: tuple[str, float] | None) -> Any:
    """What the options above ask for, a `scoring.Decision`."""
    from kcrf_core.scoring import Decision

    names = [name for name, _ in cost]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"two costs for '{twice[0]}': give one")
    return Decision(decode, dict(cost), {} if threshold is None else dict([threshold]))
