"""Text: encoding, linear training, tagging and start-up, beside python-crfsuite on CoNLL-2000.

text.py encoding|objective|linear|sizes|tagging|startup DATA REPEAT
text.py optimum|crfsuite_until|kcrf_until_2|kcrf_until_1|crfsuite_observed|kcrf_whole DATA REPEAT

The second form makes runs that `linear` and `sizes` need, so that those can be made one at a time, or side by side.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from measure import BUILD, HERE, at_least, at_most, f1, job, kcrf, kept, limit, repeated, run, said, save

CONFIG = HERE / "chunking.yaml"
C2 = 0.25
SIGMA2 = 1 / (2 * C2)  # CRFsuite minimises c2 |w|^2 - log likelihood
WITHIN = 1e-3  # of the optimum
TIGHT = 1e-4  # certified gap of the run that says where the optimum is
OBSERVED_ITERATIONS, MOST_ITERATIONS = 100, 2000
CHECKED_SENTENCES = 300
PRUNED = 0.1  # no score changes by more
COPIES = 10  # of the test data, for tagging
FEW_LINES = 10
SHORT = ("--sigma2", 1, "--tolerance", 0.1, "--max-passes", 30)  # for models that are only tagged with


def encoding(data: Path, repeat: int) -> None:
    ours = repeated(repeat, lambda: said(run(job("kcrf_jobs", "encode", CONFIG, data / "train.conll")))["seconds"])
    peer = repeated(repeat, lambda: said(run(job("crfsuite_jobs", "encode", data / "train.conll")))["seconds"])
    row = at_most("encoding, CoNLL file to dataset", ours, peer, "s", 1 / 10, "attributes built and appended in Python")
    save("encoding", [row], {"ours": ours, "peer": peer}, repeat)


def objective(data: Path, repeat: int) -> None:
    """CRFsuite's loss at its own weights, and P there."""
    sample = BUILD / "sample.conll"
    BUILD.mkdir(exist_ok=True)
    sentences = (data / "train.conll").read_text(encoding="utf-8").split("\n\n")[:CHECKED_SENTENCES]
    sample.write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    model = BUILD / "sample.crfsuite"
    lines = run(job("crfsuite_jobs", "train", sample, model, C2, 50, 1)).said.strip().split("\n")
    loss = json.loads(lines[-2])["loss"]
    found = said(run(job("kcrf_jobs", "objective", CONFIG, sample, model, SIGMA2)))
    difference = abs(found["objective"] / loss - 1)
    row = limit("objectives are the same, relative difference", [difference], 1e-5, "", note="P at CRFsuite's weights")
    save("objective", [row], found | {"crfsuite_loss": loss}, 1)


def linear(data: Path, repeat: int) -> None:
    peer = runs("crfsuite_until", data, repeat)
    ours = {threads: runs(f"kcrf_until_{threads}", data, repeat) for threads in (2, 1)}
    rows, details = [], {"optimum": _optimum(data / "train.conll")}
    details |= {"crfsuite_all_states": peer} | {f"kcrf_{n}_threads": found for n, found in ours.items()}
    seconds = [found["seconds"] for found in peer]
    for threads, bar in ((2, 0.25), (1, 0.45)):
        what = f"linear training until P is within 0.1 %, {threads} thread{'s' * (threads > 1)}"
        rows.append(at_most(what, [found["seconds"] for found in ours[threads]], seconds, "s", bar, "all states"))
    memory = [[found["peak_bytes"] / 1e6 for found in runs] for runs in (ours[2], peer)]
    rows.append(at_most("peak memory of linear training", *memory, "MB", 1.0, "all states"))

    observed, whole = (runs(name, data, repeat) for name in ("crfsuite_observed", "kcrf_whole"))
    details |= {"crfsuite_observed": observed, "kcrf_whole": whole}
    note = f"F1 {whole[0]['f1']:.2f} against {observed[0]['f1']:.2f}, observed features only, 100 iterations"
    rows.append(
        at_most(
            "from file to model",
            [found["seconds"] for found in whole],
            [found["seconds"] for found in observed],
            "s",
            0.5,
            note,
        )
    )
    f1 = [[found["f1"] for found in runs] for runs in (whole, observed)]
    rows.append(at_least("test F1 of those models", *f1, "%", 1.0))
    save("linear", rows, details, repeat)


