"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from . import options

if TYPE_CHECKING:
    import numpy as np

    from kcrf_core.lines import ParsedBlock


@click.command(short_help="Label sequences with a model.")
@click.argument("data", type=click.Path(allow_dash=True), metavar="[INPUT]", default="-")
@click.option(
    "-m", "--model", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="Model to label with."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="File to write. Default: stdout.",
)
@options.format
@options.threads
def tag(data: str, model: str, output: str | None, format_: str | None, threads: int | None) -> None:
    """Label the sequences of INPUT (default: stdin), which may or may not carry gold labels.

    Every line is repeated as it is, with the predicted label as one more column. Sequences are labelled as they
    arrive, so `tag` can stand in a pipe and takes the same memory for any length of input. CoNLL-U files get the
    label in its own column, in place of what stood there; attribute files give two columns, the label they had and
    the predicted one.

    \b
    Example:
      kcrf train sample_data/digits.conll -o model.npz
      kcrf tag -m model.npz sample_data/digits.conll | kcrf evaluate -
    """
    from kcrf_core.conll import append_labels
    from kcrf_core.conllu import put_labels
    from kcrf_core.formats import stream_corpus
    from kcrf_core.model import Model
    from kcrf_core.parallel import Workers

    from .files import check_writable, output_stream

    if output not in (None, "-"):
        check_writable(output, data, model)
    fitted = Model.load(model)
    format_ = format_ or fitted.encoding.format
    write = {"crfsuite": _gold_and_predicted, "conllu": put_labels}.get(format_, append_labels)
    with Workers(threads) as workers, output_stream(output) as stream:
        for parsed in stream_corpus(data, format_, fitted.encoding.columns):
            tagged = parsed.block.data
            if parsed.corpus.positions:
                best = fitted.tag(fitted.encoding.encode(parsed.corpus), workers)
                tagged = write(parsed, fitted.labels, best)
            stream.write(tagged)
            stream.flush()


def _gold_and_predicted(parsed: ParsedBlock, labels: Sequence[str], numbers: np.ndarray) -> bytes:
    """The lines of an attribute file as two columns, the label they had and the one that is predicted."""
    from kcrf_core.lines import encode_lines

    corpus, lines = parsed.corpus, list(parsed.block.lines)
    places = (corpus.lines - parsed.block.first_line).tolist()
    endings = ["\r" if line.endswith("\r") else "" for line in lines]
    # A weight is no position: an empty line in its place keeps the number of lines.
    for place, line in enumerate(parsed.block.content()):
        if line.startswith("@weight:"):
            lines[place] = endings[place]
    for place, gold, number in zip(places, corpus.columns[0], numbers.tolist(), strict=True):
        lines[place] = f"{gold}\t{labels[number]}{endings[place]}"
    return encode_lines(lines, parsed.block.ends_with_newline)
