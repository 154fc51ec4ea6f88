"""`kcrf train`: fit a model to labelled sequences."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.encoding import Dataset
    from kcrf_core.training import Prepared


@click.command(cls=options.Command, short_help="Train a model.")
@options.data
@options.output_unless_dry
@options.config
@options.format
@options.kernel
@options.basis_tolerance
@click.option(
    "--basis",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Pivots, kernel and encoding from `select-basis`; options that contradict them are refused.",
)
@options.encoding
@options.weight
@options.unobserved
@options.vectors
@options.chain
@options.training
@options.held_out
@click.option(
    "--certify",
    type=click.Choice(["estimate", "exact"]),
    default="estimate",
    help="What could still be gained outside the pivots: an estimate, or a bound that takes all pairs of positions. "
    "Default: estimate.",
)
@click.option(
    "--select-terms",
    is_flag=True,
    help="Keep only those terms of the configuration that do better than chance, fit by fit on held-out sequences.",
)
@click.option(
    "--min-gain",
    type=click.FloatRange(min=0),
    metavar="G",
    help="With --select-terms: leave out terms that are proven to gain less in P, in nats. Default: 1.",
)
@click.option(
    "--init",
    type=click.Path(dir_okay=False),
    metavar="MODEL",
    help="Start from this model, by the names of its labels and features, and with its sigma2 unless --sigma2 is "
    "given. Default: from zero.",
)
@click.option(
    "--dev",
    type=click.Path(allow_dash=True),
    metavar="DEV",
    help="Labelled data to score while training goes on; nothing is learnt from it. Default: none.",
)
@click.option(
    "--dev-vectors",
    type=options.NamedPath(),
    multiple=True,
    metavar="NAME=FILE",
    help="Vectors beside DEV, as --vectors has them beside DATA. Default: none.",
)
@click.option(
    "--keep",
    type=click.Choice(["last", "best"]),
    help="Parameters to write: the last ones, which are certified, or those that label DEV best. Default: last.",
)
@click.option(
    "--prune",
    type=options.FiniteNumber(),
    metavar="EPS",
    help="Drop weights and pivots after training that change no score of any position of DATA by more than EPS, all "
    "of them together. Default: keep all.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Calibrate probabilities by scores of five folds that models of the others give, where that lowers their "
    "log-loss by more than a standard error; folds keep to --group and --folds-file, and weights stay as they are. "
    "Default: probabilities as they come.",
)
@click.option(
    "--log",
    type=options.FileToWrite(stdout=True),
    metavar="FILE",
    help="Write what happens as JSON, one line per event, - for stdout. Default: no log.",
)
@click.option(
    "--checkpoint",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Keep the run in FILE every few minutes; the same command goes on from there, with the bytes of a run that "
    "was not stopped. FILE is removed once the model is written. Default: none.",
)
@click.option(
    "--checkpoint-every",
    type=options.Duration(),
    metavar="TIME",
    help="With --checkpoint: how often to write it, as 90s, 10m or 1h. Default: 5m.",
)
@click.option("--strict", is_flag=True, help="Exit with 5 if the tolerance was not certified.")
@options.threads
@options.memory
@options.engine
@options.dry_run
@options.dump_config
@options.json
@options.quiet
@options.verbose("pass over the data")
def train(
    data: str,
    output: str | None,
    config: str | None,
    format_: str | None,
    basis: str | None,
    vectors: tuple[tuple[str, str], ...],
    group: str | None,
    folds_file: str | None,
    block: int | None,
    certify: str,
    select_terms: bool,
    min_gain: float | None,
    init: str | None,
    dev: str | None,
    dev_vectors: tuple[tuple[str, str], ...],
    keep: str | None,
    prune: float | None,
    calibrate: bool,
    log: str | None,
    checkpoint: str | None,
    checkpoint_every: float | None,
    strict: bool,
    threads: int | None,
    memory: int | None,
    dry_run: bool,
    dump_config: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **values: Any,
) -> None:
    """Train a model on the labelled sequences of DATA.

    Nothing needs to be set: numeric columns are real features, words and tags are recognised and get features that suit
    them (--dump-config shows which, --plain does without), the kernel is linear, and the prior variance is chosen on
    held-out sequences. Training stops when the objective is proven to be within --tolerance of its optimum. The first
    Ctrl-C or SIGTERM ends the final fit early with the best model so far; before that fit it writes nothing.

    DATA may be a folder of shards (see `featurize`) that does not fit into memory: what is chosen is then chosen on a
    sample, and it says on how much.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll -o model.npz
      kcrf train sample_data/pitch_accent.conll --kernel poly --degree 2 --size 300 -o model.npz
      kcrf train sample_data/pitch_accent.conll --block 200 -o model.npz
      kcrf train sample_data/pitch_accent.conll -c sample_data/terms.yaml --select-terms -o model.npz
      kcrf train sample_data/pitch_accent.conll --plain --observed-features --prune 0.1 -o small.npz
      kcrf train sample_data/pitch_accent.conll --set features.c3.window=-1..1 --set terms.edge.sigma2=1 -o model.npz
      kcrf train sample_data/pitch_accent.conll --missing NA,-999 --missing-indicator -o gaps.npz
      kcrf train sample_data/pitch_accent.conll --sigma2 3 --calibrate -o calibrated.npz
      kcrf train sample_data/pitch_accent.conll --checkpoint run.ck -o model.npz
      kcrf train sample_data/digits.conll --kernel rbf --memory 1G --dry-run
      kcrf train sample_data/digits.conll --kernel rbf --engine cuda --dry-run
      kcrf featurize sample_data/pitch_accent.conll -o accent.shards/ --shards 8
      kcrf train accent.shards/ --memory 1G -o model.npz
      kcrf train sample_data/digits.conll --kernel rbf --engine dask://127.0.0.1:8786 --dry-run
      kcrf train sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --sigma2 1 -o model.npz
    """
    from kcrf_core.errors import Interrupted
    from kcrf_core.exchange import training_configuration
    from kcrf_core.files import is_folder
    from kcrf_core.model import Model, term_sizes
    from kcrf_core.solvers import CERTIFIED, INTERRUPTED, WorkersThere
    from kcrf_core.training import (
        EVERY,
        MIN_GAIN,
        Checkpoint,
        HoldOut,
        WarmStart,
        fit_calibration,
        open_engine,
        train_shards,
    )
    from kcrf_core.training import train as fit

    from ..io.files import (
        check_writable,
        fold_numbers,
        load_dev,
        memory_line,
        prepare,
        say,
        show_config,
        show_footprint,
        write_out,
    )
    from ..io.interruption import Interruption
    from ..io.log import Both, RunLog, check_log
    from ..io.progress import Talk
    from ..render import figures as render

    began = time.perf_counter()
    engine = options.engine_of(values)
    options.resolve_c2(values)
    if min_gain is not None and not select_terms:
        raise click.UsageError("--min-gain is a limit of --select-terms: give that, too")
    options.check_held_out(group, folds_file, block)
    if calibrate and is_folder(data):
        raise click.UsageError("--calibrate divides data that is held in memory into folds: give text or one dataset")
    inputs = (data, config, basis, dev, folds_file, *(path for _, path in (*vectors, *dev_vectors)))
    options.check_output(output, dry_run, dump_config)
    if output is not None:
        check_writable(output, *inputs)  # it may be --init: a new model takes the place of an old one when it is whole
    check_log(None if dry_run or dump_config else log, output, as_json, init, *inputs)
    if checkpoint is not None:
        check_writable(checkpoint, init, *inputs)
        if os.path.realpath(checkpoint) in [os.path.realpath(path) for path in (output, log) if path is not None]:
            raise click.UsageError(f"{checkpoint} is also another output: give the checkpoint another name")
    elif checkpoint_every is not None:
        raise click.UsageError("--checkpoint-every says how often to write --checkpoint: give that, too")
    if keep is not None and dev is None:
        raise click.UsageError("--keep needs --dev, the data to judge by")
    if dev_vectors and dev is None:
        raise click.UsageError("--dev-vectors stand beside the data of --dev: give that, too")
    if data == dev == "-":
        raise click.UsageError("DATA and --dev cannot both be read from stdin")
    chosen = options.described_by(values)
    if dry_run:
        show_footprint(
            prepare(data, format_, config, chosen, basis, threads, quiet, vectors, group),
            memory,
            threads,
            as_json,
            engine,
        )
        return
    if dump_config:
        show_config(prepare(data, format_, config, chosen, basis, threads, quiet, vectors, group).config)
        return
    with RunLog(log) as run_log:
        earlier = None if init is None else Model.load(init)
        own = None if earlier is None or config is not None else training_configuration(earlier)
        prepared = prepare(data, format_, config, chosen, basis, threads, quiet, vectors, group, own)
        folds = None if folds_file is None else fold_numbers(folds_file, prepared.dataset)
        hold_out = HoldOut(prepared.groups, folds, block)
        start = None
        if earlier is not None and init is not None:
            start = WarmStart(earlier, init, search_prior=values["sigma2"] == "auto")
            start.check_columns(prepared.encoding)
        dev_set = None
        if dev is not None:
            dev_set = load_dev(dev, format_, prepared.encoding, data, threads, quiet, dev_vectors)
        run_log.start(_described(prepared, dev_set, {"data": data, "output": output, "init": init, "dev": dev}))
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, checkpoint_every or EVERY, {"calibrate": calibrate})
        with (
            Talk(quiet, verbose) as talk,
            Interruption(Both(talk, run_log)) as interruption,
            open_engine(
                engine,
                threads=threads,
                memory=memory,
                tell=interruption.note,
                changed=lambda count: interruption.tell(WorkersThere(count)),
            ) as opened,
            opened.workers(threads) as workers,
        ):
            for remark in _remarks(prepared, dev_set):
                interruption.note(remark)
            if not quiet or log is not None:  # working it out goes through the data
                interruption.note(memory_line(prepared, workers))
            if prepared.folder is None:
                begin = partial(fit, prepared.encoding, prepared.dataset, prepared.config)
            else:
                begin = partial(train_shards, prepared.folder, prepared.config, outline=prepared.dataset)
            model, report = begin(
                basis=prepared.basis,
                workers=workers,
                observer=interruption,
                interrupted=interruption.asked,
                certify=certify,
                select_terms=select_terms,
                min_gain=MIN_GAIN if min_gain is None else min_gain,
                start=start,
                dev=dev_set,
                keep=keep or "last",
                prune=prune,
                hold_out=hold_out,
                checkpoint=kept,
            )
            calibrated = None
            if calibrate and report.result.reason != INTERRUPTED:
                with suppress(Interrupted):  # then the model is written as it is
                    model, calibrated = fit_calibration(
                        model,
                        report,
                        prepared.encoding,
                        prepared.dataset,
                        prepared.config,
                        workers,
                        hold_out,
                        interruption.asked,
                        kept,
                    )
            talk.close()
            assert output is not None
            model.save(output)
            if kept is not None and not interruption.asked():
                kept.remove()
        seconds = time.perf_counter() - began
        figures = {
            **report.to_dict(),
            "sequences": prepared.dataset.sequences,
            "positions": prepared.dataset.positions,
            "labels": len(model.labels),
            "terms": term_sizes(model),
            "bytes": os.path.getsize(output),
            "seconds": seconds,
            "peak_memory": render.peak_memory(),
            **({} if calibrated is None else {"calibration": calibrated.to_dict()}),
        }
        run_log.end(figures)
    if as_json:
        write_out(render.as_json({"schema": 1, **figures}))
    if not quiet:
        for line in render.report_lines(report, prepared.config.training.tolerance, seconds, figures["bytes"]):
            say(line)
        if calibrated is not None:
            say("  " + render.calibrated_text(calibrated))
    run_log.check()
    if interruption.asked():
        interruption.leave()
    if strict and report.result.reason != CERTIFIED:
        from kcrf_core.errors import NumericError

        raise NumericError(f"not certified to {prepared.config.training.tolerance:g} (--strict); {output} was written")


def _described(prepared: Prepared, dev: Dataset | None, names: dict[str, str | None]) -> dict[str, Any]:
    """What a log begins with."""
    from kcrf_core._version import __version__

    dataset, training = prepared.dataset, prepared.config.training
    return {
        "version": __version__,
        **names,
        "seed": training.seed,
        "sequences": dataset.sequences,
        "positions": dataset.positions,
        "labels": list(prepared.encoding.labels),
        "dev_sequences": None if dev is None else dev.sequences,
        "dev_positions": None if dev is None else dev.positions,
        "configuration": prepared.config.to_dict(),
    }


def _remarks(prepared: Prepared, dev: Dataset | None) -> list[str]:
    """What to say before work begins."""
    from kcrf_core.encoding import missing_remarks
    from kcrf_core.system import counted

    out = prepared.remarks()
    if dev is not None:
        unknown = int((dev.known_labels < 0).sum())
        out.append(f"dev: {counted(dev.sequences, 'sequence')}, {counted(dev.positions, 'position')}")
        if unknown:
            strange = counted(unknown, "label that DATA does not have counts", "labels that DATA does not have count")
            out[-1] += f"; {strange} as wrong"
        out += [f"dev: {remark}" for remark in missing_remarks(dev.missing)]
    return out
