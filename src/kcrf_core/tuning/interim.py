from __future__ import annotations
import numpy as np
from dataclasses import dataclass
from ..training.training import TrainingRun, TrainOptions
from ..training.prior_search import _Search
from ..training.observer import Observer
from ..solvers import Progress

@dataclass(frozen=True)
class Judgement:
    sigma2: dict
    decode: str
    counts: np.ndarray
    log_probability: float
    work: float

class Count(Observer):
    def __init__(self): self.work = 0.0; self.positions = 0
    def tell(self, event):
        if isinstance(event, Progress): self.work += self.positions

def judge(encoding, dataset, config, *, parts, yardstick, workers, interrupted, start=None):
    observer = Count()
    options = TrainOptions("estimate", False, 1.0, None, None, "last", None)
    run = TrainingRun(encoding, dataset, config, None, workers, observer, interrupted, options)
    task = run.fit_terms()
    fixed = {name: value for name, value in run._given.items() if value is not None}
    scales = {term.name: term.score_scale() for term in task.terms if run._given[term.name] is None}
    fit, held = parts[0]
    observer.positions = int(np.diff(task.problem.offsets)[fit].sum())
    search = _Search(task, fit, held, fixed, scales, run._minimiser)
    if scales: search.run()
    chosen = {name: float(f"{v:.3g}") for name, v in search._values.items()}
    sigma2 = {t.name: (fixed | chosen)[t.name] for t in task.terms}
    counts, logs = {"viterbi": [], "posterior": []}, []
    for fit, held in parts:
        sample = task.subset(fit); used = sample.used_columns()
        sample, other = sample.narrow(used), task.subset(held).narrow(used)
        posterior = sample.posterior(sigma2)
        observer.positions = sample.problem.positions
        theta = run._minimiser.minimise(posterior, posterior.vectors.zeros(), 1e-2, 300)
        found = other.posterior(sigma2).engine.predictions(theta)
        logp = np.log(np.maximum(found.gold, 1e-300))
        for d in counts:
            counts[d].append(yardstick.counts(other.problem.labels, found.labels[d], logp, other.problem.offsets, None))
        logs.append(logp)
    counts = {d: np.concatenate(c) for d, c in counts.items()}
    from ..training import choose_decoder
    decode = choose_decoder(yardstick, counts, "held").decode
    return Judgement(sigma2, decode, counts[decode], float(np.concatenate(logs).mean()), observer.work)
