"""`kcrf select-basis`: choose the pivots that a reduced feature map is spanned by."""

from __future__ import annotations

from typing import Any

import click

from .. import options


@click.command("select-basis", cls=options.Command, short_help="Choose pivots for a kernel.")
@options.data
@options.output_unless_dry
@options.config
@options.format
@options.kernel
@options.encoding
@options.weight
@options.unobserved
@options.vectors
@options.precision
@options.seed
@click.option(
    "--plot",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Draw what is left against the number of pivots (.png, .svg or .pdf; needs matplotlib). Default: no picture.",
)
@options.threads
@options.memory
@options.engine
@options.dry_run
@options.dump_config
@options.json
@options.quiet
def select_basis(
    data: str,
    output: str | None,
    config: str | None,
    format_: str | None,
    vectors: tuple[tuple[str, str], ...],
    plot: str | None,
    threads: int | None,
    memory: int | None,
    dry_run: bool,
    dump_config: bool,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Choose pivots among the positions of DATA, for `train --basis`.

    A kernel model with M pivots scores a position by its kernel values with them. Pivots are chosen so that they
    leave little of the kernel unexplained; the unexplained part of the trace is printed. The basis file keeps
    kernel, encoding and the source line of each pivot. Of a folder of shards (see `featurize`) a sample is looked at.

    \b
    Example:
      kcrf select-basis sample_data/digits.conll --kernel poly --degree 3 --size 300 -o basis.npz
      kcrf train sample_data/digits.conll --basis basis.npz -o digits.npz
    """
    from kcrf_core.device import DeviceChoice
    from kcrf_core.features import save_basis, select_bases
    from kcrf_core.model import digest
    from kcrf_core.system import counted
    from kcrf_core.training import SAMPLE_POSITIONS, check_shard_terms, open_engine

    from ..io.files import check_writable, memory_line, prepare, show_config, show_footprint, write_out
    from ..io.progress import Talk
    from ..render import figures as render
    from ..report.plots import check_plot, residual_curves

    engine = options.engine_of(values)
    options.check_output(output, dry_run, dump_config)
    if output is not None:
        check_writable(output, data, config, *(path for _, path in vectors))
    check_plot(plot)
    if plot is not None:
        check_writable(plot, data, config, output, *(path for _, path in vectors))
    chosen = options.given(values, options.kernel_options(), options.ENCODING_OPTIONS, ("seed", "precision"))
    prepared = prepare(data, format_, config, chosen, None, threads, quiet, vectors)
    if dry_run:
        show_footprint(prepared, memory, threads, as_json, engine)
        return
    if dump_config:
        show_config(prepared.config)
        return
    device = isinstance(engine, DeviceChoice)
    with (
        Talk(quiet) as talk,
        open_engine(engine if device else None, threads=threads, memory=memory, tell=talk.note) as opened,
        opened.workers(threads) as workers,
    ):
        if engine is not None and not device:
            talk.note(f"pivots are chosen on this machine: {engine.address} is not asked")
        for remark in prepared.remarks():
            talk.note(remark)
        if not quiet:  # working it out goes through the data
            talk.note(memory_line(prepared, workers))
        chosen_from, folder = prepared.dataset, prepared.folder
        if folder is not None:
            check_shard_terms(prepared.config)
            chosen_from = folder.sample(SAMPLE_POSITIONS)
            talk.note(f"pivots are chosen among {chosen_from.positions:,} of {counted(folder.positions, 'position')}")
        basis = select_bases(prepared.encoding, chosen_from, prepared.config, workers, talk)
    assert output is not None
    save_basis(output, basis, digest(prepared.dataset) if folder is None else folder.data_digest)
    if plot is not None:
        residual_curves(plot, {term.name: term.curve for term in basis.terms})
    if as_json:
        write_out(
            render.as_json(
                {
                    "schema": 1,
                    "positions": prepared.dataset.positions,
                    "terms": [
                        {
                            "name": term.name,
                            "kernel": term.kernel.type,
                            "pivots": len(term.pivots),
                            "unexplained": float(term.curve[-1]),
                        }
                        for term in basis.terms
                    ],
                }
            )
        )
