"""Print digests of what passes give at this width of vectors: `python tests/bits.py`, one JSON object.

`test_vector_widths.py` runs it at every width that the processor has, under several cores of OpenBLAS and sets of
NumPy's loops. It ends with an error where the engine or the number of threads changes a bit. Digests under "loops" rest
on our own loops alone, those under "blas" on BLAS and LAPACK as well;
`python tests/bits.py loops` prints the first only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "core")]

from test_composed_engine import both, same  # noqa: E402, from the path above

from kcrf_core.system import Workers, vector_width  # noqa: E402

LABELS = (2, 3, 9, 17, 36)
LOOPS = ("linear", "merged", "kept")


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def answers(kind: str, Y: int, dtype: type, threads: int, patch: pytest.MonkeyPatch) -> str:
    """Digest of the objective, gradient and Hessian product at one point; on two threads parts give the same."""
    rng = np.random.default_rng(Y)
    with Workers(threads) as workers:
        whole, composed = both(kind, rng, workers, patch, dtype, Y, sequences=40)
        theta, vector = rng.normal(size=(2, whole.size))
        found = []
        for objective in (whole, composed)[:threads]:
            value, gradient = objective.engine.evaluate(theta)
            product = objective.engine.product(theta, vector)
            vectors = objective.vectors
            dots = np.array([vectors.dot(gradient, product), vectors.dot(gradient, gradient)])
            found.append((np.array(value), gradient, product, dots))
        same(found[0], found[-1])
    return digest(*found[0])


def main() -> None:
    report: dict[str, Any] = {"width": vector_width(), "loops": {}, "blas": {}}
    with pytest.MonkeyPatch.context() as patch:
        for kind in LOOPS if "loops" in sys.argv else (*LOOPS, "edge-x", "edge2", "pivots", "distances", "repeated"):
            for Y in LABELS if kind in ("linear", "kept") else (2, 3):
                if kind == "kept" and Y == 2:  # two labels have one column of scores, of which no part can be kept
                    continue
                both_types = (np.float32, np.float64)
                for dtype in both_types if kind in LOOPS else both_types[Y - 2 : Y - 1]:
                    found = [answers(kind, Y, dtype, threads, patch) for threads in (1, 2)]
                    assert found[0] == found[1], (kind, Y, dtype)
                    report["loops" if kind in LOOPS else "blas"][f"{kind} {Y} {np.dtype(dtype)}"] = found[0]
    print(json.dumps(report))


if __name__ == "__main__":
    main()
