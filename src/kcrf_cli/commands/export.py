"""`kcrf export`: a model of ours as a file that CRFsuite, CRF++ or Wapiti reads."""

from __future__ import annotations

from dataclasses import dataclass

import click

from .. import options


@dataclass(frozen=True)
class ExportArguments:
    """Arguments of `export`."""

    model: str = options.argument("MODEL", options.FILE)
    output: str = options.output()
    to: str | None = options.option(
        "The program to write for. Default: by the name of the file, .crfsuite, .crfpp or .wapiti.",
        type=options.NamedChoice("exchange:PROGRAMS"),
    )
    quiet: bool = options.quiet()


@options.command(ExportArguments)
def export(run: ExportArguments) -> None:
    """Write MODEL so that CRFsuite, CRF++ or Wapiti reads it, and labels as kcrf does.

    The model must be linear and of first order. For CRFsuite features are attributes by the names that `featurize
    --like MODEL --export crfsuite` gives them in data; for CRF++ and Wapiti they are lines of a template, and the file
    holds them. CRF++'s file is binary, or text (which `crf_learn --convert` reads) if its name ends in .txt.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll --sigma2 1 -o model.npz
      kcrf export model.npz -o model.crfsuite
      kcrf featurize sample_data/pitch_accent.conll --like model.npz --export crfsuite -o data.crfsuite
    """
    from kcrf_core.exchange import PROGRAMS, export_model, program_of
    from kcrf_core.files import replacing
    from kcrf_core.model import Model
    from kcrf_core.system import counted

    from ..io.files import check_writable, say

    output = run.output
    program = run.to or program_of(output)
    if program is None:
        raise click.UsageError(f"'{output}' tells no program: give --to {', '.join(PROGRAMS)}")
    check_writable(output, run.model)
    loaded = Model.load(run.model)
    data, remarks = export_model(loaded, program, text=output.endswith(".txt"))
    with replacing(output) as stream:
        stream.write(data)
    if not run.quiet:
        for remark in remarks:
            say(remark)
        say(f"{output}: {counted(len(data), 'byte')} for {PROGRAMS[program]}")
