"""`kcrf train`: fit a model to labelled sequences."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import click

from . import options


@click.command(short_help="Train a model.")
@options.data
@options.output
@options.config
@options.format
@options.kernel
@click.option(
    "--basis",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Pivots, kernel and encoding from `select-basis`; options that contradict them are refused.",
)
@options.encoding
@options.chain
@options.training
@click.option(
    "--certify",
    type=click.Choice(["estimate", "exact"]),
    default="estimate",
    help="What could still be gained outside the pivots: an estimate, or a bound that takes all pairs of positions. "
    "Default: estimate.",
)
@click.option("--strict", is_flag=True, help="Exit with 5 if the tolerance was not certified.")
@options.threads
@options.json
@options.quiet
def train(
    data: str,
    output: str,
    config: str | None,
    format_: str | None,
    basis: str | None,
    certify: str,
    strict: bool,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Train a model on the labelled sequences of DATA.

    Nothing needs to be set: numeric columns are real features, others categorical ones in a window of five, the
    kernel is linear, and the prior variance is chosen on held-out sequences. Training stops when the objective is
    proven to be within --tolerance of its optimum. The first Ctrl-C ends it early with the best model so far.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll -o model.npz
      kcrf train sample_data/pitch_accent.conll --kernel poly --degree 2 --size 300 -o model.npz
    """
    from kcrf_core.parallel import Workers
    from kcrf_core.solvers import CERTIFIED, INTERRUPTED
    from kcrf_core.training import train as fit

    from . import render
    from .files import check_writable, prepare, say, write_out
    from .progress import Talk

    began = time.perf_counter()
    options.resolve_c2(values)
    check_writable(output, data, config, basis)
    chosen = options.given(
        values, options.KERNEL_OPTIONS, options.ENCODING_OPTIONS, options.CHAIN_OPTIONS, options.TRAINING_OPTIONS
    )
    prepared = prepare(data, format_, config, chosen, basis)
    for remark in [] if quiet else prepared.encoding.remarks(prepared.dataset):
        say(remark)
    with Workers(threads) as workers, Talk(quiet) as talk, _stop_on_interrupt(talk.note) as interrupted:
        model, report = fit(
            prepared.encoding,
            prepared.dataset,
            prepared.config,
            basis=prepared.basis,
            workers=workers,
            observer=talk,
            interrupted=interrupted,
            certify=certify,
        )
        talk.close()
        model.save(output)
    seconds = time.perf_counter() - began
    if as_json:
        figures = {"schema": 1, **report.to_dict(), "seconds": seconds, "peak_memory": render.peak_memory()}
        write_out(render.as_json(figures))
    if not quiet:
        for line in render.report_lines(report, prepared.config.training.tolerance, seconds):
            say(line)
    if report.result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    if strict and report.result.reason != CERTIFIED:
        from kcrf_core.errors import NumericError

        raise NumericError(f"not certified to {prepared.config.training.tolerance:g} (--strict); {output} was written")


@contextlib.contextmanager
def _stop_on_interrupt(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C only asks for an end, which is told when it is heard; the second is the ordinary one."""
    asked = told = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted() -> bool:
        nonlocal told
        if asked and not told:
            told = True
            say("stopping here and writing the model; Ctrl-C again to give up")
        return asked

    try:
        before = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not in the main thread: nobody can interrupt
        yield lambda: False
        return
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
