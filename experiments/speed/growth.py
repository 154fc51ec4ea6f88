"""Time per pass as the data grows: positions on CoNLL-2000, pivots on OCR, labels on generated data.

growth.py DATA REPEAT
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from letters import split
from measure import HERE, job, run, said, save

SENTENCES = (425, 1_055, 2_110, 4_220, 8_936)  # about 10,000 positions to all 211,727
PIVOTS = (250, 500, 1_000, 2_000, 4_000)
LABELS = (2, 4, 8, 16, 32, 64)


def measured(repeat: int, *arguments: object) -> dict:
    found = [said(run(job("pass_jobs", *arguments))) for _ in range(repeat)]
    return found[0] | {"seconds": median(one["seconds"] for one in found)}


def main(data: Path, repeat: int) -> None:
    curves = {}
    if (data / "conll2000").exists():
        train = data / "conll2000" / "train.conll"
        curves["positions"] = [measured(repeat, "text", HERE / "chunking.yaml", train, count, 2) for count in SENTENCES]
    if (data / "ocr").exists():
        train, _ = split(data / "ocr")
        curves["columns"] = [measured(repeat, "ocr", train, M, 26, 2) for M in PIVOTS]
    curves["labels"] = [measured(repeat, "labels", Y, 2) for Y in LABELS]
    save("growth", [], curves, repeat)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
