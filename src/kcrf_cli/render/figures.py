"""Figures as text: tables for people, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kcrf_core.system import LEAST_TOLERANCE, counted, size_text

from .visible import shown, shown_json

if TYPE_CHECKING:
    from kcrf_core.config import Config
    from kcrf_core.corpora import Corpus
    from kcrf_core.encoding import Dataset
    from kcrf_core.model import Model
    from kcrf_core.objective.solvers import GrowthRound, Note, Structure
    from kcrf_core.training import CalibrationReport, DevReport, PruneReport, Report


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = ()) -> str:
    """Return aligned columns: the first, and those listed in `words`, to the left, the others to the right."""
    header, *rows = ([shown(cell) for cell in row] for row in [header, *rows])
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        placed = (
            cell.ljust(width) if c == 0 or c in words else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(placed).rstrip()

    return "\n".join([line(header), *map(line, rows)])


def as_json(values: Any, indent: int | None = 2) -> str:
    """Return JSON as text; without an indent in one line."""
    return shown_json(json.dumps(values, ensure_ascii=False, indent=indent))


def percent(fraction: float) -> str:
    """Return a fraction in per cent, with two decimals."""
    return f"{100 * fraction:.2f}"


UNKNOWN_GAP = 1e6  # such a relative gap, and a larger one, is no news
DECODERS = {"viterbi": "Viterbi", "posterior": "posterior decoding"}


def decoder_text(decode: str, span_bonus: float = 0.0) -> str:
    """Return a decoder in words."""
    return DECODERS[decode] + (f" with a bonus of {span_bonus:g} for each span" if span_bonus else "")


def guarantee_text(one: Mapping[str, Any]) -> str:
    """Return what a threshold guarantees, and what it does to the data that it was found with, where that is known."""
    of, share = f"{one['of']}s", f"at most {100 * one['level']:g} % of the"
    out = {
        "risk": f"{share} {of} are wrong and not marked, in expectation",
        "among-unmarked": f"{share} {of} that are not marked are wrong, with probability 0.9",
        "sets": f"{share} labels lie outside their sets, in expectation",
    }[one["kind"]] + f" (threshold {one['threshold']:.6g}, by {counted(one['sequences'], 'sequence')})"
    if "mean_size" in one:
        out += f"\nhere: sets of {one['mean_size']:.2f} labels on average; {percent(one['risk'])} % lie outside"
    if "marked" in one:
        marked = f"{one['marked']:,} of {one['items']:,} {of} ({percent(one['marked'] / one['items'])} %)"
        every, left, among = (percent(one[name]) for name in ("wrong", "risk", "among_unmarked"))
        out += f"\nhere: {marked} would be marked; {every} % are wrong, {left} % unmarked, {among} % of the unmarked"
    return out


def training_figures(
    report: Report, model: Model, data: Corpus | Dataset, path: str, began: float,
    calibrated: CalibrationReport | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the figures of `--json` of a training that began then and wrote a model."""
    from kcrf_core.model import term_sizes

    return {
        **report.to_dict(),
        "sequences": data.sequences,
        "positions": data.positions,
        "labels": len(model.labels),
        "terms": term_sizes(model),
        "bytes": os.path.getsize(path),
        "seconds": time.perf_counter() - began,
        "peak_memory": peak_memory(),
        **({} if calibrated is None else {"calibration": calibrated.to_dict()}),
    }


