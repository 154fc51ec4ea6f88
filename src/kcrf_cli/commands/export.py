"""`kcrf export`: write a model for kcrf-tag, CRFsuite, CRF++ or Wapiti."""

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
        "Program to write for; runtime: kcrf-tag and the C library. Default: by the suffix of the output, .kcrf, "
        ".crfsuite, .crfpp or .wapiti.",
        type=options.NamedChoice("exchange:PROGRAMS"),
    )
    quantize: str | None = options.option(
        "Form of weights for the runtime: float32, or none for double precision, which gives the scores of kcrf "
        "itself. Default: float32.",
        type=options.NamedChoice("runtime:QUANTIZED"),
    )
    quiet: bool


@options.command(ExportArguments)
def export(run: ExportArguments) -> None:
    """Convert MODEL to a file for kcrf-tag, CRFsuite, CRF++ or Wapiti that gives the same labels.

    For `--to runtime`, any model without pivots and rules will do; the file is for the program kcrf-tag and for the C
    library, which need no Python. For other programs the model must be linear and of first order. For CRFsuite,
    features become attributes; `featurize --like MODEL --export crfsuite` writes data with these attributes. For CRF++
    and Wapiti, features become lines of a template inside the file.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll --sigma2 1 -o model.npz
      kcrf export model.npz --to runtime -o model.kcrf
      kcrf export model.npz -o exact.kcrf --quantize none
      kcrf export model.npz -o model.crfsuite
      kcrf featurize sample_data/pitch_accent.conll --like model.npz --export crfsuite -o data.crfsuite
    """
    from kcrf_core.exchange import PROGRAMS, export_model, program_of
    from kcrf_core.model import Model

    output, tell = run.output, files.unless(run.quiet)
    program = run.to or program_of(output)
    if program is None:
        raise click.UsageError(f"'{output}' has no suffix of a program: give --to {', '.join(PROGRAMS)}")
    if program != "runtime":
        options.refuse((run.quantize is not None, "--quantize is for --to runtime"))
    files.check_outputs([output], "", run.model)
    model = Model.load(run.model)
    data, remarks = export_model(model, program, run.quantize or "float32")
    with replacing(output) as stream:
        stream.write(data)
    for remark in (*remarks, f"{output}: {counted(len(data), 'byte')} for {PROGRAMS[program]}"):
        tell(remark)
