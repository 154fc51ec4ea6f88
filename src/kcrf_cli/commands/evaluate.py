"""`kcrf evaluate`: compare predicted labels with gold ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.corpora import Corpus
    from kcrf_core.model import Also, Model
    from kcrf_core.scoring import Decision, Judgement, Labelling

REPORT_RESAMPLES = 1000  # of a page or a picture, which have room for intervals

PLOT_KINDS = ("all", "f1", "confusion", "reliability", "precision-recall", "roc")
TARGETS = ("accuracy", "sequence-accuracy", "precision", "recall", "f1", "macro-f1", "weighted-f1")


@click.command(short_help="Score predicted labels against gold ones.")
@options.data
@click.option(
    "-m",
    "--model",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Label DATA with this model first. Default: the last two columns are gold and predicted.",
)
@options.decision
@options.metric
@click.option(
    "--gold",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="File with the gold labels; those of DATA are predicted, both in the last column, or in the column of CoNLL-U "
    "that --label names. Default: DATA has both.",
)
@click.option(
    "--label",
    type=options.NamedChoice(options.label_columns, case_sensitive=False),
    metavar="NAME",
    help="Column of CoNLL-U files to compare with --gold. Default: upos.",
)
@click.option(
    "--compare",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="OTHER",
    help="Compare with another system on the same data: a tagged file or, with -m, another model. Default: none.",
)
@click.option(
    "--scheme",
    type=options.NamedChoice(options.schemes, "none"),
    help="Scheme of the labels; none for labels that only look like spans. Default: detected, and said.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Count only spans that are written as the scheme demands. Default: as conlleval, which reads an I that "
    "nothing begins as the beginning of a span.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(min=0),
    metavar="N",
    help="Give confidence intervals, from N resamples of the sequences; 0 for none. Default: 1000 with --html, else 0.",
)
@click.option(
    "--block",
    type=click.IntRange(min=1),
    metavar="N",
    help="Resample and exchange blocks of about N positions. Default: whole sequences, and blocks of long ones where "
    "there are fewer than 20.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    metavar="C",
    help="Confidence of intervals. Default: 0.95.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=10000,
    metavar="N",
    help="Draws of the randomisation test of --compare. Default: 10000.",
)
@click.option(
    "--bins",
    type=click.IntRange(1, 1000),
    default=10,
    metavar="N",
    help="Bins of the calibration error and the reliability curve. Default: 10.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed of all chance. Default: 0.")
@click.option(
    "--details",
    is_flag=True,
    help="Print figures by label beside those of spans, the confusion of labels and the reliability curve, too. "
    "Default: what fits a screen.",
)
@click.option(
    "--html",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Write everything as one page with pictures and the worst sequences. Default: none.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    help="Sequences with the most errors to show in the page. Default: 20.",
)
@click.option(
    "--plot",
    type=options.FileToWrite(),
    metavar="FIGURE",
    help="Draw the figures (.pdf, .svg or .png; needs matplotlib), as wide as a column of a paper. Default: none.",
)
@click.option(
    "--plot-kind",
    type=click.Choice(PLOT_KINDS),
    help="What to draw: F1 by label or type of span, the confusion of labels, how far probabilities can be believed, "
    "curves of each label, or all on a sheet of two columns. Default: all.",
)
@click.option(
    "--fail-under",
    type=options.LabelNumber(),
    multiple=True,
    metavar="FIGURE=P",
    help="End with exit code 6 if a figure, rounded to two decimals as it is printed, is below P per cent, as "
    f"accuracy=80; figures: {', '.join(TARGETS)}. Can be repeated. Default: none.",
)
@options.vectors
@options.format
@options.layout
@options.threads
@options.json
@click.option("--tsv", "as_tsv", is_flag=True, help="Print figures as tab-separated rows on stdout.")
@options.quiet
def evaluate(
    data: str,
    model: str | None,
    decode: str | None,
    cost: tuple[tuple[str, float], ...],
    threshold: tuple[str, float] | None,
    metric: str | None,
    gold: str | None,
    label: str | None,
    compare: str | None,
    scheme: str | None,
    strict: bool,
    bootstrap: int | None,
    block: int | None,
    confidence: float,
    draws: int,
    bins: int,
    seed: int,
    details: bool,
    html: str | None,
    worst: int,
    plot: str | None,
    plot_kind: str | None,
    fail_under: tuple[tuple[str, float], ...],
    vectors: tuple[tuple[str, str], ...],
    format_: str | None,
    separator: str | None,
    header: bool | None,
    comment: list[str] | None,
    threads: int | None,
    as_json: bool,
    as_tsv: bool,
    quiet: bool,
) -> None:
    """Score DATA: tagged output with gold and predicted labels as its last two columns, or, with -m, labelled data.

    Prints accuracy, and for labels of the IOB kind (B-NP, I-NP, O and the like) precision, recall and F1 of spans
    as conlleval computes them; else the same per label. Where there are probabilities, from -m or as LABEL:p columns,
    says how far they can be believed.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll -o model.npz
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --html report.html
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --decode posterior --metric macro-f1
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --cost 1=3
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --plot figure.pdf --fail-under accuracy=60
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --plot figure.svg --plot-kind reliability
      kcrf tag -m model.npz sample_data/pitch_accent.conll | kcrf evaluate - --json
      kcrf train sample_data/sentences.conllu -o words.npz
      kcrf tag -m words.npz sample_data/sentences.conllu | kcrf evaluate --gold sample_data/sentences.conllu -
    """
    from kcrf_core.corpora import Layout
    from kcrf_core.scoring import JudgementOptions, calibration_of, judge
    from kcrf_core.system import counted

    from ..io.files import check_writable, output_stream, read_data, say, show, write_out
    from ..render import evaluation_text
    from ..render import figures as render
    from ..report.plots import check_plot

    if as_json and as_tsv:
        raise click.UsageError("--json and --tsv are two ways to print the same: give one of them")
    if strict and scheme == "none":
        raise click.UsageError("--strict counts spans, and --scheme none says that there are none")
    if [data, gold, compare].count("-") > 1:
        raise click.UsageError("standard input can be read once: give the other as a file")
    if gold is not None and model is not None:
        raise click.UsageError("-m finds the gold labels in DATA: leave out --gold")
    if label is not None and gold is None:
        raise click.UsageError("--label says what to compare with --gold: give that, too")
    if model is not None and (separator, header, comment) != (None, None, None):
        raise click.UsageError("-m knows how its data is laid out: leave out --separator, --header and --comment")
    if model is None and (decode is not None or cost or threshold is not None):
        raise click.UsageError("--decode, --cost and --threshold say how a model labels DATA: give -m, too")
    decision = options.decision_of(decode, cost, threshold)
    if vectors and model is None:
        raise click.UsageError("--vectors are for the model that labels DATA: give -m, too")
    if plot_kind is not None and plot is None:
        raise click.UsageError("--plot-kind says what to draw: give --plot FIGURE, too")
    _check_targets(fail_under)
    check_plot(plot)
    for path in (html, plot):
        if path is not None:
            check_writable(path, data, model, gold, compare, *(path for _, path in vectors))

    read = partial(
        read_data, layout=Layout(separator, bool(header), tuple(comment or ())), threads=threads, quiet=quiet
    )
    plain = None
    if gold is not None:
        first, second = _against(gold, data, compare, format_, label, read)
    else:
        curves = plot is not None and plot_kind in (None, "all", "precision-recall", "roc")
        spans = details or as_json or as_tsv or html is not None
        first, second, stored, plain = _labellings(
            data, model, compare, format_, threads, vectors, decision, read, curves, spans
        )
        if metric is None and (stored, scheme) != ("f1", "none"):
            metric = stored
    if not quiet:
        for remark in (*first.remarks, *(() if second is None else second.remarks)):
            say(remark)
    if first.left_out and not quiet:
        say(f"{counted(first.left_out, 'gold label is', 'gold labels are')} not observed, and left out")
    if first.missing and not quiet:
        from kcrf_core.encoding import missing_remarks

        for remark in missing_remarks(first.missing):
            say(remark)
    found = judge(
        first,
        second,
        JudgementOptions(
            scheme={None: "auto", "none": None}.get(scheme, scheme),
            strict=strict,
            metric=metric,
            resamples=(REPORT_RESAMPLES if html or plot else 0) if bootstrap is None else bootstrap,
            confidence=confidence,
            draws=draws,
            bins=bins,
            seed=seed,
            block=block,
        ),
    )
    if plain is not None:
        found = replace(found, uncalibrated=calibration_of(plain, bins, found.scores.scheme))
    if html is not None:
        from kcrf_core.corpora import display_name

        from ..report.html import origin_of, page

        system, other = model or first.source, compare and display_name(compare)
        origin = origin_of(options.typed_command(), data)
        with output_stream(html) as stream:
            stream.write(page(found, first, system, other, worst, origin).encode())
    if plot is not None:
        _draw(plot, plot_kind or "all", found, first)
    if as_json:
        write_out(render.as_json(found.to_dict()))
    elif as_tsv:
        write_out(evaluation_text.tsv(found))
    else:
        show(evaluation_text.text(found, details))
    _hold_against(found, fail_under)


def _check_targets(targets: Sequence[tuple[str, float]]) -> None:
    from kcrf_core.errors import suggestion

    for name, least in targets:
        if name not in TARGETS:
            known = f"there are {', '.join(TARGETS)}"
            raise click.UsageError(f"--fail-under has no figure '{name}'{suggestion(name, TARGETS)}: {known}")
        if not 0 <= least <= 100:
            raise click.UsageError(f"--fail-under {name}={least:g}: the figure is in per cent, from 0 to 100")


def _hold_against(found: Judgement, targets: Sequence[tuple[str, float]]) -> None:
    """An error with an exit code of its own where figures are below what was asked for; all of them are named."""
    from kcrf_core.errors import BelowTarget, ConfigError

    from ..render.figures import percent

    means = found.scores if found.spans is None else found.spans
    figures = {"accuracy": found.scores.accuracy, "sequence-accuracy": found.scores.sequence_accuracy}
    figures |= {"macro-f1": means.macro_f1, "weighted-f1": means.weighted_f1}
    if found.spans is not None:
        total = found.spans.total
        figures |= {"precision": total.precision, "recall": total.recall, "f1": total.f1}
    below = []
    for name, least in targets:
        if name not in figures:
            raise ConfigError(
                f"no {name} to hold against {least:g} %: it is that of spans, and these labels are of no scheme of "
                "spans: take macro-f1 or accuracy",
                settings=["fail_under"],
            )
        if float(percent(figures[name])) < least:
            below.append(f"{name} {percent(figures[name])} % is under {least:.15g} %")
    if below:
        raise BelowTarget("; ".join(below), settings=["fail_under"])


def _draw(path: str, kind: str, found: Judgement, labelling: Labelling) -> None:
    from kcrf_core.errors import DataError

    from ..report import plots

    if kind != "all" and kind not in plots.pictures_of(labelling):
        which = "the predicted labels" if kind == "reliability" else "all labels"
        raise DataError(
            f"no probabilities of {which} to draw: give a model, or columns LABEL:p as tag --marginals all writes them",
            labelling.source,
            settings=["model", "plot_kind"],
        )
    plots.evaluation(path, kind, found, labelling)


def _against(
    gold: str,
    data: str,
    compare: str | None,
    format_: str | None,
    label: str | None,
    read: Callable[..., Corpus],
) -> tuple[Labelling, Labelling | None]:
    """What one or two files say beside the gold labels of another one."""
    from kcrf_core.corpora import FORMATS, guess_format
    from kcrf_core.scoring import from_two_files

    format_ = format_ or guess_format(data if gold == "-" else gold)
    kind = FORMATS[format_]
    if label is not None and label not in kind.label_columns:
        raise click.UsageError("--label names a column of CoNLL-U; in other formats the label is the last one")
    columns = (kind.default_columns[0], label or kind.default_columns[-1]) if kind.columns else None
    right, *others = [read(path, format_, columns) for path in (gold, data, compare) if path is not None]
    first, *rest = [from_two_files(right, other) for other in others]
    return first, rest[0] if rest else None


def _labellings(
    data: str,
    model: str | None,
    compare: str | None,
    format_: str | None,
    threads: int | None,
    vectors: Sequence[tuple[str, str]],
    decision: Decision,
    read: Callable[..., Corpus],
    curves: bool,
    spans: bool,
) -> tuple[Labelling, Labelling | None, str | None, Labelling | None]:
    """What one or two systems make of the data, which is read once, and the metric that a model was trained by.

    A model whose probabilities are calibrated also labels the data without that.
    """
    from kcrf_core.corpora import COLUMN_FORMAT, FORMATS, guess_format
    from kcrf_core.errors import DataError
    from kcrf_core.files import is_archive, is_folder
    from kcrf_core.model import Also, Model, trained_by
    from kcrf_core.scoring import from_tagged

    def tagged(path: str, kind: str) -> Labelling:
        return from_tagged(read(path, kind))

    if model is None:
        if is_folder(data):
            raise click.UsageError(f"{data} is encoded, and has no predicted labels: give a model with -m")
        if compare is not None and is_archive(compare):
            raise click.UsageError(
                f"{compare} is no tagged text: a model can be compared with another one, given with -m"
            )
        kind = FORMATS[format_ or guess_format(data)]
        if not kind.takes_columns:
            raise click.UsageError(f"{kind.title} has one column for gold and predicted labels: give --gold or -m")
        try:
            first = tagged(data, format_ or COLUMN_FORMAT)
        except DataError:
            if not kind.attributes:
                raise
            raise click.UsageError("attribute files have no predicted labels: give --gold or -m") from None
        return first, None if compare is None else tagged(compare, COLUMN_FORMAT), None, None

    corpora: dict[tuple, Corpus] = {}
    other = Model.load(compare) if compare is not None and is_archive(compare) else None
    models = [(model, Model.load(model)), *([] if other is None or compare is None else [(compare, other)])]
    # A model with vectors may be compared with one without: each gets those that it knows, and none is idle.
    wanted = {name for _, each in models for name in each.encoding.vectors}
    found: list[Labelling] = []
    for name, each in models:
        own = [pair for pair in vectors if pair[0] in each.encoding.vectors or pair[0] not in wanted]
        also = Also(curves and not found, spans or models[0][1].calibration is not None)
        found.append(_with_model(data, name, each, own, format_, threads, decision, read, corpora, also))
    metric = trained_by(models[0][1])
    plain = None
    if models[0][1].calibration is not None:
        uncalibrated = replace(models[0][1], calibration=None)
        own = [pair for pair in vectors if pair[0] in uncalibrated.encoding.vectors or pair[0] not in wanted]
        plain = _with_model(data, model, uncalibrated, own, format_, threads, decision, read, corpora, Also(spans=True))
    if compare is None:
        return found[0], None, metric, plain
    return found[0], found[1] if other is not None else tagged(compare, COLUMN_FORMAT), metric, plain


def _with_model(
    data: str,
    name: str,
    model: Model,
    vectors: Sequence[tuple[str, str]],
    format_: str | None,
    threads: int | None,
    decision: Decision,
    read: Callable[..., Corpus],
    corpora: dict[tuple, Corpus],
    also: Also,
) -> Labelling:
    """Label the data; `corpora` keeps text by its format and columns, for standard input cannot be read again."""
    from kcrf_core.corpora import FORMATS, display_name, open_vectors, with_vectors
    from kcrf_core.errors import FileFormatError
    from kcrf_core.files import is_archive, is_folder, refuse_vectors
    from kcrf_core.model import from_model, from_model_and_dataset, from_model_and_folder, load_dataset, load_folder
    from kcrf_core.system import Workers

    with Workers(threads) as workers:
        if is_folder(data):
            refuse_vectors(data, vectors)
            folder = load_folder(data)
            if not folder.encoding.same_as(model.encoding):
                raise FileFormatError(f"{data}: encoded unlike {name}: featurize it with --like {name}")
            return from_model_and_folder(model, folder, workers, decision, also)
        if is_archive(data):
            refuse_vectors(data, vectors)
            stored = load_dataset(data)
            if not stored.encoding.same_as(model.encoding):
                raise FileFormatError(f"{data}: encoded unlike {name}: featurize it with --like {name}")
            return from_model_and_dataset(model, stored.dataset, data, workers, decision, also)
        opened = open_vectors(vectors)
        model.encoding.check_vectors({each.name: each.width for each in opened}, display_name(data))
        format_, columns = format_ or model.encoding.format, model.encoding.columns
        key = (format_, columns if FORMATS[format_].columns else (), model.encoding.layout)
        if key not in corpora:
            corpora[key] = read(data, format_, columns, layout=model.encoding.layout)
        return from_model(model, with_vectors(corpora[key], opened), workers, decision, also)
