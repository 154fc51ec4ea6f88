"""Numbers scaled by the training data or by each recording, on seven sets of recordings. `levels.py SETS DATA`.

SETS is the folder that `gather.py` wrote; DATA has `batteryless_adl/all.conll` and `sequences.txt`. Each set is one
split into training and test recordings. The model has an rbf kernel with 500 pivots over all numbers at -2..2.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER / "../tune"), str(FOLDER / "..")]

from parts import sequences  # noqa: E402
from readme import fill, table  # noqa: E402

TITLES = {
    "beats": "heartbeats (intervals)",
    "exercises": "exercises",
    "activities": "activities, every second trial",
    "room": "activities, another room",
    "pump": "a pump",
    "gaze": "eye movements",
    "gestures": "gestures",
}
HALVES = {"beats": "design", "exercises": "design", "pump": "validation", "gaze": "validation",
          "gestures": "validation"}  # fmt: skip
SCALES = {"standard": "by training data", "sequence": "by recording"}
LAG, OTHER_VARIANCES = 2, (0.1, 10.0, None)  # None: as training chooses
MOVEMENT = slice(1, 4), slice(5, 6)  # columns of the activities: accelerations, and the strength of the signal


def activities(data: Path) -> list[str]:
    """Return trials with accelerations, the strength of the signal and the activity."""
    rows = ([line.split() for line in trial.split("\n")] for trial in sequences(data / "batteryless_adl/all.conll"))
    return [
        "\n".join(" ".join([*(cell for part in MOVEMENT for cell in row[part]), row[-1]]) for row in trial)
        for trial in rows
    ]


def split(name: str, sets: Path, data: Path) -> tuple[list[str], list[str]]:
    """Return training and test recordings of a set."""
    if name in HALVES:
        folder = sets / HALVES[name] / name
        return sequences(folder / "train.conll"), sequences(folder / "test.conll")
    trials = activities(data)
    if name == "activities":
        return trials[::2], trials[1::2]
    lines = (data / "batteryless_adl/sequences.txt").read_text().strip().split("\n")
    first_room = [line.startswith("S1") for line in lines]
    pairs = list(zip(trials, first_room, strict=True))
    return [trial for trial, first in pairs if first], [trial for trial, first in pairs if not first]


def results(kcrf: str, folder: Path, scale: str, sigma2: float | None) -> dict[str, dict[str, Any]]:
    """Train on a split in `folder`; return the figures of whole recordings, and of labels with a lag."""
    train, test, config, model = (folder / name for name in ("train.conll", "test.conll", "c.yaml", "model.npz"))
    width = len(train.read_text().split("\n", 1)[0].split())
    columns = ", ".join(f"c{number}" for number in range(width - 1))
    config.write_text(f"features:\n  - {{columns: [{columns}], type: real, scale: {scale}, window: -2..2}}\n")
    given = [] if sigma2 is None else ["--sigma2", str(sigma2)]
    kernel = ["--kernel", "rbf", "--size", "500"]
    subprocess.run([kcrf, "train", train, "-c", config, *kernel, *given, "-q", "-o", model], check=True)
    out = {"whole": [kcrf, "evaluate", "-m", model, test, "--json"]}
    tagged = folder / "tagged.conll"
    with open(test) as stream:
        subprocess.run([kcrf, "tag", "-m", model, "--lag", str(LAG), "-q", "-o", tagged], stdin=stream, check=True)
    out["online"] = [kcrf, "evaluate", tagged, "--json"]
    return {
        name: json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        for name, command in out.items()
    }


def accuracy(figures: dict[str, Any]) -> str:
    return f"{100 * figures['accuracy']:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--kcrf", default="kcrf")
    given = parser.parse_args()
    rows, variances = [], []
    for name, title in TITLES.items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            training, test = split(name, given.sets, given.data)
            (folder / "train.conll").write_text("\n\n".join(training) + "\n")
            (folder / "test.conll").write_text("\n\n".join(test) + "\n")
            labels = Counter(line.split()[-1] for trial in test for line in trial.split("\n"))
            often = f"{100 * max(labels.values()) / labels.total():.1f}"
            found = {scale: results(given.kcrf, folder, scale, 1.0) for scale in SCALES}
            cells = [
                f"{accuracy(found[scale][kind])} ({100 * found[scale][kind]['macro_f1']:.1f})"
                for kind in ("whole", "online")
                for scale in SCALES
            ]
            rows.append([f"{title}, {len(training)} + {len(test)}", often, *cells])
            others = [
                accuracy(results(given.kcrf, folder, scale, sigma2)["whole"])
                for sigma2 in OTHER_VARIANCES
                for scale in SCALES
            ]
            variances.append([title, *others])
            print(*rows[-1], *others, sep=" | ", flush=True)
    online = [f"online, lag {LAG}: {how}" for how in SCALES.values()]
    header = ("recordings", "most frequent label", *SCALES.values(), *online)
    names = ["sigma2 chosen" if sigma2 is None else f"sigma2 {sigma2:g}" for sigma2 in OTHER_VARIANCES]
    other_header = ("recordings", *(f"{name}: {how}" for name in names for how in SCALES.values()))
    text = f"{table(header, rows)}\n\n{table(other_header, variances)}"
    fill(FOLDER / "README.md", text, name="levels")


if __name__ == "__main__":
    main()