def report_lines(
    report: Report, calibrated: CalibrationReport | None, config: Config, figures: Mapping[str, Any], output: str
) -> list[Note]:
    """Return the result of training as lines for stderr; `figures` are those of `--json`, `output` the model's file."""
    from kcrf_core.objective.solvers import NATS_PER_1000, SHARE, Note

    result, tolerance = report.result, config.training.tolerance or SHARE
    work = [counted(result.passes, "pass", "passes")]
    if result.products:
        work.append(counted(result.products, "Hessian product"))
    work.append(f"{figures['seconds']:.1f} s")
    if figures["peak_memory"] is not None:
        work.append(f"peak memory {figures['peak_memory'] / 2**20:.0f} MiB")
    reasons = {
        "certified": f"certified: within {gap_text(result.gap)} of the optimum (tolerance {tolerance:g})",
        "passes": f"stopped by --max-passes before the tolerance {tolerance:g} was certified",
        "interrupted": "interrupted; the best model so far is kept",
        "precision": "stopped: rounding hides any further progress",
        "stationary": f"stationary point, no certificate: labels are not observed, or sets (tolerance {tolerance:g})",
        "pruned": f"pruned: what is left is not certified to be within {tolerance:g} of the optimum",
    }
    if result.gap > tolerance:  # so many nats are few for so many positions
        nats = f"{1000 * (result.value - result.lower) / max(figures['positions'], 1):.2g} nats per 1,000 positions"
        allowed = f"(tolerance {tolerance:g}, or {NATS_PER_1000:g} nats per 1,000 positions)"
        reasons["certified"] = f"certified: within {gap_text(result.gap)} of the optimum, {nats} {allowed}"
    lines = [model_text(report, config, figures["terms"]), choice_text(report), *decoder_lines(report)]
    if report.growth is not None:
        why = {
            "tolerance": f"more would gain no more than {report.growth.tolerance:g} of P",
            "size": "--size is reached",
            "residual": "nothing is left to add",
        }.get(report.growth.stop, "more might be wanted")
        lines.append(f"{_pivots_text(report.growth.rounds[-1])}: {why}")
    if report.pruned is not None:
        lines.append(pruned_text(report.pruned, figures["bytes"]))
    if calibrated is not None:
        lines.append(calibration_text(calibrated))
    if report.dev is not None:
        lines.append(dev_text(report.dev))
    if report.outside is not None and report.outside > 0:
        kind = "at most" if report.certify == "exact" else "estimate"
        gain = f"{report.outside:.4g} of P {result.value:.6g}"
        reasons[result.reason] += f"; gain still possible outside the pivots ({kind}): {gain}"
    lines.append(f"{reasons[result.reason]}; {', '.join(work)}")
    value = f"P {result.value:.6f}; norm of its gradient {result.gradient_norm:.2g}"
    if result.gap < UNKNOWN_GAP:
        value = certificate_text(result.value, result.lower, result.gap)
    written = written_text(output, "kcrf tag -m {} FILE, or kcrf evaluate -m {} TEST")
    return [
        *(Note(line, detail=False) for line in lines),
        Note(value, detail=result.reason == "certified"),
        Note(written, detail=False),
    ]


def written_text(path: str, command: str) -> str:
    """Return a line about a file that was written and a command to try next, in which `{}` is its name."""
    name = shlex.quote(path)
    return f"wrote {name}; next: {command.replace('{}', name)}"


def model_text(report: Report, config: Config, sizes: Sequence[Mapping[str, Any]]) -> str:
    """Return the terms of a model with their kernels and sizes, in a line."""
    kernels, sized = {term.name: term.kernel.title for term in config.mapped_terms}, {}
    for size in sizes:
        many = counted(size["pivots"], "pivot") if "pivots" in size else counted(size["dimensions"], "feature")
        sized[size["name"]] = f" ({kernels[size['name']]} kernel, {many})"
    terms = ", ".join(name + sized.get(name, "") for name in report.sigma2)
    parameters = counted(report.parameters, "parameter")
    if report.nonzero is not None:
        parameters = f"{report.nonzero:,} of {parameters} not zero"
    return f"model: {terms}; {parameters} in {counted(report.score_columns, 'score column')}"


def choice_text(report: Report) -> str:
    """Return prior variances and decoder, with the figure of held-out data that they were chosen by."""
    from kcrf_core.objective.solvers import variances_text

    chosen, held_out, why = report.decoder, report.held_out, ""
    sigma2 = variances_text(report.sigma2)
    if report.nonzero is not None:
        sigma2 += f"; c1 {report.c1:g}"
    if held_out is not None:
        value = held_out.yardstick.value(held_out.counts[chosen.counted_as])
        figure = f"{held_out.yardstick.title} {held_out.yardstick.number(value)}"
        if report.metric == "log-loss":
            figure = f"log-loss {-held_out.log_probability:.4f}, {figure}"
        why = f"; {figure} on {held_out.splits.describe()}"
    elif chosen.data is not None and chosen.yardstick is not None:
        why = f", by {chosen.yardstick.title} of {chosen.data} data"
    return f"sigma2: {sigma2}; {decoder_text(chosen.decode, chosen.span_bonus)}{why}"


