"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

import click

from . import options


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
def tag(data: str, model: str, output: str | None, format_: str | None) -> None:
    """Label the sequences of INPUT (default: stdin), which may or may not carry gold labels.

    Every line is repeated as it is, with the predicted label as one more column. Sequences are labelled as they
    arrive, so `tag` can stand in a pipe and takes the same memory for any length of input. Attribute files give
    two columns, the label they had and the predicted one.

    \b
    Example:
      kcrf train sample_data/digits.conll -o model.npz
      kcrf tag -m model.npz sample_data/digits.conll | kcrf evaluate -
    """
    from kcrf_core.formats import stream_corpus
    from kcrf_core.lines import encode_lines
    from kcrf_core.model import Model
    from kcrf_core.parallel import Workers

    from .files import check_writable, output_stream

    if output not in (None, "-"):
        check_writable(output, data, model)
    fitted = Model.load(model)
    format_ = format_ or fitted.encoding.format
    attributes = format_ == "crfsuite"
    with Workers(1), output_stream(output) as stream:
        for parsed in stream_corpus(data, format_):
            corpus, lines = parsed.corpus, list(parsed.block.lines)
            if corpus.positions:
                _append(lines, parsed, fitted.tag_corpus(corpus), attributes)
            stream.write(encode_lines(lines, parsed.block.ends_with_newline))
            stream.flush()


def _append(lines: list[str], parsed, labels: list[str], attributes: bool) -> None:
    """Put the predicted labels into the raw lines."""
    from kcrf_core.conll import append_columns

    corpus = parsed.corpus
    places = (corpus.lines - parsed.block.first_line).tolist()
    if attributes:
        endings = ["\r" if line.endswith("\r") else "" for line in lines]
        # A weight is no position: an empty line in its place keeps the number of lines.
        for place, line in enumerate(parsed.block.content()):
            if line.startswith("@weight:"):
                lines[place] = endings[place]
        for place, gold, label in zip(places, corpus.columns[0], labels, strict=True):
            lines[place] = f"{gold}\t{label}{endings[place]}"
    else:
        for place, label in zip(places, labels, strict=True):
            lines[place] = append_columns(lines[place], parsed.separator, [label])
