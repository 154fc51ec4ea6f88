"""Which setting did best on held-out data: `choose.py least|most MEASURE build/RUN-SETTING.tried.json ...`.

The files are from `kcrf evaluate --json`; MEASURE is the path of a figure in them, such as spans.f1.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from operator import getitem
from pathlib import Path

which, measure, *paths = sys.argv[1:]
found = {path: reduce(getitem, measure.split("."), json.loads(Path(path).read_text())) for path in paths}
best = {"least": min, "most": max}[which](found, key=found.__getitem__)
print(Path(best).name.removesuffix(".tried.json").rsplit("-", 1)[1])
