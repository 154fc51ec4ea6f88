"""`kcrf import`: read a model of CRFsuite, CRF++ or Wapiti."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from kcrf_core.config import comma_separated_names

from .. import options
from ..io import files


@dataclass(frozen=True, kw_only=True)
class ImportArguments:
    model: str = options.argument("MODEL", options.FILE)
    output: str = options.output()
    columns: Sequence[str] | None = options.option(
        "Names for the columns of the data, the label's last, where it has more columns than the model looks at: "
        "word,pos,chunk,label. Default: c0, c1, ..., label, as many as the model looks at.",
        "NAMES",
        type=options.OfKind(comma_separated_names),
    )
    encoding: str = options.option(
        "The encoding of strings in MODEL, such as euc-jp; data is UTF-8 here. Default: utf-8.",
        "NAME",
        default="utf-8",
    )
    json: bool
    quiet: bool


@options.command(ImportArguments, "import")
def import_(run: ImportArguments) -> None:
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

    files.check_writable(run.output, run.model)
    made, found = import_model(run.model, run.columns, run.encoding)
    made.save(run.output)
    if run.json:
        files.write_json(found.figures() | {"bytes": os.path.getsize(run.output)})
    for line in (*found.summary(), *found.remarks):
        files.unless(run.quiet)(line)
