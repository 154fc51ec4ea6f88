"""`kcrf next`: choose sequences to label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import click

from kcrf_core.errors import DataError
from kcrf_core.system import counted, listed

from .. import options
from ..io import files
from .tag import parsers_by_group, parsers_with_vectors


@dataclass(frozen=True, kw_only=True)
class NextArguments:
    data: str = options.argument("POOL", options.DATA_FILE)
    model: str | None = options.DATA.model("Model to judge and to suggest labels by. Default: none, for a first batch.")
    count: int = options.option(
        "Number of sequences. Default: 50.", "N", "-n", "--count", type=click.IntRange(1), default=50, common=True
    )
    output: str | None = options.output(
        "File to write; for brat NAME.ann (and NAME.txt). Default: stdout.", False, True
    )
    strategy: str = options.MODEL.option(
        "Score of a sequence: the entropy of its labels, all together (entropy), or -log of the probability of its "
        "best labelling (least-confidence). Default: entropy.",
        type=options.NamedChoice("selection:STRATEGIES"),
        default="entropy",
        common=True,
    )
    cost_per: str = options.MODEL.option(
        "What costs time: each position, so that scores are divided by their number, or a sequence of any length. "
        "Default: position.",
        type=options.NamedChoice("selection:COSTS"),
        default="position",
        common=True,
    )
    group: str | None = options.MODEL.option(
        "Spread the choice over sequences with different values in this column, such as documents: none gets one more "
        "before all others that have candidates have as many. Default: no groups.",
        "COLUMN",
    )
    text: bool
    tokens: str | None
    empty_labels: str | None
    to: str | None = options.option(
        "Form of the output: the lines of POOL with suggested labels (columns), or texts with suggested spans and "
        "their scores for a labelling tool. Default: columns, and prodigy for texts.",
        type=click.Choice(["columns", "labelstudio", "doccano", "prodigy", "brat"]),
        common=True,
    )
    vectors: tuple[tuple[str, str], ...]
    format: str | None
    threads: int | None
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        named = (self.output or "").endswith(".ann")
        options.refuse(
            (self.to == "brat" and not named, "--to brat writes two files: give -o NAME.ann; NAME.txt is written, too"),
            (self.text and self.format, "--format is for files of columns: it does not go with --text"),
            (self.vectors and self.model is None, "--vectors are those of a model: give -m, too"),
        )
        files.check_outputs([self.output, self.beside], self.data, self.model, *(path for _, path in self.vectors))

    @property
    def beside(self) -> str | None:
        """Name of the text beside annotations of brat."""
        return os.path.splitext(self.output)[0] + ".txt" if self.to == "brat" and self.output else None


@options.command(NextArguments, "next")
def next(run: NextArguments) -> None:
    """Choose the sequences of POOL to label next, and suggest labels for them.

    They are those that the model is least certain of, for what they cost, and that differ from each other. Sequences
    whose labels are all known, or that the model was trained on, are left out; if some labels of a sequence are known,
    they are kept. Without a model, sequences are chosen that differ. POOL may be larger than memory.

    The most useful sequence comes first. A line on stderr says why each was chosen.

    \b
    Example:
      kcrf train sample_data/addresses.conll --sigma2 1 -o model.npz
      kcrf next - --text -m model.npz --to columns <<< 'Suite 3 12 Lake Rd'
      kcrf next - --text -m model.npz --to labelstudio -o tasks.json <<< 'Suite 3 12 Lake Rd'
      kcrf next sample_data/addresses.conll -n 20 --to doccano
    """
    from kcrf_core.corpora import COLUMN_FORMAT, FORMATS, PLAIN, guess_format, open_vectors, stream_parsers
    from kcrf_core.model import Model
    from kcrf_core.system import PAUSE, Workers

    from ..render.suggestions import Batch, brat_files

    tell, name = files.unless(run.quiet), "<stdin>" if run.data == "-" else run.data
    model = None if run.model is None else Model.load(run.model)
    encoding, opened = None if model is None else model.encoding, open_vectors(run.vectors)
    layout = PLAIN if encoding is None else encoding.layout
    layout = options.with_reading(layout, tokens=run.tokens, empty_labels=run.empty_labels)
    format_ = COLUMN_FORMAT if run.text else run.format or (encoding.format if encoding else guess_format(run.data))
    batch = Batch(model, FORMATS[format_], run.count, run.strategy, run.cost_per, run.group, run.to)
    with Workers(run.threads) as workers:
        columns = None if encoding is None else encoding.columns
        parsing = partial(stream_parsers, run.data, format_, columns, layout, run.text)
        parsers = parsing() if encoding is None else parsers_by_group(parsing, encoding, run.data, workers)
        if opened:
            parsers = parsers_with_vectors(parsers, opened, name, workers)
        for block in workers.stream(batch.judged, parsers):
            for remark in () if block is PAUSE else batch.add(*block):
                tell(remark)
    if batch.unknown:
        labels = counted(batch.unknown.total(), "label is", "labels are")
        tell(f"{name}: {labels} unknown to the model ({listed(sorted(batch.unknown))}), and kept")
    if batch.closed:
        known = counted(batch.closed, "sequence is labelled", "sequences are labelled")
        tell(f"{name}: {known} or known to the model, and left out")
    chosen = batch.chosen()
    if not chosen:
        raise DataError("no sequence to label", name)
    for number, (why, _) in enumerate(chosen, 1):
        tell(f"{number}. {why}")
    if run.beside is not None:
        for path, text in zip((run.beside, run.output), brat_files([one for _, one in chosen], name), strict=True):
            files.write_out(text, path, end="")
        return
    with files.output_stream(run.output) as stream:
        stream.write(batch.written(chosen))
