"""Models of the present format, with what they say: python tests/data/make.py. Earlier formats are left as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kcrf_core.corpora import read_corpus
from kcrf_core.files.containers import FORMAT
from kcrf_core.model import Model

HERE = Path(__file__).parent
DATA = "words.conll"
KINDS = {
    "linear": ["--sigma2", "1"],
    "conjunctions": ["--kernel", "poly", "--degree", "2", "--sigma2", "1"],
    "observed": ["--sigma2", "1", "--observed-features"],
    "poly": ["--kernel", "poly", "--degree", "2", "--size", "10", "--map", "reduced", "--sigma2", "1"],
    "rbf": ["--kernel", "rbf", "--size", "8", "--sigma2", "1"],
}


def main() -> None:
    for kind, options in KINDS.items():
        path = HERE / f"format{FORMAT}-{kind}.npz"
        command = [sys.executable, "-m", "kcrf_cli", "train", HERE / DATA, *options, "-q", "-o", path]
        subprocess.run(command, check=True)
        model, corpus = Model.load(path), read_corpus(HERE / DATA)
        found = {
            "data": DATA,
            "labels": model.tag_corpus(corpus),
            "marginals": model.marginals(model.encoding.encode(corpus)).round(6).tolist(),
        }
        path.with_suffix(".json").write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