def decoder_lines(report: Report) -> list[str]:
    """Return whole sequences labelled right by both decoders, where they were compared."""
    chosen = report.decoder
    if chosen.yardstick is None or chosen.yardstick.name == "f1" or chosen.whole is None:
        return []
    both = " and ".join(f"{percent(chosen.whole[key])} % by {name}" for key, name in DECODERS.items())
    return [f"whole {chosen.data} sequences right {both}"]


def calibration_text(found: CalibrationReport) -> str:
    """Return the gain of a calibration, or the reason why it was skipped."""
    before, after, error = found.log_loss_before, found.log_loss, found.standard_error
    change = f"held-out log-loss from {before:.4f} to {after:.4f} (+- {error:.4f})"
    if found.kept:
        return f"calibrated: {change}; scores times {found.sharpness:.3g}"
    if after >= before:
        return f"calibration skipped: it would raise {change}"
    return f"calibration skipped: it would lower {change}, which is within the error"


def pruned_text(pruned: PruneReport, size: int) -> str:
    """Return the weights that pruning left of a model that has so many bytes now."""
    left = f"{pruned.weights_left:,} of {counted(pruned.weights, 'weight')} left"
    sizes = f"{size_text(size)} of {size_text(size + pruned.bytes_saved)}"
    return f"pruned by {pruned.prune:g}: {left}, {sizes}"


def structure_text(structure: Structure) -> str:
    """Return a table of all terms of the configuration, with the evidence for each decision."""
    header = ("term", "bound", "null", "ratio", "p-value", "gain in P", "held-out gain", "decision")
    rows = []
    for found in structure.judgements:
        held_out = "-" if found.held_out is None else f"{found.held_out:.1f} +- {found.held_out_error:.1f}"
        figures = (found.bound, found.null, found.ratio, found.p_value, found.gain)
        forms = (".1f", ".1f", ".2f", ".2g", ".1f")
        cells = ["-" if value is None else format(value, form) for value, form in zip(figures, forms, strict=True)]
        rows.append([found.term, *cells, held_out, found.decision])
    return table(header, rows)


def growth_text(state: GrowthRound) -> str:
    """Return the figures of one fit on a growing basis."""
    kind, gain = ("estimate", state.estimate) if state.bound is None else ("at most", state.bound)
    part = f", {gain / state.objective:.2g} of P" if state.objective > 0 else ""
    return f"{_pivots_text(state)}: P {state.objective:.6g}, gain outside them ({kind}) {gain:.4g}{part}"


def _pivots_text(state: GrowthRound) -> str:
    return ", ".join(f"{name} {counted(count, 'pivot')}" for name, count in state.pivots.items())


def dev_text(dev: DevReport) -> str:
    """Return held-out figures of the model written."""
    figures = [f"accuracy {percent(dev.accuracy)} %", f"log p(label) {dev.log_probability:.4f}"]
    figures += [
        f"{name} {percent(value)}"
        for name, value in (("span F1", dev.f1), ("macro F1", dev.macro_f1))
        if value is not None
    ]
    return f"dev: {', '.join(figures)} by {DECODERS[dev.decode]}"


def certificate_text(value: float, lower: float, gap: float) -> str:
    """Return P with its lower bound, and the gap that they prove."""
    nats = f"{value - lower:.2g} nats"
    return f"P {value:.6f}, at least {max(lower, 0):.6f}; certified relative gap {gap_text(gap)}, {nats}"


def gap_text(gap: float) -> str:
    """Return a relative gap, at least as large as rounding."""
    return f"{max(gap, LEAST_TOLERANCE):.2g}" if gap < UNKNOWN_GAP else "unknown"


def peak_memory() -> int | None:
    """Return the largest number of bytes held so far, None if the system does not report it."""
    with (
        contextlib.suppress(OSError, IndexError, ValueError, StopIteration),
        open("/proc/self/status", encoding="ascii") as status,
    ):
        # getrusage may report the peak of the process that started this one.
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
