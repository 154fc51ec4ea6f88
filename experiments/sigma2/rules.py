"""Compare rules for the choice of sigma2 by accuracy on tables of `grid.py`: rules.py FILES.

A table of Markdown says what each rule loses in test accuracy, and in whole test sequences, against the best step of
the grid: means over the searches of a set, then over sets, and the worst set.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from kcrf_core.scoring import Yardstick, choose_yardstick

ACCURACY, LOG_LOSS = (choose_yardstick(["a", "b"], name) for name in ("accuracy", "log-loss"))
DIGITS = 7
Table = dict[int, dict]  # by steps from the beginning of the search: counts of held-out units
Rule = Callable[[Table], int]


def alike(yardstick: Yardstick, counts: dict[int, np.ndarray], errors: float) -> list[int]:
    """Return steps within so many paired standard errors of the best."""
    best, out = max(counts, key=lambda step: round(yardstick.value(counts[step]), DIGITS)), []
    for step, own in counts.items():
        difference, error = yardstick.difference(counts[best], own)
        if step == best or round(difference - errors * error, DIGITS) <= 0:
            out.append(step)
    return out


def nearest(steps: Iterable[int]) -> int:
    return min(steps, key=lambda step: (abs(step), step))


def right(table: Table, decode: str) -> dict[int, np.ndarray]:
    return {step: found["counts"][decode] for step, found in table.items()}


def by_log_p(errors: float) -> Rule:
    return lambda table: nearest(alike(LOG_LOSS, {step: found["logs"] for step, found in table.items()}, errors))


def by_tempered(errors: float) -> Rule:
    """Log p with all scores multiplied by the best of a few numbers."""

    def rule(table: Table) -> int:
        logs = {step: [found["logs"], *found["tempered"].values()] for step, found in table.items()}
        return nearest(alike(LOG_LOSS, {step: max(own, key=LOG_LOSS.value) for step, own in logs.items()}, errors))

    return rule


def by_accuracy(errors: float, decode: str) -> Rule:
    return lambda table: nearest(alike(ACCURACY, right(table, decode), errors))


def by_both(decode: str) -> Rule:
    """Accuracy within one standard error, of these log p within one."""

    def rule(table: Table) -> int:
        counts = right(table, decode)
        return by_log_p(1)({step: table[step] for step in alike(ACCURACY, counts, 1)})

    return rule


def raised(errors: float) -> Rule:
    """One step above log p within two standard errors, unless accuracy falls by more than so many."""

    def rule(table: Table) -> int:
        here = by_log_p(2)(table)
        counts = {step: own for step, own in right(table, "posterior").items() if step in (here, here + 1)}
        return max(alike(ACCURACY, counts, errors))

    return rule


# Those that end with a step up walk by log p. With fits to two thirds of the data, the last one stays.
RULES: dict[str, tuple[Rule, bool]] = {
    "log p within two standard errors (the rule)": (by_log_p(2), False),
    "log p within one": (by_log_p(1), False),
    "the best log p": (by_log_p(0), False),
    "log p with scores scaled, within two": (by_tempered(2), False),
    "accuracy by posterior decoding within one": (by_accuracy(1, "posterior"), False),
    "the best accuracy by posterior decoding": (by_accuracy(0, "posterior"), False),
    "the best accuracy by Viterbi decoding": (by_accuracy(0, "viterbi"), False),
    "accuracy by posterior decoding within one, then log p": (by_both("posterior"), False),
    "accuracy by Viterbi decoding within one, then log p": (by_both("viterbi"), False),
    "the rule, and one step up": (raised(np.inf), True),
    "the rule, and one step up if accuracy does not fall": (raised(0), True),
    "the rule, and one step up if it does not fall by one": (raised(1), True),
    "the same, with fits to less than two thirds only": (raised(1), True),
}


def choose(name: str, found: dict, positions: int) -> int:
    """Walk as the search does: up while log p rises or the choice moves with it, else down."""
    (rule, up), table, seen = RULES[name], found["steps"], {0: found["steps"][0]}
    walk = by_log_p(2) if up else rule
    value = {step: round(LOG_LOSS.value(own["logs"]), DIGITS) for step, own in table.items()}
    for way in (1, -1):
        here = 0
        while (after := here + way) in table:
            seen[after] = table[after]
            if value[after] <= value[here] and walk(seen) != after:
                break
            here = after
        if walk(seen) != 0:
            break
    chosen = walk(seen)
    if not up or (name.endswith("only") and 1.5 * found["fit"] > 0.999 * positions):
        return chosen
    return rule(seen | {step: table[step] for step in (chosen + 1,) if step in table})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    files = parser.parse_args().files
    sets = [pickle.loads(path.read_bytes()) for path in files]

    def test(found: dict, step: int) -> np.ndarray:
        own = found["test"][step]
        return 100 * np.array([ACCURACY.value(own["counts"]["posterior"]), own["whole"]["posterior"].mean()])

    print("| rule | accuracy lost, mean | worst | whole sequences lost, mean | worst |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in RULES:
        lost = []
        for found in sets:
            best = np.max([test(found, step) for step in found["test"]], axis=0)
            searches = [own for key, own in found.items() if key.startswith("search")]
            chosen = [test(found, choose(name, search, found["positions"])) for search in searches]
            lost.append(best - np.mean(chosen, axis=0))
        (mean, whole), (worst, worst_whole) = np.mean(lost, axis=0), np.max(lost, axis=0)
        print(f"| {name} | {mean:.2f} | {worst:.2f} | {whole:.1f} | {worst_whole:.1f} |")
    print(f"\n{len(sets)} sets: {', '.join(path.stem for path in files)}.")


if __name__ == "__main__":
    main()
