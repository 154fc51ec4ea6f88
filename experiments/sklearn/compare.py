"""The tutorial's features and settings through `KernelCRF` and through CRFsuite: what each scores and what it takes.

compare.py --data FOLDER    FOLDER/conll2000/{train,test}.conll, if it is there; sample data in any case

CRFsuite is used through sklearn-crfsuite where that is installed, else through python-crfsuite. Each system runs in a
process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from readme import fill, table
from tutorial import read_sentences, sent2features, sent2labels

from kcrf_core import KernelCRF
from kcrf_core.scoring import metrics

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
SAMPLE = HERE / "../../sample_data/pitch_accent.conll"
SETTINGS = {"c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
PARTS = (sent2features, sent2labels)
PEER = "sklearn-crfsuite" if find_spec("sklearn_crfsuite") else "python-crfsuite"
SYSTEMS: dict[str, dict[str, Any] | None] = {
    PEER: None,
    "KernelCRF": {},
    "KernelCRF, n_jobs=2": {"n_jobs": 2},
    "KernelCRF, max_iterations=None": {"max_iterations": None},
    "KernelCRF, c2=None": {"c2": None},  # chosen on held-out training sequences
    "KernelCRF, c2=None, kernel='poly'": {"c2": None, "kernel": "poly"},
}
# What takes long on a large file is left out there.
LARGE = (PEER, "KernelCRF", "KernelCRF, n_jobs=2", "KernelCRF, max_iterations=None")


class PythonCrfsuite:
    """What sklearn-crfsuite does with python-crfsuite, as far as it matters here."""

    def __init__(self, **settings: Any):
        self.settings = {"c1": 0.0, **settings}
        self.settings["feature.possible_transitions"] = self.settings.pop("all_possible_transitions")
        self.file = tempfile.NamedTemporaryFile(suffix=".crfsuite")  # noqa: SIM115  as long as the estimator lives

    def fit(self, X: list, y: list) -> PythonCrfsuite:
        import pycrfsuite

        trainer = pycrfsuite.Trainer("lbfgs", self.settings, verbose=False)
        for sequence, labels in zip(X, y, strict=True):
            trainer.append(sequence, labels)
        trainer.train(self.file.name)
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(self.file.name)
        return self

    def predict(self, X: list) -> list:
        return [self.tagger.tag(sequence) for sequence in X]


def estimator(system: str) -> Any:
    options = SYSTEMS[system]
    if options is not None:
        return KernelCRF(**{**SETTINGS, **options})
    if PEER == "sklearn-crfsuite":
        import sklearn_crfsuite

        return sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0, **SETTINGS)
    return PythonCrfsuite(**SETTINGS)


def measure(system: str, train: Path, test: Path) -> dict[str, Any]:
    """One system on one data set, in this process."""
    X, y, X_test, y_test = (
        [part(sentence) for sentence in read_sentences(path)] for path in (train, test) for part in PARTS
    )
    crf = estimator(system)
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a hundred passes may not be enough: the gap is in the table
        crf.fit(X, y)
    found = {"fit": time.perf_counter() - wall, "fit_cpu": time.process_time() - cpu}
    wall, cpu = time.perf_counter(), time.process_time()
    predicted = crf.predict(X_test)
    found |= {"predict": time.perf_counter() - wall, "predict_cpu": time.process_time() - cpu}
    scored = metrics.evaluate_sequences(y_test, predicted)
    found |= {"accuracy": scored.accuracy, "flat_f1": metrics.flat_f1_score(y_test, predicted)}
    found["span_f1"] = None if scored.spans is None else scored.spans.total.f1
    if isinstance(crf, KernelCRF):
        found |= {"gap": crf.certificate_.gap, "passes": crf.n_iter_}
    return found


def split_sample(folder: Path) -> tuple[Path, Path]:
    """Every fifth utterance of the sample data is kept for the test."""
    blocks = SAMPLE.read_text(encoding="utf-8").strip().split("\n\n")
    paths = folder / "train.conll", folder / "test.conll"
    for path, test in zip(paths, (False, True), strict=True):
        kept = [block for number, block in enumerate(blocks, 1) if (number % 5 == 0) == test]
        path.write_text("\n\n".join(kept) + "\n", encoding="utf-8")
    return paths


def in_process_of_its_own(system: str, train: Path, test: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", system, str(train), str(test)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of one run, times of the middle one."""
    times = ("fit", "fit_cpu", "predict", "predict_cpu")
    return {**runs[0], **{key: statistics.median(run[key] for run in runs) for key in times}}


def rows(results: dict[str, dict[str, dict[str, Any]]]) -> list[list[str]]:
    out = []
    for data, systems in results.items():
        for system, found in systems.items():
            span = "-" if found["span_f1"] is None else f"{100 * found['span_f1']:.2f}"
            gap = f"{found['gap']:.2g}" if "gap" in found else "-"
            times = [f"{found[key]:.3g}" for key in ("fit", "fit_cpu", "predict", "predict_cpu")]
            out.append([data, system, span, f"{100 * found['flat_f1']:.2f}", *times, gap])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../../data"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(SYSTEMS), help="systems; others keep their figures")
    parser.add_argument("--one", nargs=3, metavar=("SYSTEM", "TRAIN", "TEST"))
    options = parser.parse_args()
    if options.one:
        system, train, test = options.one
        print(json.dumps(measure(system, Path(train), Path(test))))
        return
    with tempfile.TemporaryDirectory() as folder:
        tasks = {"pitch accents (synthetic)": (*split_sample(Path(folder)), tuple(SYSTEMS))}
        chunks = options.data / "conll2000"
        if (chunks / "train.conll").exists():
            tasks["CoNLL-2000"] = (chunks / "train.conll", chunks / "test.conll", LARGE)
        else:
            print(f"CoNLL-2000: skipped, there is no {chunks}/train.conll (make DATA=...)")
        before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        results: dict[str, dict[str, dict[str, Any]]] = {}
        for name, (train, test, systems) in tasks.items():
            for system in systems:
                if system not in options.only:
                    results.setdefault(name, {})[system] = before[name][system]
                    continue
                runs = [in_process_of_its_own(system, train, test) for _ in range(options.repeat)]
                results.setdefault(name, {})[system] = median(runs)
                print(name, system, json.dumps(runs), flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    header = ["data", "system", "span F1", "flat F1", "fit s", "its CPU s", "predict s", "its CPU s", "certified gap"]
    fill(HERE / "README.md", table(header, rows(results), 2), peers=[PEER])


if __name__ == "__main__":
    main()
