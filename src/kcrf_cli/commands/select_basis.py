"""`kcrf select-basis`: choose the pivots that a reduced feature map is spanned by."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import dataclass

from kcrf_core.system import counted

from .. import options
from ..io import files


@dataclass(frozen=True, kw_only=True)
class BasisArguments(options.PreparedArguments):
    configuration: options.Configuration = options.group(
        options.Configuration, "kernel", "layout", "encoding", "unobserved", "precision", "seed"
    )
    verbose: bool = options.verbose("memory, kinds of columns")


@options.command(BasisArguments)
def select_basis(run: BasisArguments) -> None:
    """Choose pivots among the positions of DATA, for `train --basis`.

    A kernel model with M pivots (inducing points) scores a position by its kernel values with them. Pivots are chosen
    to leave little of the kernel's trace unexplained; the unexplained part is printed.

    The basis file has the kernel, the encoding and the source line of each pivot. From a folder of shards (see
    `featurize`) pivots are chosen on a sample.

    \b
    Example:
      kcrf select-basis sample_data/digits.conll --kernel poly --degree 3 --size 300 -o basis.npz
      kcrf train sample_data/digits.conll --basis basis.npz -o digits.npz
    """
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.device import DeviceChoice
    from kcrf_core.features import save_basis, select_bases
    from kcrf_core.model import digest
    from kcrf_core.training import SAMPLE_POSITIONS, check_shard_terms, open_engine

    from ..io.events import ProgressMessages
    from ..render.figures import written_text

    engine, threads = run.engine.choice(), run.engine.threads
    vectors = (path for _, path in run.vectors)
    files.check_outputs([run.output], run.data, run.configuration.config, *vectors)
    prepared = files.prepare(run)
    if files.configuration_printed(run, lambda: prepared):
        return
    dataset, config, folder = prepared.dataset, prepared.config, prepared.folder
    device = engine if isinstance(engine, DeviceChoice) else None
    with (
        closing(ProgressMessages(run.quiet, run.verbose)) as messages,
        open_engine(device, threads=threads, memory=run.engine.memory, tell=messages.report) as workers,
    ):
        if isinstance(engine, ClusterEngine):
            messages.report(f"pivots are chosen on this machine: {engine.address} is not used")
        prepared.describe(messages)
        if folder is not None:
            check_shard_terms(config)
            sample = folder.sample(SAMPLE_POSITIONS)
            messages.report(f"pivots are chosen among {sample.positions:,} of {counted(folder.positions, 'position')}")
        basis = select_bases(prepared.encoding, dataset if folder is None else sample, config, workers, messages)
    assert run.output is not None
    save_basis(run.output, basis, digest(dataset) if folder is None else folder.data_digest)
    for term in () if run.verbose else basis.terms:  # details have them, too
        pivots, left = counted(len(term.pivots), "pivot"), 100 * term.curve[-1]
        messages.report(f"term {term.name}: {term.kernel.type} kernel, {pivots}, {left:.2g} % of the trace unexplained")
    messages.report(written_text(run.output, f"kcrf train {shlex.quote(run.data)} --basis {{}} -o model.npz"))
    if run.json:
        terms = [
            {
                "name": term.name,
                "kernel": term.kernel.type,
                "pivots": len(term.pivots),
                "unexplained": float(term.curve[-1]),
            }
            for term in basis.terms
        ]
        files.write_json({"positions": dataset.positions, "terms": terms})
