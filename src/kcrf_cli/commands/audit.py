"""`kcrf audit`: find doubtful labels."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING

import click

from kcrf_core.errors import ConfigError, DataError
from kcrf_core.files import is_encoded, text_ending
from kcrf_core.system import counted

from .. import options
from ..io import files
from ..render import figures as render

if TYPE_CHECKING:
    from kcrf_core.selection import Audit


@dataclass(frozen=True, kw_only=True)
class AuditArguments:
    data: str
    model: str | None = options.MODEL.model(
        "Judge labels by this model, even if it was trained on DATA. Default: cross-validated models."
    )
    output: str | None = options.output(
        "Worklist to write, most doubtful labels first. Columns, separated by tabs: line, text, gold, suggested, "
        "accept (for a y), doubt, p_label, reason; - for stdout. Default: none.",
        required=False,
        stdout=True,
    )
    top: int = options.count("Number of positions to print. Default: 20.", 20, 0)
    most: int | None = options.count(
        "Number of positions in the worklist, in --json and in the page. Default: the number of labels with "
        "p(gold label | input) < 0.05 (at most 200 in the page)."
    )
    html: str | None = options.written(
        "HTML page to write, with doubtful labels in context. Default: none.", common=True
    )
    apply: str | None = options.written(
        "Write DATA with the corrections of --accept to FILE. Default: none.", common=True
    )
    accept: str | None = options.file(
        "With --apply: make the corrections of this worklist that a person has marked with y in the column accept.",
        "WORKLIST",
    )
    new_labels: bool = options.switch(
        "With --accept: allow labels that DATA does not have. Default: such a row is an error."
    )
    configuration: options.Configuration = options.group(options.Configuration, *options.MODEL_SECTIONS)
    format: str | None
    folds: int | None
    held_out: options.HeldOutOptions
    vectors: tuple[tuple[str, str], ...]
    engine: options.EngineOptions
    json: bool
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        apply, model, accept = (value is not None for value in (self.apply, self.model, self.accept))
        options.refuse(
            (self.json and self.output == "-", "--json and -o - both write to stdout: give one of them"),
            (self.new_labels and not accept, "--new-labels is for --accept WORKLIST: give that, too"),
            (accept and not apply, "--accept is for --apply FILE, the file to write: give it"),
            (apply and not accept, "--apply makes the corrections of a worklist: give --accept WORKLIST"),
            (apply and self.data == "-", "--apply needs DATA as a file: it is read twice"),
            (text_ending(self.apply or ""), f"--apply writes columns: {self.apply} needs another name"),
        )
        if model:
            engine = [name for name, value in asdict(self.engine).items() if value is not None and name != "threads"]
            given = [options.flag(name) for name in (*self.configuration.typed, *engine)]
            others = (self.configuration.config, self.folds, *astuple(self.held_out))
            which = f" ({given[0]})" if given else ""
            training = given or any(value is not None for value in others)
            message = f"-m judges without training: leave out folds, -c and options of training{which}"
            options.refuse((training, message))
        inputs = (self.data, self.model, self.configuration.config, self.held_out.folds_file, self.accept)
        files.check_outputs((self.output, self.html, self.apply), *inputs, *(path for _, path in self.vectors))


@options.command(AuditArguments)
def audit(run: AuditArguments) -> None:
    """List the labels of DATA that are doubtful.

    A label is doubtful if a model trained on other folds finds it improbable, given the input and the neighbouring
    labels. DATA is not changed.

    --apply writes a new file with corrected labels: those that a person has accepted in the worklist, by y in its
    column accept.

    \b
    Example:
      kcrf audit sample_data/pitch_accent.conll --sigma2 0.1 --folds 2 -o worklist.tsv
      kcrf train sample_data/sentences.conllu --sigma2 1 -o words.npz
      kcrf audit sample_data/sentences.conllu -m words.npz --html doubtful.html --top 5
    """
    from kcrf_core.selection import worklist

    from ..render import audit_text

    if run.accept is not None and run.apply is not None:
        _apply_worklist(run, run.accept, run.apply)
        return
    found = _by_folds(run) if run.model is None else _by_model(run, run.model)
    listed = run.most or found.doubtful
    if run.output is not None:
        files.write_out(worklist(found.positions(listed)), run.output, end="")
    if run.html is not None:
        from ..report.html import audit_page, origin_of

        files.write_out(audit_page(found, run.most or min(found.doubtful, 200), origin_of(run.data)), run.html, end="")
    if run.json:
        files.write_out(render.as_json(audit_text.values(found, listed)))
    elif run.output != "-":
        files.show(audit_text.text(found, run.top))


def _by_model(run: AuditArguments, path: str) -> Audit:
    from kcrf_core.corpora import display_name, open_vectors
    from kcrf_core.model import Model
    from kcrf_core.selection import audit_by_model

    if is_encoded(run.data):
        raise click.UsageError(f"{run.data} is encoded already, and has no text to show: give the text")
    model = Model.load(path)
    encoding = model.encoding
    encoding.check_vectors({each.name: each.width for each in open_vectors(run.vectors)}, display_name(run.data))
    format_, threads = run.format or encoding.format, run.engine.threads
    corpus = files.read_data(run.data, format_, encoding.columns, encoding.layout, threads, run.quiet, run.vectors)
    return audit_by_model(model, corpus, threads)


def _by_folds(run: AuditArguments) -> Audit:
    from kcrf_core.encoding import described
    from kcrf_core.selection import Division, audit_by_folds, base_seed, make_plan, make_settings
    from kcrf_core.training import open_engine

    from ..io.progress import progress

    engine, threads, held_out = run.engine.choice(), run.engine.threads, run.held_out
    encoded = f"{run.data} is encoded already, with a vocabulary that has seen all folds: give the text"
    options.refuse((is_encoded(run.data), encoded))
    options.refuse((held_out.folds_file and run.folds, "--folds-file gives the folds: leave out --folds"))
    chosen, source = run.configuration.chosen, run.configuration.source
    raw = files.load_config(run.configuration)
    first = described(raw, chosen, source)  # its mistakes come before any reading
    if first.unobserved is not None or first.half_known:
        hint = "leave out 'unobserved', 'label_sets' and 'soft_labels'"
        raise ConfigError(f"{source}: folds can only judge labels that are observed: {hint}")
    corpus = files.read_data(run.data, run.format, first.columns, first.layout, threads, run.quiet, run.vectors)
    numbers = files.fold_numbers(held_out.folds_file, corpus)
    folds, seed = run.folds or options.DEFAULT_FOLDS, base_seed(raw, chosen)
    division = Division(folds, held_out.group, numbers, seed=seed, block=held_out.block)
    plan = make_plan(corpus, raw, source, make_settings({}, chosen), division, tell=files.unless(run.quiet))
    with (
        open_engine(engine, threads=threads, memory=run.engine.memory, tell=files.unless(run.quiet)) as workers,
        progress(run.quiet, "folds", len(plan.folds)) as moved,
    ):
        return audit_by_folds(plan, workers=workers, done=lambda task: moved())


def _apply_worklist(run: AuditArguments, accept: str, path: str) -> None:
    """Make the corrections that a person has accepted in a worklist: a model says at most how DATA is laid out."""
    from kcrf_core.corpora import guess_format, stream_corpus
    from kcrf_core.encoding import described
    from kcrf_core.model import Model
    from kcrf_core.selection import corrected, read_worklist

    format_ = run.format
    if run.model is not None:
        columns: tuple[str, ...] | None
        encoding = Model.load(run.model).encoding
        format_, columns, layout = format_ or encoding.format, encoding.columns, encoding.layout
    else:
        given = run.configuration
        settings = described(files.load_config(given), given.chosen, given.source)
        columns, layout = settings.columns, settings.layout
    form = (format_ or guess_format(run.data), columns, layout)
    known = None
    if not run.new_labels:
        known = {label for parsed in stream_corpus(run.data, *form) for label in set(parsed.corpus.columns[-1])}
    try:
        with open(accept, encoding="utf-8-sig", newline="") as table:
            changes = read_worklist(table.read(), accept, known)
    except UnicodeDecodeError:
        raise DataError("not a worklist: not UTF-8 text", accept) from None
    text = corrected(run.data, changes, *form)
    with files.output_stream(path) as stream:
        stream.write(text)
    different = counted(sum(change.gold != change.suggested for change in changes), "label")
    files.unless(run.quiet)(f"{different} corrected in {path}; {run.data} is unchanged")
