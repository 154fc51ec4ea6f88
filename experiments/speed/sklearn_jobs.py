"""Kernel machines without a chain, by scikit-learn, on letters one by one. One line of JSON each.

sklearn_jobs.py svc TRAIN TEST          LIBSVM, poly-3
sklearn_jobs.py nystroem TRAIN TEST     poly-3 through 1,000 landmarks, then multinomial logistic regression
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from kcrf_core.corpora import read_corpus

LANDMARKS = 1000


def letters(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels [N, 128] and letters [N]."""
    *pixels, gold = read_corpus(path).columns
    return np.array([list(column) for column in pixels], dtype=np.float64).T.copy(), np.array(list(gold))


def main(name: str, train: str, test: str) -> None:
    (X, y), (test_X, test_y) = letters(train), letters(test)
    kernel = {"gamma": 1 / np.square(X).sum(axis=1).mean(), "coef0": 1.0, "degree": 3}
    if name == "svc":
        machine = SVC(kernel="poly", C=1.0, cache_size=1000, **kernel)
    else:
        landmarks = Nystroem(kernel="poly", n_components=LANDMARKS, random_state=0, **kernel)
        machine = make_pipeline(landmarks, LogisticRegression(C=10.0, max_iter=1000))
    began = time.perf_counter()
    machine.fit(X, y)
    fitted = time.perf_counter()
    predicted = machine.predict(test_X)
    done = time.perf_counter()
    figures = {
        "fit_seconds": fitted - began,
        "letters_per_second": len(test_y) / (done - fitted),
        "error": 100 * float(np.mean(predicted != test_y)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
