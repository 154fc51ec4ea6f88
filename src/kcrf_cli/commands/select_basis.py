"""`kcrf select-basis`: choose the pivots that a reduced feature map is spanned by."""

from __future__ import annotations

from dataclasses import dataclass

from .. import options


@dataclass(frozen=True)
class BasisArguments:
    """Arguments of `select-basis`."""

    data: str = options.data()
    output: str | None = options.output_unless_dry()
    configuration: options.Configuration = options.configuration(
        "kernel", "layout", "encoding", "unobserved", "precision", "seed"
    )
    format: str | None = options.format()
    vectors: tuple[tuple[str, str], ...] = options.vectors()
    plot: str | None = options.written(
        "Plot what is left against the number of pivots (.png, .svg or .pdf; needs matplotlib). Default: no plot."
    )
    engine: options.EngineOptions = options.group(options.EngineOptions)
    dry_run: bool = options.dry_run()
    dump_config: bool = options.dump_config()
    json: bool = options.json()
    quiet: bool = options.quiet()


@options.command(BasisArguments)
def select_basis(run: BasisArguments) -> None:
    """Choose pivots among the positions of DATA, for `train --basis`.

    A kernel model with M pivots scores a position by its kernel values with them. Pivots are chosen so that they
    leave little of the kernel unexplained; the unexplained part of the trace is printed. The basis file keeps
    kernel, encoding and the source line of each pivot. Of a folder of shards (see `featurize`) a sample is looked at.

    \b
    Example:
      kcrf select-basis sample_data/digits.conll --kernel poly --degree 3 --size 300 -o basis.npz
      kcrf train sample_data/digits.conll --basis basis.npz -o digits.npz
    """
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.device import DeviceChoice
    from kcrf_core.features import save_basis, select_bases
    from kcrf_core.model import digest
    from kcrf_core.system import counted
    from kcrf_core.training import SAMPLE_POSITIONS, check_shard_terms, open_engine

    from ..io.files import check_writable, memory_line, prepare, show_config, show_footprint, write_out
    from ..io.progress import Talk
    from ..render import figures as render
    from ..report.plots import check_plot, residual_curves

    engine, threads = run.engine.choice(), run.engine.threads
    options.check_output(run.output, run.dry_run, run.dump_config)
    config, inputs = run.configuration.config, [path for _, path in run.vectors]
    if run.output is not None:
        check_writable(run.output, run.data, config, *inputs)
    check_plot(run.plot)
    if run.plot is not None:
        check_writable(run.plot, run.data, config, run.output, *inputs)
    chosen = run.configuration.chosen
    prepared = prepare(run.data, run.format, config, chosen, None, threads, run.quiet, run.vectors)
    if run.dry_run:
        show_footprint(prepared, run.engine.memory, threads, run.json, engine)
        return
    if run.dump_config:
        show_config(prepared.config)
        return
    device = engine if isinstance(engine, DeviceChoice) else None
    with (
        Talk(run.quiet) as talk,
        open_engine(device, threads=threads, memory=run.engine.memory, tell=talk.note) as opened,
        opened.workers(threads) as workers,
    ):
        if isinstance(engine, ClusterEngine):
            talk.note(f"pivots are chosen on this machine: {engine.address} is not asked")
        for remark in prepared.remarks():
            talk.note(remark)
        if not run.quiet:  # working it out goes through the data
            talk.note(memory_line(prepared, workers))
        chosen_from, folder = prepared.dataset, prepared.folder
        if folder is not None:
            check_shard_terms(prepared.config)
            chosen_from = folder.sample(SAMPLE_POSITIONS)
            talk.note(f"pivots are chosen among {chosen_from.positions:,} of {counted(folder.positions, 'position')}")
        basis = select_bases(prepared.encoding, chosen_from, prepared.config, workers, talk)
    assert run.output is not None
    save_basis(run.output, basis, digest(prepared.dataset) if folder is None else folder.data_digest)
    if run.plot is not None:
        residual_curves(run.plot, {term.name: term.curve for term in basis.terms})
    if run.json:
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
