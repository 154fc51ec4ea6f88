"""The table of README.md: table.py RESULTS DATA README --kcrf PROGRAM.

Labels of all folds of a row are put together, and `kcrf evaluate --compare` compares them with Wapiti's: p is of a
paired randomisation over references. Rows that lack folds are compared on those that both have.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from measure import ROWS
from readme import fill, origins, table

FOLDS = range(1, 6)
PEER = "wapiti"
TOKENS, WHOLE = "accuracy", "sequence_accuracy"


def evaluated(kcrf: str, results: Path, row: str, folds: list[int], ending: str = "tagged") -> dict:
    """Return what `kcrf evaluate` says of a row on some folds together, compared with Wapiti."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name in (f"{row}-{{}}.{ending}", f"{PEER}-{{}}.tagged"):
            paths.append(Path(folder, str(len(paths))))
            texts = [(results / name.format(fold)).read_text(encoding="utf-8").strip("\n") for fold in folds]
            paths[-1].write_text("\n\n".join(texts) + "\n", encoding="utf-8")
        command = [kcrf, "evaluate", str(paths[0]), "--compare", str(paths[1]), "--scheme", "none", "--json"]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("readme", type=Path)
    parser.add_argument("--kcrf", default="kcrf")
    asked = parser.parse_args()
    lines, by_fold, about = [], [], []
    there = {row: [fold for fold in FOLDS if (asked.results / f"{row}-{fold}.tagged").exists()] for row in ROWS}
    for row, (title, _, _) in ROWS.items():
        folds = [fold for fold in there[row] if fold in there[PEER]]
        if not folds:
            continue
        decoded = [("tagged", TOKENS), ("tagged", WHOLE)]
        if all((asked.results / f"{row}-{fold}.viterbi").exists() for fold in folds):
            decoded.append(("viterbi", WHOLE))
        cells = []
        for ending, name in decoded:
            found = evaluated(asked.kcrf, asked.results, row, folds, ending)
            p = found["comparison"]["figures"][name]["p_value"]
            cells += [percent(found[name]), f"{p:.3f}" if row != PEER else ""]
        runs = [json.loads((asked.results / f"{row}-{fold}.json").read_text(encoding="utf-8")) for fold in folds]
        used = sum(run["seconds"][0][0] for run in runs) / len(runs)
        part = "" if folds == list(FOLDS) else f" (fold {', '.join(map(str, folds))})"
        if len(decoded) < 3:
            cells += cells[2:4] if ROWS[row][2] is None else ["", ""]  # which decode by Viterbi
        lines.append([f"{title}{part}", *cells, f"{used:,.0f}"])
        each = {fold: evaluated(asked.kcrf, asked.results, row, [fold]) for fold in folds}
        shown = {fold: " / ".join(percent(one[name], 1) for name in (TOKENS, WHOLE)) for fold, one in each.items()}
        by_fold.append([title, *(shown.get(fold, "") for fold in FOLDS)])
        about += [(title, f"{run['code']}; {run['machine']}") for run in runs]
    corpus = json.loads((asked.data / "corpus.json").read_text(encoding="utf-8"))
    header = ["", "tokens right, %", "p", "references right, %", "p", "references by Viterbi, %", "p",
              "processor seconds of training a fold"]  # fmt: skip
    counts = (
        f"{corpus['references']:,} references, {corpus['tokens']:,} tokens, {corpus['labels']} labels; AnyStyle at "
        f"{corpus['anystyle']}, its dictionary at {corpus['dictionary']}."
    )
    parts = [table(header, lines), "Tokens and references right in each fold, %:",
             table(["", *(f"fold {fold}" for fold in FOLDS)], by_fold), counts]  # fmt: skip
    fill(asked.readme, "\n\n".join(parts), taken_with=origins(about))


if __name__ == "__main__":
    main()
