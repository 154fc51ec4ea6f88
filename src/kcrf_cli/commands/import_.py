"""`kcrf import`: a model of CRFsuite, CRF++ or Wapiti as one of ours."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from .. import options


@click.command(name="import", short_help="Read a model of another program.")
@click.argument("model", type=click.Path(dir_okay=False), metavar="MODEL")
@options.output
@click.option(
    "--columns",
    type=options.Names(),
    metavar="NAMES",
    help="Names for the columns of the data, the label's last, where it has more columns than the model looks at: "
    "word,pos,chunk,label. Default: c0, c1, ..., label, as many as the model looks at.",
)
@click.option(
    "--encoding",
    default="utf-8",
    metavar="NAME",
    help="The encoding of strings in MODEL, such as euc-jp; data is UTF-8 here. Default: utf-8.",
)
@options.json
@options.quiet
def import_(model: str, output: str, columns: Sequence[str] | None, encoding: str, as_json: bool, quiet: bool) -> None:
    """Make a model of ours out of MODEL, which CRFsuite, CRF++ (text or binary) or Wapiti wrote.

    Which of them it was is seen from the file. The new model gives the same labels and probabilities, and is used
    like any other: by tag, evaluate, inspect, and train --init. It takes the data that the other one took: attribute
    files, or columns with the label last.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll --sigma2 1 -o model.npz
      kcrf export model.npz -o model.crfsuite
      kcrf import model.crfsuite -o again.npz
    """
    from kcrf_core.exchange import import_model

    from ..io.files import check_writable, say, write_out
    from ..render import figures as render

    check_writable(output, model)
    made, found = import_model(model, columns, encoding)
    made.save(output)
    figures = found.figures() | {"bytes": os.path.getsize(output)}
    if as_json:
        write_out(render.as_json({"schema": 1, **figures}))
    if not quiet:
        for line in (*found.said(), *found.remarks):
            say(line)
