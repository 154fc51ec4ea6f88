"""What `make` measured as the table of README.md: report.py RESULTS."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from readme import fill, table

HEADER = ("what", "positions", "seconds", "of processors", "peak, GiB")


def main(path: str) -> None:
    results = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    rows = [
        (
            each["name"],
            each["data"],
            f"{each['seconds']:.0f}",
            f"{each['processor']:.0f}",
            f"{each['peak_gib']:.2f}",
        )
        for each in results
    ]
    fill(Path(__file__).parent / "README.md", table(HEADER, rows, text_columns=2))


if __name__ == "__main__":
    main(sys.argv[1])
