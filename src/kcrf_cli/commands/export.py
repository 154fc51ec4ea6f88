"""`kcrf export`: write a model for CRFsuite, CRF++ or Wapiti."""

from __future__ import annotations

from dataclasses import dataclass

import click

from kcrf_core.files import replacing
from kcrf_core.system import counted

from .. import options
from ..io import files


@dataclass(frozen=True, kw_only=True)
class ExportArguments:
    model: str = options.argument("MODEL", options.FILE)
    output: str = options.output()
    to: str | None = options.option(
        "Program to write for. Default: by the suffix of the output, .crfsuite, .crfpp or .wapiti.",
        type=options.NamedChoice("exchange:PROGRAMS"),
    )
    quiet: bool


@options.command(ExportArguments)
def export(run: ExportArguments) -> None:
    """Convert MODEL to a model of CRFsuite, CRF++ or Wapiti that gives the same labels.

    The model must be linear and of first order. For CRFsuite, features become attributes; `featurize --like MODEL
    --export crfsuite` writes data with these attributes. For CRF++ and Wapiti, features become lines of a template
    inside the file. A file for CRF++ is binary, or text (for `crf_learn --convert`) if its name ends in .txt.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll --sigma2 1 -o model.npz
      kcrf export model.npz -o model.crfsuite
      kcrf featurize sample_data/pitch_accent.conll --like model.npz --export crfsuite -o data.crfsuite
    """
    from kcrf_core.exchange import PROGRAMS, export_model, program_of
    from kcrf_core.model import Model

    output, tell = run.output, files.unless(run.quiet)
    program = run.to or program_of(output)
    if program is None:
        raise click.UsageError(f"'{output}' has no suffix of a program: give --to {', '.join(PROGRAMS)}")
    files.check_writable(output, run.model)
    data, remarks = export_model(Model.load(run.model), program, text=output.endswith(".txt"))
    with replacing(output) as stream:
        stream.write(data)
    for remark in (*remarks, f"{output}: {counted(len(data), 'byte')} for {PROGRAMS[program]}"):
        tell(remark)
