"""`kcrf tune`: search for the configuration that does best on held-out data."""

from __future__ import annotations

import shlex
import time
from contextlib import closing
from dataclasses import astuple, dataclass, replace

from kcrf_core._version import __version__
from kcrf_core.files import is_encoded
from kcrf_core.kernels import Shape

from .. import options
from ..io import files


@dataclass(frozen=True, kw_only=True)
class TuneArguments:
    data: str
    output: str = options.output("Configuration to write, as YAML.")
    model: str | None = options.option(
        "Model to write as well, trained on all of DATA with the chosen configuration. Default: none.",
        "MODEL",
        "-m",
        "--model",
        type=options.FileToWrite(dir_okay=False),
        common=True,
    )
    configuration: options.Configuration = options.group(
        options.Configuration, "layout", "encoding", "unobserved", "seed", "near_copies"
    )
    format: str | None
    effort: str | None = options.OPTIMISATION.option(
        "Estimated processor time of search and training: 20 seconds, 20 minutes or 4 hours, half of it on two cores; "
        "the result is reproducible. Default: normal.",
        type=options.NamedChoice("selection:EFFORTS"),
        common=True,
    )
    budget: float | None = options.OPTIMISATION.option(
        "Time of the search and of training the chosen configuration, as 90s, 10m or 2h, instead of --effort. The "
        "result depends on the speed of the machine.",
        "TIME",
        type=options.OfKind(options.duration),
        common=True,
    )
    shape: tuple[int, int] | None = options.DATA.option(
        "The columns of numbers are pixels of images with R rows and C columns, as 16x8. Default: not images.",
        "RxC",
        type=options.OfKind(Shape()),
    )
    metric: str | None
    dev: str | None = options.VALIDATION.option(
        "Labelled data to compare candidates on; it is not trained on. Default: parts of DATA are held out.",
        "DEV",
        type=options.DATA_FILE,
        common=True,
    )
    dev_vectors: tuple[tuple[str, str], ...]
    held_out: options.HeldOutOptions
    vectors: tuple[tuple[str, str], ...]
    journal: str | None = options.written(
        "File that keeps finished trials, so that the same command continues an interrupted search. Default: the "
        "output file with .journal appended; it is removed when the output is written."
    )
    engine: options.EngineOptions
    json: bool
    quiet: bool
    verbose: bool = options.verbose("every judgement")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        held_out = astuple(self.held_out) != (None, None, None)
        swapped = self.output.endswith(".npz") or (self.model or "").endswith((".yaml", ".yml"))
        options.refuse(
            (swapped, "-o is the configuration to write and -m the model, as in -o tuned.yaml -m tuned.npz"),
            (self.effort and self.budget, "--effort counts work and --budget counts time: give one of them"),
            (self.dev_vectors and not self.dev, "--dev-vectors stand beside the data of --dev: give that, too"),
            (self.dev and held_out, "--dev is the held-out data: leave out --group, --folds-file and --block"),
        )
        options.refuse((self.data == self.dev == "-", "DATA and --dev cannot both be read from stdin"))
        inputs = [path for _, path in (*self.vectors, *self.dev_vectors)]
        inputs += filter(None, (self.data, self.configuration.config, self.dev, self.held_out.folds_file))
        files.check_outputs((self.output, self.model, self.journal or f"{self.output}.journal"), *inputs)
        for path in filter(None, (self.data, self.dev)):
            seen = "with a vocabulary and scaling that have seen what is held out, and features that cannot be chosen"
            options.refuse((is_encoded(path), f"{path} is encoded already, {seen}: give text, or a part of it"))


