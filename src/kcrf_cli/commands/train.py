"""`kcrf train`: fit a model to labelled sequences."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from kcrf_core._version import __version__
from kcrf_core.errors import DataError, FileFormatError, Interrupted, NumericError
from kcrf_core.files import is_encoded, is_folder
from kcrf_core.system import AUTO, Number, counted

from .. import options
from ..io import files
from ..render import figures as render

if TYPE_CHECKING:
    from kcrf_core.encoding import Dataset, Encoding


@dataclass(frozen=True, kw_only=True)
class TrainArguments(options.PreparedArguments):
    configuration: options.Configuration = options.group(options.Configuration, *options.MODEL_SECTIONS, "unobserved")
    basis: str | None = options.MODEL.file(
        "Pivots, kernel and encoding from `select-basis`; options that contradict them are refused.",
    )
    held_out: options.HeldOutOptions
    certify: str = options.OPTIMISATION.option(
        "Certificate of the gain that pivots beyond the chosen ones could bring: an estimate, or a bound computed from "
        "all pairs of positions. Default: estimate.",
        type=click.Choice(["estimate", "exact"]),
        default="estimate",
    )
    select_terms: bool = options.MODEL.switch(
        "Keep only the terms of the configuration that improve the fit on held-out sequences by more than chance "
        "would, one term after another.",
    )
    init: str | None = options.OPTIMISATION.file(
        "Start from the weights of this model, of kcrf or any that `kcrf import` reads, as GROBID's model.wapiti. "
        "Weights of features and labels that both models have are taken, by name; new ones start at zero. A model of "
        "another program brings its template unless -c is given, one of kcrf its sigma2 unless --sigma2 is. Default: "
        "start from zero.",
        "MODEL",
    )
    dev: str | None = options.VALIDATION.option(
        "Labelled data to score the model on; it is not trained on. Default: none.",
        "DEV",
        type=options.DATA_FILE,
        common=True,
    )
    dev_vectors: tuple[tuple[str, str], ...]
    prune: float | None = options.MODEL.option(
        "After training, drop weights and pivots as long as no score of a position of DATA changes by more than EPS in "
        "total. Default: keep all.",
        "EPS",
        type=options.OfKind(Number(0)),
    )
    calibrate: bool = options.MODEL.switch(
        "Calibrate probabilities by five-fold cross-validation, if that lowers held-out log-loss by more than a "
        "standard error. Weights do not change; folds respect --group and --folds-file. Default: no calibration.",
    )
    log: str | None = options.written(
        "Write a log of the run as JSON, one line per event; - for stdout. Default: no log.", stdout=True
    )
    checkpoint: str | None = options.written(
        "Save the state of the run to FILE every few minutes. The same command then continues an interrupted run, to "
        "the same certified optimum. FILE is removed when the model is written. Default: none."
    )
    checkpoint_every: float | None = options.option(
        "With --checkpoint: time between two saves, as 90s, 10m or 1h. Default: 5m.",
        "TIME",
        type=options.OfKind(options.duration),
    )
    strict: bool = options.switch("Exit with code 5 if the tolerance was not certified.")
    verbose: bool = options.verbose("settings tried, passes over the data, memory")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        self.engine.choice()
        self.configuration.chosen  # noqa: B018, --set may contradict an option
        whole = self.calibrate and is_folder(self.data)
        options.refuse(
            (self.checkpoint_every is not None and not self.checkpoint, "--checkpoint-every needs --checkpoint"),
            (self.dev_vectors and not self.dev, "--dev-vectors stand beside the data of --dev: give that, too"),
            (self.data == self.dev == "-", "DATA and --dev cannot both be read from stdin"),
            (whole, "--calibrate needs data in memory, not a folder of shards: give text or one dataset"),
        )
        super().__post_init__()

    def check_files(self) -> None:
        """Refuse outputs that cannot be written or are inputs."""
        vectors = [path for _, path in (*self.vectors, *self.dev_vectors)]
        inputs = (self.data, self.configuration.config, self.basis, self.dev, self.held_out.folds_file, *vectors)
        if self.output is not None:
            files.check_writable(self.output, *inputs)  # it may be --init, whose place the new model takes
        if not self.dump_config:
            twice = self.log == "-" and self.json
            options.refuse((twice, "--log - and --json both write to stdout: the last line of the log has the figures"))
            files.check_outputs((self.log, self.checkpoint), self.init, *inputs)
            files.check_outputs((self.output, self.log, self.checkpoint))

    def dev_set(self, encoding: Encoding) -> Dataset:
        """Read the labelled data to score by, encoded like the training data."""
        from kcrf_core.encoding import join_datasets
        from kcrf_core.model import ShardFolder, load_dataset, load_folder

        path, vectors = self.dev or "", self.dev_vectors
        if is_encoded(path):
            if vectors:
                raise click.UsageError(f"{path} is encoded already, and holds its vectors: leave out --dev-vectors")
            stored = load_folder(path) if is_folder(path) else load_dataset(path)
            if not stored.encoding.same_as(encoding):
                hint = f"featurize it with --like {self.data}" if is_encoded(self.data) else "give it as text"
                raise FileFormatError(f"{path}: encoded unlike {self.data}: {hint}")
            dataset = join_datasets(list(stored.datasets())) if isinstance(stored, ShardFolder) else stored.dataset
        else:
            form = self.format or encoding.format, encoding.columns, encoding.layout
            corpus = files.read_data(path, *form, self.engine.threads, self.quiet, vectors)
            for name in encoding.vectors:
                if name not in corpus.vectors:
                    raise click.UsageError(f"{path} needs vectors '{name}', too: give --dev-vectors {name}=FILE")
            dataset = encoding.encode(corpus)
        if dataset.labels is None:
            raise DataError("no labels to score by (--dev)", path)
        if (dataset.labels < 0).all():
            raise DataError("no position has a known label, one of the training data, to score by (--dev)", path)
        return dataset


@options.command(TrainArguments)
def train(run: TrainArguments) -> None:
    """Train a model on the labelled sequences of DATA.

    No option but -o is needed: features follow from the columns (--dump-config shows them), the kernel is linear, or
    rbf over numbers without words, and the prior variance is chosen on held-out sequences. A few other features and
    kernels are compared with these.

    Words and tags are recognised and get features that suit them; --plain uses columns as they are. Training stops when
    the objective is proven to be within --tolerance of its optimum. The first Ctrl-C or SIGTERM ends the final fit and
    writes the best model so far; before the final fit nothing is written.

    DATA may be a folder of shards (see `featurize`) that does not fit into memory. Choices are then made on a sample,
    whose size is printed.

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
      kcrf train sample_data/digits.conll --kernel rbf --size 200 --sigma2 3 --memory 1G -o model.npz
      kcrf featurize sample_data/pitch_accent.conll -o accent.shards/ --shards 8
      kcrf train accent.shards/ --memory 1G -o model.npz
      kcrf train sample_data/pitch_accent.conll --engine dask --threads 2 --sigma2 1 -o model.npz
      kcrf train sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --sigma2 1 -o model.npz
      kcrf train sample_data/pitch_accent.conll --embeddings sample_data/pitch_accent.vec --sigma2 1 -o model.npz
      kcrf train sample_data/sentences.conllu --lexicon name=sample_data/names.txt --sigma2 1 -o model.npz
    """
    from kcrf_core.encoding import UNKNOWN, missing_remarks
    from kcrf_core.exchange import PROGRAMS, ForeignModel, load_start, training_configuration
    from kcrf_core.model import Model
    from kcrf_core.objective.solvers import CERTIFIED, INTERRUPTED, SHARE
    from kcrf_core.training import (
        EVERY,
        Checkpoint,
        HoldOut,
        WarmStart,
        fit_calibration,
        open_engine,
        train as fit,
        train_shards,
    )

    from ..io.events import Interruption, ProgressMessages, RunLog

    began = time.perf_counter()
    run.check_files()
    threads = run.engine.threads
    compared = None if run.init or run.select_terms else run.held_out
    prepare = partial(files.prepare, run, run.basis, run.held_out.group, held_out=compared)
    if files.configuration_printed(run, prepare):
        return
    with RunLog(run.log) as run_log:
        earlier = start = dev_set = own = kept = calibrated = None
        if run.init is not None:
            earlier = load_start(run.init)
            if run.configuration.config is None:
                own = training_configuration(earlier)
        foreign = earlier if isinstance(earlier, ForeignModel) else None
        prepared = prepare(otherwise=own, wapiti=foreign is not None and foreign.program == PROGRAMS["wapiti"])
        encoding, dataset, config = prepared.encoding, prepared.dataset, prepared.config
        folds = files.fold_numbers(run.held_out.folds_file, dataset)
        if foreign is not None:
            earlier = foreign.to_model(None if foreign.templates is None else encoding.columns)
        if isinstance(earlier, Model) and run.init is not None:
            start = WarmStart(earlier, run.init, search_prior=run.configuration.settings.get("sigma2") == AUTO)
            start.check_columns(encoding)
        if run.dev is not None:
            dev_set = run.dev_set(encoding)
        about = {
            "version": __version__,
            **{name: getattr(run, name) for name in ("data", "output", "init", "dev")},
            "seed": config.training.seed,
            "sequences": dataset.sequences,
            "positions": dataset.positions,
            "labels": list(encoding.labels),
            "dev_sequences": None if dev_set is None else dev_set.sequences,
            "dev_positions": None if dev_set is None else dev_set.positions,
            "configuration": config.to_dict(),
        }
        run_log.write("start", about)
        if run.checkpoint is not None:
            kept = Checkpoint(run.checkpoint, run.checkpoint_every or EVERY, {"calibrate": run.calibrate})
        with (
            closing(ProgressMessages(run.quiet, run.verbose)) as messages,
            Interruption(messages, run_log) as interruption,
            open_engine(
                run.engine.choice(), threads=threads, memory=run.engine.memory, tell=interruption.report
            ) as workers,
        ):
            hold_out = HoldOut(prepared.groups, folds, run.held_out.block)
            prepared.describe(interruption)
            if dev_set is not None:
                about_dev = f"{counted(dev_set.sequences, 'sequence')}, {counted(dev_set.positions, 'position')}"
                interruption.note(f"dev: {about_dev}")
                unknown = int((dev_set.known_labels == UNKNOWN).sum())
                wrong = [f"{counted(unknown, 'label')} not in DATA, counted wrong"] if unknown else []
                for remark in (*wrong, *missing_remarks(dev_set.missing)):
                    interruption.report(f"dev: {remark}")
            if prepared.folder is None:
                begin = partial(fit, encoding, dataset, config)
            else:
                begin = partial(train_shards, prepared.folder, config, outline=dataset)
            model, report = begin(
                basis=prepared.basis,
                workers=workers,
                observer=interruption,
                interrupted=interruption.asked,
                certify=run.certify,
                select_terms=run.select_terms,
                start=start,
                dev=dev_set,
                prune=run.prune,
                hold_out=hold_out,
                checkpoint=kept,
            )
            if run.calibrate and report.result.reason != INTERRUPTED:
                with suppress(Interrupted):  # then the model is written as it is
                    model, calibrated = fit_calibration(
                        model, report, encoding, dataset, config, workers, hold_out, interruption.asked, kept
                    )
            messages.close()
            assert run.output is not None
            model.save(run.output)
            if kept is not None and not interruption.asked():
                kept.remove()
            figures = render.training_figures(report, model, dataset, run.output, began, calibrated)
            lines = render.report_lines(report, calibrated, config, figures, run.output)
        run_log.write("end", figures)
    if run.json:
        files.write_json(figures)
    for line in lines:
        messages.tell(line)
    if run_log.error is not None:
        raise run_log.error
    if interruption.asked():
        interruption.leave()
    if run.strict and report.result.reason != CERTIFIED:
        tolerance = config.training.tolerance or SHARE
        raise NumericError(f"not certified to {tolerance:g} (--strict); {run.output} was written")
