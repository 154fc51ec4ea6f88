"""`kcrf crossval`: cross-validation, over a grid of settings if wanted."""

from __future__ import annotations

import sys
from typing import Any

import click

from . import options


@click.command(short_help="Cross-validate, over a grid if wanted.")
@options.data
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Results to write, as JSON; - for stdout.",
)
@options.config
@options.format
@click.option("--folds", type=click.IntRange(min=2), default=5, metavar="K", help="Number of folds. Default: 5.")
@click.option(
    "--grid",
    multiple=True,
    metavar="KEY=V,V,...",
    help="Values to try for an option (degree=1,2,3) or for a dotted path of the configuration "
    "(training.sigma2=1,10); several make a grid.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Folds trained at a time. Default: 1.")
@options.kernel
@options.basis_tolerance
@options.encoding
@options.chain
@options.training
@options.threads
@options.json
@options.quiet
def crossval(
    data: str,
    output: str | None,
    config: str | None,
    format_: str | None,
    folds: int,
    grid: tuple[str, ...],
    jobs: int,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Train and judge on K folds of whole sequences of DATA.

    Each fold is judged by a model trained on the others, its vocabulary, pivots and sigma2 included. A table of
    means and deviations goes to stdout, every fold's figures to the output file.

    \b
    Example:
      kcrf crossval sample_data/pitch_accent.conll --folds 2 --grid degree=1,2 --kernel poly --size 100 \\
          --sigma2 1 -o results.json
    """
    from kcrf_core.crossval import make_plan, parse_grid, run_plan
    from kcrf_core.formats import read_corpus

    from . import render
    from .files import check_writable, is_archive, load_config, output_stream, write_out

    options.resolve_c2(values)
    if output not in (None, "-"):
        check_writable(output, data, config)
    if is_archive(data):
        raise click.UsageError(
            f"{data} is encoded already, with a vocabulary and scaling that have seen the test folds: give text"
        )
    raw = load_config(config)
    chosen = options.given(
        values, options.KERNEL_OPTIONS, options.ENCODING_OPTIONS, options.CHAIN_OPTIONS, options.TRAINING_OPTIONS
    )
    points = parse_grid(grid)
    plan = make_plan(read_corpus(data, format_), raw, config or "options", chosen, points, folds)
    total = len(plan.settings) * folds
    with _bar(total, quiet) as bar:
        results = run_plan(plan, jobs, threads, lambda task: bar.update())
    text = render.as_json(results)
    if output not in (None, "-"):
        with output_stream(output) as stream:
            stream.write((text + "\n").encode())
    write_out(text if as_json or output == "-" else _table(results, list(points)))


def _bar(total: int, quiet: bool) -> Any:
    from tqdm import tqdm

    unseen = quiet or sys.stderr is None or not sys.stderr.isatty()
    return tqdm(total=total, desc="folds", file=sys.stderr, leave=False, disable=unseen)


def _table(results: dict[str, Any], keys: list[str]) -> str:
    from . import render

    measures = [m for m in ("accuracy", "sequence_accuracy", "f1") if m in results["settings"][0]]
    titles = {"accuracy": "accuracy %", "sequence_accuracy": "sequences %", "f1": "F1"}
    rows = []
    for number, entry in enumerate(results["settings"]):
        name = " ".join(f"{key}={entry['setting'][key]}" for key in keys) or "all"
        cells = [f"{render.percent(entry[m]['mean'])} ± {render.percent(entry[m]['deviation'])}" for m in measures]
        gaps = [fold["training"]["certified_gap"] for fold in entry["folds"]]
        worst = "unknown" if None in gaps else render.gap_text(max(gaps))
        mark = "*" if number == results["best"] and len(results["settings"]) > 1 else ""
        rows.append([name, *cells, worst, mark])
    text = render.table(["setting", *[titles[m] for m in measures], "certified gap", ""], rows)
    unknown = sum(fold["unknown_gold"] for fold in results["settings"][0]["folds"])
    if unknown:
        text += f"\n{unknown:,} gold labels were missing from their training folds and counted wrong"
    return text
