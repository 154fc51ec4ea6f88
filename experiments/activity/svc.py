"""Support vector machines on single positions: `svc.py DATA CONFIG SEED OUTPUT`.

Folds and inputs are those of `kcrf crossval` with the same configuration and seed.

Without scikit-learn the output says so and has no figures.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse

from kcrf_core.config import load_yaml
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.maps import sparse_block
from kcrf_core.selection import Division, Task, make_plan, make_settings

COST = 1.0


def design(encoding, dataset) -> np.ndarray:
    """The inputs that a node term over all features sees, as a matrix."""
    inputs = encoding.inputs(dataset, encoding.names)
    return np.hstack([inputs.real, scipy.sparse.csr_array(sparse_block(inputs)).toarray()])


def main(data: str, config: str, seed: str, output: str) -> None:
    try:
        import sklearn
        from sklearn.svm import SVC
    except ImportError:
        print("activity: no comparison with SVC: scikit-learn is not installed (pip install '.[compare]')")
        Path(output).write_text("{}\n")
        return
    raw = load_yaml(Path(config).read_text(), config)
    division = Division(5, stratify=True, seed=int(seed))
    plan = make_plan(read_corpus(data), raw, config, make_settings({}, {"seed": int(seed)}), division)
    folds = []
    for f in range(len(plan.folds)):
        began = time.perf_counter()
        training, test = (plan.corpus.subset(part) for part in plan.parts(Task(0, f)))
        encoding, dataset = fit_encoding(plan.config(0), training)
        judged = encoding.encode(test)
        machine = SVC(C=COST, kernel="rbf", gamma="scale", cache_size=2000)
        machine.fit(design(encoding, dataset), dataset.labels)
        right = machine.predict(design(encoding, judged)) == judged.labels
        whole = np.minimum.reduceat(right, judged.offsets[:-1])
        fold = {
            "accuracy": float(right.mean()),
            "sequence_accuracy": float(whole.mean()),
            "support_vectors": int(machine.n_support_.sum()),
            "seconds": round(time.perf_counter() - began, 3),
        }
        print(f"fold {f}: {fold}", flush=True)
        folds.append(fold)
    Path(output).write_text(json.dumps({"scikit-learn": sklearn.__version__, "cost": COST, "folds": folds}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
