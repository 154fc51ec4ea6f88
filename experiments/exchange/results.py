"""Results of all parts in one file."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path("results.json")


def add(part: str, found: Any) -> None:
    """Put the findings of a part into results.json, beside those of the others."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(known | {part: found}, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(found, indent=1, ensure_ascii=False))