def sizes(data: Path, repeat: int) -> None:
    """Model files of observed features, as large whatever the machine does: once is enough."""
    train, test = (data / f"{part}.conll" for part in ("train", "test"))
    BUILD.mkdir(exist_ok=True)
    peer = runs("crfsuite_observed", data, 1)[0]
    model, tagged = BUILD / "small.npz", BUILD / "small.tagged"
    ours = {}
    for name, options in (("observed features", ()), ("the same, pruned by 0.1", ("--prune", PRUNED))):
        given = ("-c", CONFIG, "--sigma2", SIGMA2, "--observed-features", *options)
        outcome = run(kcrf("train", train, *given, "-q", "--json", "-o", model))
        run(kcrf("tag", "-m", model, test, "-o", tagged))
        ours[name] = {
            "bytes": model.stat().st_size,
            "f1": f1(tagged),
            "gap": json.loads(outcome.said)["certified_gap"],
            "peak_bytes": outcome.peak_bytes,
        }
    size = (BUILD / "observed.crfsuite").stat().st_size / 1e6
    rows = [
        at_most(f"size of the model, {name}", [found["bytes"] / 1e6], [size], "MB", 1.0,
                f"F1 {found['f1']:.2f} against {peer['f1']:.2f}")
        for name, found in ours.items()
    ]  # fmt: skip
    memory = [found["peak_bytes"] / 1e6 for found in (ours["observed features"], peer)]
    rows.append(
        at_most(
            "peak memory of linear training, observed features", memory[:1], memory[1:], "MB", 1.0, "same attributes"
        )
    )
    save("sizes", rows, {"crfsuite": {**peer, "bytes": size * 1e6}, "kcrf": ours}, 1)


def _optimum(train: Path) -> float:
    """P at its optimum, nearly, and once for all runs: it depends on nothing but the data."""
    return runs("optimum", train.parent, 1)[0]["objective"]


def _tight(train: Path) -> dict:
    command = kcrf("train", train, "-c", CONFIG, "--sigma2", SIGMA2, "--tolerance", TIGHT, "-q", "--json")
    return json.loads(run([*command, "-o", str(BUILD / "tight.npz")]).said)


def runs(name: str, data: Path, repeat: int) -> list[dict]:
    """Return what the runs of one kind took, which are made unless they have been."""
    train, test = data / "train.conll", data / "test.conll"
    BUILD.mkdir(exist_ok=True)
    return kept(name, repeat, lambda: RUNS[name](train, test))


def _crfsuite_until(train: Path) -> dict:
    """Seconds of training, without attributes, until the loss is near its optimum; then the run is ended."""
    target = (1 + WITHIN) * _optimum(train)

    def reached(line: str) -> bool:
        found = json.loads(line)
        return "loss" in found and found["loss"] <= target

    command = job("crfsuite_jobs", "train", train, BUILD / "all.crfsuite", C2, MOST_ITERATIONS, 1)
    outcome = run(command, reached)
    last = json.loads(outcome.said.strip().split("\n")[-1])
    if "loss" not in last:
        raise RuntimeError("CRFsuite ended before its loss was near the optimum")
    return {**last, "peak_bytes": outcome.peak_bytes}


def _kcrf_until(train: Path, threads: int) -> dict:
    """Seconds from the encoded data until P is near its optimum, by the log of a run to the default certificate."""
    target = (1 + WITHIN) * _optimum(train)
    command = kcrf("train", train, "-c", CONFIG, "--sigma2", SIGMA2, "--threads", threads, "--log", "-", "-q")
    outcome = run([*command, "-o", str(BUILD / f"until{threads}.npz")])
    events = [json.loads(line) for line in outcome.said.strip().split("\n")]
    start = next(event["seconds"] for event in events if event["event"] == "start")
    reached = next(event for event in events if event["event"] == "pass" and event["objective"] <= target)
    certified = events[-1]
    return {
        "seconds": reached["seconds"] - start,
        "passes": reached["pass"],
        "certified_seconds": certified["seconds"] - start,
        "certified_passes": certified["passes"],
        "peak_bytes": outcome.peak_bytes,
    }


def _crfsuite_observed(train: Path, test: Path) -> dict:
    model = BUILD / "observed.crfsuite"
    outcome = run(job("crfsuite_jobs", "train", train, model, C2, OBSERVED_ITERATIONS, 0))
    tagged = BUILD / "observed.tagged"
    run(job("crfsuite_jobs", "tag", model, test, tagged))
    return {"seconds": outcome.seconds, "f1": f1(tagged), "peak_bytes": outcome.peak_bytes}


def _kcrf_whole(train: Path, test: Path) -> dict:
    """The command with its default tolerance, from file to model."""
    model, tagged = BUILD / "linear.npz", BUILD / "linear.tagged"
    outcome = run(kcrf("train", train, "-c", CONFIG, "--sigma2", SIGMA2, "-q", "-o", model))
    run(kcrf("tag", "-m", model, test, "-o", tagged))
    return {"seconds": outcome.seconds, "f1": f1(tagged), "peak_bytes": outcome.peak_bytes}


