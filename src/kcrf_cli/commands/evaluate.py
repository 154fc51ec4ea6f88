"""`kcrf evaluate`: compare predicted labels with gold ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kcrf_core.errors import BelowTarget, ConfigError, DataError, FileFormatError, suggestion
from kcrf_core.files import is_archive, is_encoded, is_folder, refuse_vectors
from kcrf_core.system import counted, listed

from .. import options
from ..io import files
from ..render import figures as render

if TYPE_CHECKING:
    from kcrf_core.corpora import Corpus, Layout
    from kcrf_core.scoring import Decision, Judgement, Labelling

REPORT_RESAMPLES = 1000  # of a page, which has room for intervals

PLOT_KINDS = ("all", "f1", "confusion", "reliability")
TARGETS = ("accuracy", "sequence-accuracy", "precision", "recall", "f1", "macro-f1", "weighted-f1")


def label_columns() -> Iterable[str]:
    """List the columns that can be labels, of formats that have names for columns."""
    from kcrf_core.corpora import FORMATS

    return dict.fromkeys(name for format_ in FORMATS.values() for name in format_.label_columns)


@dataclass(frozen=True, kw_only=True)
class EvaluateArguments:
    data: str
    model: str | None = options.DATA.model(
        "Label DATA with this model first. Default: the last two columns are gold and predicted."
    )
    decode: str | None
    span_bonus: float | None
    weighing: options.Weighing
    rules: options.RuleOptions
    metric: str | None
    gold: str | None = options.DATA.option(
        "File with the gold labels in its last column; DATA then has the predicted labels there. CoNLL-U files have "
        "them in the column --label. Default: DATA has both.",
        "FILE",
        type=click.Path(dir_okay=False, allow_dash=True),
        common=True,
    )
    label: str | None = options.DATA.option(
        "Column of CoNLL-U files to compare with --gold. Default: upos.",
        "NAME",
        type=options.NamedChoice(label_columns, case_sensitive=False),
    )
    compare: str | None = options.DATA.option(
        "Compare with another system on the same data: a tagged file or, with -m, another model. Default: none.",
        "OTHER",
        type=click.Path(dir_okay=False, allow_dash=True),
        common=True,
    )
    scheme: str | None = options.DATA.option(
        "Scheme of the labels; none if labels like B-X are not spans. Default: detected, and printed.",
        type=options.NamedChoice("scoring:SCHEMES", "none"),
        common=True,
    )
    strict: bool = options.STATISTICS.switch(
        "Count only spans that follow the scheme. Default: as conlleval, where an I without a B before it begins a "
        "span.",
    )
    bootstrap: int | None = options.STATISTICS.count(
        "Print confidence intervals from N bootstrap resamples of the sequences. Default: 1000 with --html, else 0 "
        "(none).",
        least=0,
        common=True,
    )
    group: str | None = options.STATISTICS.option(
        "Resample and permute groups: sequences with the same value in this column (a speaker, a document). Default: "
        "each sequence by itself.",
        "COLUMN",
    )
    block: int | None = options.STATISTICS.count(
        "Resample and permute blocks of about N positions. Default: whole sequences, or blocks of long ones if there "
        "are fewer than 20 sequences.",
    )
    seed: int = options.STATISTICS.count("Random seed. Default: 0.", 0, least=0)
    details: bool = options.switch(
        "Print also the scores of each label, the confusion matrix, the reliability curve, errors of spans by type, "
        "scores of unseen words and the words that are most often wrong. Default: what fits on a screen.",
        common=True,
    )
    html: str | None = options.written(
        "Write an HTML page with all scores, the confusion matrix and the sequences with most errors. Default: none.",
        common=True,
    )
    plot: str | None = options.plot(
        "Plot the scores (.pdf, .svg or .png; needs matplotlib), as wide as a column of a paper. Default: none.",
        "FIGURE",
    )
    plot_kind: str | None = options.option(
        "Contents of the plot: F1 by label or span type, the confusion matrix, the reliability diagram, or all on a "
        "sheet of two columns. Default: all.",
        type=click.Choice(PLOT_KINDS),
    )
    fail_under: tuple[tuple[str, float], ...] = options.option(
        "Exit with code 6 if a score is below P per cent, as accuracy=80 (rounded to two decimals, as printed). "
        f"Scores: {', '.join(TARGETS)}. Can be repeated. Default: none.",
        "SCORE=P",
        type=options.OfKind(options.label_number),
        multiple=True,
    )
    vectors: tuple[tuple[str, str], ...]
    format: str | None
    layout: Mapping[str, Any] = options.settings("layout")
    threads: int | None
    json: bool
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        decided = (self.decode, self.span_bonus, self.weighing.cost) != (None, None, ())
        twice = [self.data, self.gold, self.compare].count("-") > 1
        gold, model, label = (value is not None for value in (self.gold, self.model, self.label))
        given = [options.flag(name) for name in self.layout if name != "empty_labels"]
        options.refuse(
            (self.group and self.block, "--group and --block both define what is resampled: give one of them"),
            (self.strict and self.scheme == "none", "--strict counts spans, and --scheme none excludes them"),
            (twice, "standard input can be read only once: give the other as a file"),
            (gold and model, "with -m, DATA has the gold labels: leave out --gold"),
            (label and not gold, "--label names the column to compare with --gold: give that, too"),
            (model and given, f"the model stores how its data is read: leave out {listed(given)}"),
            (self.rules.typed and not model, "rules are for labels of a model: give -m, too"),
            (decided and not model, "--decode, --cost and --span-bonus are for a model: give -m, too"),
            (self.vectors and not model, "--vectors are for the model that labels DATA: give -m, too"),
            (self.plot_kind and not self.plot, "--plot-kind chooses what to draw: give --plot FIGURE, too"),
        )
        for name, least in self.fail_under:
            known = f"there are {', '.join(TARGETS)}"
            unknown = f"--fail-under has no score '{name}'{suggestion(name, TARGETS)}: {known}"
            outside = f"--fail-under {name}={least:g}: the figure is in per cent, from 0 to 100"
            options.refuse((name not in TARGETS, unknown), (not 0 <= least <= 100, outside))
        inputs = (self.data, self.model, self.gold, self.compare, *(path for _, path in self.vectors))
        files.check_outputs((self.html, self.plot), *inputs)

    def read(
        self, path: str, format_: str, columns: Sequence[str] | None = None, layout: Layout | None = None
    ) -> Corpus:
        """Read text, by default with the layout that options describe."""
        from kcrf_core.config import parse_config

        layout = layout or parse_config(self.layout).layout
        return files.read_data(path, format_, columns, layout, self.threads, self.quiet)


@options.command(EvaluateArguments)
def evaluate(run: EvaluateArguments) -> None:
    """Score DATA: output of `tag` (last two columns: gold, predicted), or with -m labelled data.

    Prints accuracy and precision, recall and F1: of spans, as conlleval computes them, if labels are like B-NP, I-NP
    and O, else of each label. If there are probabilities (from -m, or LABEL:p columns), also prints their calibration.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll -o model.npz
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --html report.html
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --decode posterior --metric macro-f1
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --cost 1=3
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --at-most 1=3
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --plot figure.pdf --fail-under accuracy=60
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll --plot figure.svg --plot-kind reliability
      kcrf tag -m model.npz sample_data/pitch_accent.conll | kcrf evaluate - --json
      kcrf train sample_data/sentences.conllu -o words.npz
      kcrf tag -m words.npz sample_data/sentences.conllu | kcrf evaluate --gold sample_data/sentences.conllu -
    """
    from kcrf_core.scoring import JudgementOptions, judge

    from ..render import evaluation_text

    decision, tell = run.weighing.decision(run.decode, run.span_bonus), files.unless(run.quiet)
    metric, scheme = run.metric, run.scheme
    if run.gold is not None:
        first, second = _against(run, run.gold)
    else:
        first, second, stored = _labellings(run, decision)
        if metric is None and (stored, scheme) != ("f1", "none"):
            metric = stored
    for remark in (*first.remarks, *(() if second is None else second.remarks)):
        tell(remark)
    if first.left_out:
        tell(f"{counted(first.left_out, 'gold label is', 'gold labels are')} not observed or half known, and left out")
    if first.missing:
        from kcrf_core.encoding import missing_remarks

        for remark in missing_remarks(first.missing):
            tell(remark)
    found = judge(
        first,
        second,
        JudgementOptions(
            scheme={None: "auto", "none": None}.get(scheme, scheme),
            strict=run.strict,
            metric=metric,
            resamples=(REPORT_RESAMPLES if run.html else 0) if run.bootstrap is None else run.bootstrap,
            seed=run.seed,
            block=run.block,
        ),
    )
    if found.scores.scheme is not None or found.scores.scheme_detected:
        for labelling in (first, *(() if second is None else (second,))):
            for remark in labelling.odd_remarks(found.scores.scheme):
                tell(remark)
    if found.units.doubt is not None and (found.intervals or found.comparison is not None):
        tell(found.units.doubt)
    if found.trained_on is not None:
        tell(found.trained_on.text())
    if run.html is not None:
        from kcrf_core.corpora import display_name

        from ..report.html import origin_of, page

        system, other = run.model or first.source, run.compare and display_name(run.compare)
        files.write_out(page(found, first, system, other, origin_of(run.data)), run.html, end="")
    if run.plot is not None:
        from ..report import plots

        kind = run.plot_kind or "all"
        systems = [plots.System(os.path.basename(run.model or first.source), found, first)]
        if second is not None and run.compare is not None:
            wanted = replace(found.options, scheme=found.scores.scheme, metric=None)
            alone = judge(replace(second, groups=first.groups), None, wanted)
            systems.append(plots.System(os.path.basename(run.compare), alone, second))
        if kind != "all" and kind not in plots.kinds_of(systems[0]):
            raise DataError(
                "no probabilities of the predicted labels to draw: give a model, or columns LABEL:p of tag --marginals",
                first.source,
                settings=["model", "plot_kind"],
            )
        plots.evaluation(run.plot, kind, systems)
    if run.json:
        files.write_out(render.as_json(found.to_dict()))
    else:
        files.show(evaluation_text.text(found, run.details))
    _hold_against(found, run.fail_under)


def _hold_against(found: Judgement, targets: Sequence[tuple[str, float]]) -> None:
    """Raise an error with its own exit code that names all figures below what was asked for."""
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
                f"no {name} to compare with {least:g} %: it is a score of spans, and these labels are not "
                "spans: use macro-f1 or accuracy",
                settings=["fail_under"],
            )
        if float(render.percent(figures[name])) < least:
            below.append(f"{name} {render.percent(figures[name])} % is under {least:.15g} %")
    if below:
        raise BelowTarget("; ".join(below), settings=["fail_under"])


def _against(run: EvaluateArguments, gold: str) -> tuple[Labelling, Labelling | None]:
    """Return the labels of one or two files beside the gold labels of another one."""
    from kcrf_core.corpora import FORMATS, guess_format
    from kcrf_core.scoring import from_two_files

    label, format_ = run.label, run.format or guess_format(run.data if gold == "-" else gold)
    kind = FORMATS[format_]
    if label is not None and label not in kind.label_columns:
        raise click.UsageError("--label names a column of CoNLL-U; in other formats the label is the last one")
    columns = (kind.default_columns[0], label or kind.default_columns[-1]) if kind.columns else None
    right = run.read(gold, format_, columns)
    layout = right.layout if right.layout and right.layout.span_labels else None  # one kind of labels for all spans
    others = [run.read(path, format_, columns, layout) for path in (run.data, run.compare) if path is not None]
    first, *rest = [from_two_files(right, other) for other in others]
    return _grouped(run, first, right), rest[0] if rest else None


def _grouped(
    run: EvaluateArguments, labelling: Labelling, corpus: Corpus, names: Sequence[str] | None = None
) -> Labelling:
    """Return a labelling of a corpus, or of those of its positions that are observed, with groups of its sequences."""
    if run.group is None:
        return labelling

    import numpy as np

    from kcrf_core.config import parse_config
    from kcrf_core.encoding import column_names
    from kcrf_core.training import groups_of

    names = names or corpus.header or column_names(parse_config({}), corpus)
    groups = np.repeat(groups_of(corpus, run.group, names), np.diff(corpus.offsets))
    return replace(labelling, groups=groups[np.isin(corpus.lines, labelling.lines)] if labelling.left_out else groups)


def _labellings(run: EvaluateArguments, decision: Decision) -> tuple[Labelling, Labelling | None, str | None]:
    """Label the data, which is read once, with one or two systems, and return the metric of the first model."""
    from kcrf_core.corpora import COLUMN_FORMAT, FORMATS, display_name, guess_format, open_vectors, with_vectors
    from kcrf_core.model import Model, trained_by
    from kcrf_core.scoring import from_tagged
    from kcrf_core.system import Workers

    data, model, compare = run.data, run.model, run.compare
    if model is None:
        a_model = compare is not None and is_archive(compare)
        options.refuse(
            (is_folder(data), f"{data} is encoded, and has no predicted labels: give a model with -m"),
            (a_model, f"{compare} is a model, not tagged text: give the other model with -m"),
        )
        kind = FORMATS[run.format or guess_format(data)]
        one_column = f"{kind.title} has one column for gold and predicted labels: give --gold or -m"
        options.refuse((not kind.takes_columns, one_column))
        try:
            tagged = run.read(data, run.format or COLUMN_FORMAT)
            first = _grouped(run, from_tagged(tagged), tagged)
        except DataError:
            if not kind.attributes:
                raise
            raise click.UsageError("attribute files have no predicted labels: give --gold or -m") from None
        other_labels = None if compare is None else from_tagged(run.read(compare, COLUMN_FORMAT))
        return first, other_labels, None

    from kcrf_core.model import from_model, from_model_and_encoded, load_dataset, load_folder

    system = Model.load(model)
    other = Model.load(compare) if compare is not None and is_archive(compare) else None
    # A model with vectors may be compared with one without: each gets those that it knows, and none is idle.
    wanted = {*system.encoding.vectors, *(() if other is None else other.encoding.vectors)}
    texts: dict[tuple, Corpus] = {}  # by format, columns and layout: standard input cannot be read again

    def labelled(name: str, model: Model) -> Labelling:
        encoding, model = model.encoding, run.rules.softened(model)
        model = replace(model, rules=run.rules.of(model))
        vectors = [pair for pair in run.vectors if pair[0] in encoding.vectors or pair[0] not in wanted]
        with Workers(run.threads) as workers:
            if is_encoded(data):
                refuse_vectors(data, vectors)
                options.refuse((run.group is not None, f"{data} is encoded and has no column to group by: give text"))
                stored = load_folder(data) if is_folder(data) else load_dataset(data)
                if not stored.encoding.same_as(encoding):
                    raise FileFormatError(f"{data}: encoded unlike {name}: featurize it with --like {name}")
                return from_model_and_encoded(model, stored, data, workers, decision)
            opened = open_vectors(vectors)
            encoding.check_vectors({each.name: each.width for each in opened}, display_name(data))
            format_, columns = run.format or encoding.format, encoding.columns
            layout = options.with_reading(encoding.layout, empty_labels=run.layout.get("empty_labels"))
            key = (format_, columns if FORMATS[format_].columns else (), layout)
            if key not in texts:
                texts[key] = run.read(data, format_, columns, layout)
            found = from_model(model, with_vectors(texts[key], opened), workers, decision)
            return _grouped(run, found, texts[key], [*encoding.input_names(texts[key]), encoding.columns[-1]])

    found, second = labelled(model, system), None
    if other is not None and compare is not None:
        second = labelled(compare, other)
    elif compare is not None:
        second = from_tagged(run.read(compare, COLUMN_FORMAT))
    return found, second, trained_by(system)