@options.command(TuneArguments)
def tune(run: TuneArguments) -> None:
    """Find a configuration for the labelled sequences of DATA.

    Candidates differ in features, windows, kernels, numbers of pivots, transitions, decoders and prior variances. One
    that is clearly better than the default is written as YAML for `kcrf train -c`, else the default; -m trains it, too.

    Candidates are scored on held-out sequences, first on small subsets of the data; the better ones go on to larger
    subsets. The YAML file has a leaderboard in comments. A configuration or template with features is the first
    candidate besides the default, and is varied in kernels, windows, transitions and prior variances. Ctrl-C ends the
    search with the best candidate so far; the same command continues a search that ended in another way.

    \b
    Example:
      kcrf tune sample_data/pitch_accent.conll --budget 5s -o config.yaml
      kcrf train sample_data/pitch_accent.conll -c config.yaml -o model.npz
      kcrf tune sample_data/pitch_accent.conll -c sample_data/accent.yaml --budget 5s -o config.yaml
      kcrf tune sample_data/addresses.conll --effort small -o config.yaml -m model.npz
      kcrf tune sample_data/digits.conll --shape 8x8 --budget 5s -o digits.yaml
    """
    from kcrf_core.config import configuration_text, parse_config, with_options
    from kcrf_core.encoding import column_names
    from kcrf_core.selection import Journal, train_chosen, tune as search
    from kcrf_core.training import HoldOut, groups_of, open_engine

    from ..io.events import Interruption, ProgressMessages, StopRequest
    from ..io.search_messages import SearchMessages
    from ..render import figures, tuning_text

    engine, threads, tell = run.engine.choice(), run.engine.threads, files.unless(run.quiet)
    source, group = run.configuration.source, run.held_out.group
    raw = with_options(files.load_config(run.configuration), run.configuration.chosen)
    parsed = parse_config(raw, source)  # its mistakes come before any reading
    columns, layout, how = parsed.columns, parsed.layout, (threads, run.quiet)
    corpus, judges = files.read_data(run.data, run.format, columns, layout, *how, run.vectors), None
    if run.dev is not None:
        layout = replace(layout, span_labels=(corpus.layout or layout).span_labels)  # as --dev of train
        judges = files.read_data(run.dev, run.format or corpus.format, columns, layout, *how, run.dev_vectors)
    groups = None if group is None else groups_of(corpus, group, column_names(parsed, corpus))
    hold_out = HoldOut(groups, files.fold_numbers(run.held_out.folds_file, corpus), run.held_out.block)
    journal = Journal(run.journal or f"{run.output}.journal", "tune")
    if journal.begun:
        tell(f"{len(journal):,} judgements in {journal.path}: those of this data and these settings are not done again")
    with (
        files.kept_journal(
            journal, run.journal is None, lambda: f"{len(journal):,} judgements" if journal.begun else None, run.quiet
        ),
        open_engine(engine, threads=threads, memory=run.engine.memory, tell=tell) as workers,
    ):
        with (
            StopRequest("ending the search here and writing the best so far; Ctrl-C again to give up") as stop,
            closing(SearchMessages(run.quiet, run.verbose, run.budget)) as board,
        ):
            found = search(
                corpus,
                raw,
                source,
                shape=run.shape,
                metric=run.metric,
                effort=run.effort or "normal",
                budget=run.budget,
                hold_out=hold_out,
                left_out=[] if group is None else [group],
                dev=judges,
                workers=workers,
                journal=journal,
                listener=board,
                stopped=stop.asked,
            )
        text = configuration_text(found.raw, tuning_text.comments(found, __version__))
        files.write_out(text, run.output, end="")
        for line in tuning_text.summary(found):
            tell(line)
        results = tuning_text.to_dict(found)
        if run.model is None or found.interrupted:
            tell(figures.written_text(run.output, f"kcrf train {shlex.quote(run.data)} -c {{}} -o model.npz"))
        else:
            began = time.perf_counter()
            with closing(ProgressMessages(run.quiet, run.verbose)) as messages, Interruption(messages) as interruption:
                model, report = train_chosen(
                    found, corpus, run.output, workers=workers, observer=interruption, interrupted=interruption.asked,
                    hold_out=hold_out,
                )  # fmt: skip
            model.save(run.model)
            results["training"] = figures.training_figures(report, model, corpus, run.model, began)
            config = parse_config(found.raw, run.output)
            for note in figures.report_lines(report, None, config, results["training"], run.model):
                messages.tell(note)
    if run.json:
        files.write_json(results)
    if found.interrupted or (run.model is not None and interruption.asked()):
        raise KeyboardInterrupt
