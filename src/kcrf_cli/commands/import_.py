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
    columns: Sequence[str] | None = options.DATA.option(
        "Names of the columns of the data, the label last, as word,pos,chunk,label; needed if the data has more "
        "columns than the model uses. Default: c0, c1, ..., label, as many as the model uses.",
        "NAMES",
        type=options.OfKind(comma_separated_names),
    )
    encoding: str = options.DATA.option(
        "Character encoding of MODEL, such as euc-jp; kcrf's own data is UTF-8. Default: utf-8.",
        "NAME",
        default="utf-8",
    )
    json: bool
    quiet: bool


@options.command(ImportArguments, "import")
def import_(run: ImportArguments) -> None:
    """Convert MODEL, written by CRFsuite, CRF++ (binary) or Wapiti, to a kcrf model.

    The program is detected from the file; a text of `crf_learn -t` is converted first (`crf_learn -C`). The new model
    gives the same labels and probabilities for the same data (attribute files, or columns with the label last), and
    works with tag, evaluate, inspect and train --init.

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
