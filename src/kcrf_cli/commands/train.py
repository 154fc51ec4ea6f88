"""`kcrf train`: fit a model to labelled sequences."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kcrf_core.system import AUTO, Number

from .. import options

if TYPE_CHECKING:
    from kcrf_core.encoding import Dataset
    from kcrf_core.training import Prepared


@dataclass(frozen=True)
class TrainArguments:
    """Arguments of `train`."""

    data: str = options.data()
    output: str | None = options.output_unless_dry()
    configuration: options.Configuration = options.configuration(*options.MODEL_SECTIONS, "unobserved")
    format: str | None = options.format()
    basis: str | None = options.file(
        "Pivots, kernel and encoding from `select-basis`; options that contradict them are refused."
    )
    vectors: tuple[tuple[str, str], ...] = options.vectors()
    held_out: options.HeldOutOptions = options.group(options.HeldOutOptions)
    certify: str = options.choice(
        "Certificate of what could still be gained outside the pivots: an estimate, or a bound that takes all pairs of "
        "positions. Default: estimate.",
        "estimate",
        "exact",
        default="estimate",
    )
    select_terms: bool = options.switch(
        "Keep only those terms of the configuration that do better than chance, fit by fit on held-out sequences."
    )
    min_gain: float | None = options.option(
        "With --select-terms: leave out terms that are proven to gain less in P, in nats. Default: 1.",
        "G",
        type=click.FloatRange(min=0),
    )
    init: str | None = options.file(
        "Start from this model, by the names of its labels and features, and with its sigma2 unless --sigma2 is given. "
        "Default: from zero.",
        "MODEL",
    )
    dev: str | None = options.option(
        "Labelled data to score while training goes on; nothing is learnt from it. Default: none.",
        "DEV",
        type=options.DATA,
    )
    dev_vectors: tuple[tuple[str, str], ...] = options.dev_vectors()
    keep: str | None = options.choice(
        "Parameters to write: the last ones, which are certified, or those that label DEV best. Default: last.",
        "last",
        "best",
    )
    prune: float | None = options.option(
        "Drop weights and pivots after training that change no score of any position of DATA by more than EPS, all of "
        "them together. Default: keep all.",
        "EPS",
        type=options.OfKind(Number(0)),
    )
    calibrate: bool = options.switch(
        "Calibrate probabilities by scores of five folds that models of the others give, where that lowers their "
        "log-loss by more than a standard error; folds keep to --group and --folds-file, and weights stay as they are. "
        "Default: probabilities as they come."
    )
    log: str | None = options.written(
        "Write what happens as JSON, one line per event, - for stdout. Default: no log.", stdout=True
    )
    checkpoint: str | None = options.written(
        "Keep the run in FILE every few minutes; the same command goes on from there, with the bytes of a run that was "
        "not stopped. FILE is removed once the model is written. Default: none."
    )
    checkpoint_every: float | None = options.option(
        "With --checkpoint: how often to write it, as 90s, 10m or 1h. Default: 5m.",
        "TIME",
        type=options.OfKind(options.duration),
    )
    strict: bool = options.switch("Exit with 5 if the tolerance was not certified.")
    engine: options.EngineOptions = options.group(options.EngineOptions)
    dry_run: bool = options.dry_run()
    dump_config: bool = options.dump_config()
    json: bool = options.json()
    quiet: bool = options.quiet()
    verbose: bool = options.verbose("pass over the data")

    def check(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        from kcrf_core.files import is_folder

        from ..io.files import check_writable
        from ..io.log import check_log

        self.held_out.check()
        for name, needed, message in (
            ("min_gain", self.select_terms, "--min-gain is a limit of --select-terms: give that, too"),
            (
                "checkpoint_every",
                self.checkpoint,
                "--checkpoint-every says how often to write --checkpoint: give that, too",
            ),
            ("keep", self.dev, "--keep needs --dev, the data to judge by"),
            ("dev_vectors", self.dev, "--dev-vectors stand beside the data of --dev: give that, too"),
        ):
            if getattr(self, name) not in (None, ()) and not needed:
                raise click.UsageError(message)
        if self.data == self.dev == "-":
            raise click.UsageError("DATA and --dev cannot both be read from stdin")
        if self.calibrate and is_folder(self.data):
            raise click.UsageError(
                "--calibrate divides data that is held in memory into folds: give text or one dataset"
            )
        vectors = [path for _, path in (*self.vectors, *self.dev_vectors)]
        inputs = (self.data, self.configuration.config, self.basis, self.dev, self.held_out.folds_file, *vectors)
        options.check_output(self.output, self.dry_run, self.dump_config)
        if self.output is not None:
            check_writable(self.output, *inputs)  # it may be --init, whose place the new model takes when it is whole
        log = None if self.dry_run or self.dump_config else self.log
        check_log(log, self.output, self.json, self.init, *inputs)
        if self.checkpoint is not None:
            check_writable(self.checkpoint, self.init, *inputs)
            others = [os.path.realpath(path) for path in (self.output, self.log) if path is not None]
            if os.path.realpath(self.checkpoint) in others:
                raise click.UsageError(f"{self.checkpoint} is also another output: give the checkpoint another name")

    def prepared(self, otherwise: dict[str, Any] | None = None) -> Prepared:
        """Read and encode the data; `otherwise` is the raw configuration without a file."""
        from ..io.files import prepare

        return prepare(
            self.data,
            self.format,
            self.configuration.config,
            self.configuration.chosen,
            self.basis,
            self.engine.threads,
            self.quiet,
            self.vectors,
            self.held_out.group,
            otherwise,
        )


@options.command(TrainArguments)
def train(run: TrainArguments) -> None:
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
    from kcrf_core.model import Model, term_sizes
    from kcrf_core.objective.solvers import CERTIFIED, INTERRUPTED, WorkersThere
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

    from ..io.files import fold_numbers, load_dev, memory_line, say, show_config, show_footprint, write_out
    from ..io.interruption import Interruption
    from ..io.log import Both, RunLog
    from ..io.progress import Talk
    from ..render import figures as render

    began = time.perf_counter()
    engine, threads, memory = run.engine.choice(), run.engine.threads, run.engine.memory
    run.check()
    if run.dry_run:
        show_footprint(run.prepared(), memory, threads, run.json, engine)
        return
    if run.dump_config:
        show_config(run.prepared().config)
        return
    with RunLog(run.log) as run_log:
        earlier = None if run.init is None else Model.load(run.init)
        own = None
        if earlier is not None and run.configuration.config is None:
            own = training_configuration(earlier)
        prepared = run.prepared(own)
        numbers = run.held_out.folds_file
        folds = None if numbers is None else fold_numbers(numbers, prepared.dataset)
        hold_out = HoldOut(prepared.groups, folds, run.held_out.block)
        start = None
        if earlier is not None and run.init is not None:
            searched = run.configuration.settings.get("sigma2") == AUTO
            start = WarmStart(earlier, run.init, search_prior=searched)
            start.check_columns(prepared.encoding)
        dev_set = None
        if run.dev is not None:
            encoding = prepared.encoding
            dev_set = load_dev(run.dev, run.format, encoding, run.data, threads, run.quiet, run.dev_vectors)
        names = {name: getattr(run, name) for name in ("data", "output", "init", "dev")}
        run_log.start(_described(prepared, dev_set, names))
        kept = None
        if run.checkpoint is not None:
            kept = Checkpoint(run.checkpoint, run.checkpoint_every or EVERY, {"calibrate": run.calibrate})
        with (
            Talk(run.quiet, run.verbose) as talk,
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
            if not run.quiet or run.log is not None:  # working it out goes through the data
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
                certify=run.certify,
                select_terms=run.select_terms,
                min_gain=MIN_GAIN if run.min_gain is None else run.min_gain,
                start=start,
                dev=dev_set,
                keep=run.keep or "last",
                prune=run.prune,
                hold_out=hold_out,
                checkpoint=kept,
            )
            calibrated = None
            if run.calibrate and report.result.reason != INTERRUPTED:
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
            assert run.output is not None
            model.save(run.output)
            if kept is not None and not interruption.asked():
                kept.remove()
        seconds = time.perf_counter() - began
        figures = {
            **report.to_dict(),
            "sequences": prepared.dataset.sequences,
            "positions": prepared.dataset.positions,
            "labels": len(model.labels),
            "terms": term_sizes(model),
            "bytes": os.path.getsize(run.output),
            "seconds": seconds,
            "peak_memory": render.peak_memory(),
            **({} if calibrated is None else {"calibration": calibrated.to_dict()}),
        }
        run_log.end(figures)
    if run.json:
        write_out(render.as_json({"schema": 1, **figures}))
    if not run.quiet:
        for line in render.report_lines(report, prepared.config.training.tolerance, seconds, figures["bytes"]):
            say(line)
        if calibrated is not None:
            say("  " + render.calibrated_text(calibrated))
    run_log.check()
    if interruption.asked():
        interruption.leave()
    if run.strict and report.result.reason != CERTIFIED:
        from kcrf_core.errors import NumericError

        raise NumericError(
            f"not certified to {prepared.config.training.tolerance:g} (--strict); {run.output} was written"
        )


def _described(prepared: Prepared, dev: Dataset | None, names: dict[str, str | None]) -> dict[str, Any]:
    """Return the first entry of a log."""
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
    """List the messages before work begins."""
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
