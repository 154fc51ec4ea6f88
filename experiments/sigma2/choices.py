"""Print the sigma2 that training chooses for each set: python choices.py DATA [SETS] [--engine torch:cpu] [--jobs N].

Lines are the same on every machine and with every engine.
"""

from __future__ import annotations

import json

from sets import arguments, corpus_of, encoded, in_processes

from kcrf_core import train
from kcrf_core.training import open_engine


def choice(name: str, data: str, engine: str | None) -> dict[str, object]:
    """Choose as `kcrf train` does; the final fit ends after one pass."""
    encoding, dataset, config = encoded(corpus_of(name, data), max_passes=1)
    with open_engine(engine, threads=1) as workers:
        _, report = train(encoding, dataset, config, workers=workers)
    tried = [
        [*trial.sigma2.values(), round(trial.log_probability, 6), round(100 * trial.figures["viterbi"], 4)]
        for trial in report.path
    ]
    return {"set": name, "sigma2": report.sigma2, "decode": report.decoder.decode, "tried": tried}


if __name__ == "__main__":
    given = arguments(__doc__)
    found = in_processes(given.jobs, choice, [(name, given.data, given.engine) for name in given.names])
    for line in sorted(json.dumps(each) for each in found):
        print(line)