def _models(train: Path) -> dict[str, Path]:
    """Models to tag with; how well they are trained does not matter for their speed."""
    commands = {
        "linear.npz": kcrf("train", train, "-c", CONFIG, "--sigma2", SIGMA2, "-q"),
        "degree2.npz": kcrf("train", train, "--plain", "--kernel", "poly", "--degree", 2, *SHORT),
        "window.npz": kcrf("train", train, "--plain", *SHORT),
    }
    for name, command in commands.items():
        if not (BUILD / name).exists():
            run([*command, "-o", str(BUILD / name)])
    if not (BUILD / "observed.crfsuite").exists():
        run(job("crfsuite_jobs", "train", train, BUILD / "observed.crfsuite", C2, OBSERVED_ITERATIONS, 0))
    return {name: BUILD / name for name in commands}


def tagging(data: Path, repeat: int) -> None:
    BUILD.mkdir(exist_ok=True)
    models = _models(data / "train.conll")
    text = (data / "test.conll").read_text(encoding="utf-8").rstrip("\n") + "\n\n"
    long, longer = BUILD / "long.conll", BUILD / "longer.conll"
    long.write_text(text * COPIES, encoding="utf-8")
    longer.write_text(text * (4 * COPIES), encoding="utf-8")
    positions = COPIES * sum(1 for line in text.split("\n") if line)

    def rates(command: list[str]) -> tuple[list[float], list[float]]:
        outcomes = [run(command) for _ in range(repeat)]
        return [positions / found.seconds for found in outcomes], [found.peak_bytes / 1e6 for found in outcomes]

    ours, memory = rates(kcrf("tag", "-m", models["linear.npz"], long, "-o", BUILD / "long.tagged"))
    window, _ = rates(kcrf("tag", "-m", models["window.npz"], long, "-o", BUILD / "long.tagged"))
    degree2, _ = rates(kcrf("tag", "-m", models["degree2.npz"], long, "-o", BUILD / "long.tagged"))
    peer, _ = rates(job("crfsuite_jobs", "tag", BUILD / "observed.crfsuite", long, BUILD / "long.peer"))
    outcomes = [
        run(kcrf("tag", "-m", models["linear.npz"], longer, "-o", BUILD / "long.tagged")) for _ in range(repeat)
    ]
    more = [found.peak_bytes / 1e6 for found in outcomes]
    details = {"linear": ours, "window": window, "degree2": degree2, "crfsuite": peer, "memory": memory, "longer": more}
    note = f"{positions:,} tokens, whole commands, file to file"
    save(
        "tagging",
        [
            at_least("tagging, linear model", ours, peer, "tokens/s", 5, note),
            at_least("tagging, degree 2 against linear, same columns", degree2, window, "tokens/s", 0.25, note),
            at_most("memory of tagging four times the tokens", more, memory, "MB", 1.05),
        ],
        details,
        repeat,
    )


def startup(data: Path, repeat: int) -> None:
    BUILD.mkdir(exist_ok=True)
    model = _models(data / "train.conll")["linear.npz"]
    few = BUILD / "few.conll"
    few.write_text("\n".join((data / "test.conll").read_text(encoding="utf-8").split("\n")[:FEW_LINES]) + "\n")
    times = 3 * repeat
    click = repeated(times, lambda: run([sys.executable, "-c", "import click"]).seconds)
    help_ = repeated(times, lambda: run(kcrf("--help")).seconds)
    tag = repeated(times, lambda: run(kcrf("tag", "-m", model, few)).seconds)
    more = [a - b for a, b in zip(sorted(help_), sorted(click), strict=True)]
    save(
        "startup",
        [
            limit("kcrf --help, beyond import click", more, 0.25, "s"),
            limit("kcrf tag of ten lines, linear CoNLL-2000 model", tag, 1.0, "s"),
        ],
        {"click": click, "help": help_, "tag": tag},
        repeat,
    )


RUNS: dict[str, Callable[[Path, Path], dict]] = {
    "optimum": lambda train, test: _tight(train),
    "crfsuite_until": lambda train, test: _crfsuite_until(train),
    "kcrf_until_2": lambda train, test: _kcrf_until(train, 2),
    "kcrf_until_1": lambda train, test: _kcrf_until(train, 1),
    "crfsuite_observed": _crfsuite_observed,
    "kcrf_whole": _kcrf_whole,
}


if __name__ == "__main__":
    group, folder, count = sys.argv[1:]
    place = Path(folder) / "conll2000"
    if group in RUNS:
        print(runs(group, place, int(count)))
    else:
        globals()[group](place, int(count))
