"""`kcrf guarantee`: store thresholds for `tag --review` and `tag --sets`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import click

from kcrf_core.files import is_encoded

from .. import options
from ..io import files
from ..render.figures import guarantee_text

_share = partial(options.STATISTICS.option, metavar="SHARE", type=click.FloatRange(0, 1, True, True), common=True)


@dataclass(frozen=True, kw_only=True)
class GuaranteeArguments:
    model: str = options.argument("MODEL", options.FILE)
    data: str
    risk: float | None = _share(
        "Share of all positions that may be wrong and not marked for review, in expectation over sequences, as 0.02. "
        "Default: no threshold for review."
    )
    among_unmarked: bool = options.STATISTICS.switch(
        "With --risk: share of the unmarked that may be wrong, with probability 0.9. Default: of all.", common=True
    )
    of: str | None = options.STATISTICS.option(
        "Items of --risk: positions, or predicted spans, without those that the model misses. Default: position.",
        type=options.NamedChoice("scoring:ITEMS"),
        common=True,
    )
    sets: float | None = _share(
        "Share of labels that lie in their set, in expectation over sequences, as 0.95. Default: no threshold for sets."
    )
    output: str | None = options.output("Model to write. Default: MODEL is replaced.", required=False)
    vectors: tuple[tuple[str, str], ...]
    empty_labels: str | None
    format: str | None
    threads: int | None
    json: bool
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        options.refuse(
            (self.risk is None and self.sets is None, "nothing to guarantee: give --risk SHARE, --sets SHARE or both"),
            (self.risk is None and (self.among_unmarked or self.of), "--among-unmarked and --of need --risk"),
            (is_encoded(self.data), f"{self.data} is encoded: give the text"),
        )
        files.check_writable(self.output or self.model, self.data, *(path for _, path in self.vectors))


@options.command(GuaranteeArguments)
def guarantee(run: GuaranteeArguments) -> None:
    """Find thresholds by DATA, labelled sequences that MODEL was not trained on, and store them in MODEL.

    By --risk, `kcrf tag --review` marks positions to review, so that at most this share of all positions of a sequence
    is wrong and not marked, in expectation. By --sets, `kcrf tag --sets` writes the labels that are possible.

    \b
    Example:
      kcrf train - --sigma2 1 -o model.npz < <(head -n 3074 sample_data/pitch_accent.conll)
      kcrf guarantee model.npz - --risk 0.05 --sets 0.95 < <(tail -n +3075 sample_data/pitch_accent.conll)
      kcrf tag -m model.npz sample_data/pitch_accent.conll --review --sets
    """
    from kcrf_core.model import Model, add_guarantees
    from kcrf_core.scoring import AMONG_UNMARKED, COVERAGE, POSITION, RISK
    from kcrf_core.system import Workers

    model = Model.load(run.model)
    encoding, aims = model.encoding, []
    layout = options.with_reading(encoding.layout, empty_labels=run.empty_labels)
    form = run.format or encoding.format, encoding.columns, layout
    corpus = files.read_data(run.data, *form, run.threads, run.quiet, run.vectors)
    if run.risk is not None:
        aims.append((AMONG_UNMARKED if run.among_unmarked else RISK, run.of or POSITION, run.risk))
    if run.sets is not None:
        aims.append((COVERAGE, POSITION, round(1 - run.sets, 12)))
    with Workers(run.threads) as workers:
        model, reports = add_guarantees(model, corpus, aims, workers, files.unless(run.quiet))
    model.save(run.output or run.model)
    if run.json:
        files.write_json({"guarantees": reports})
    else:
        files.show("\n".join(map(guarantee_text, reports)))
