"""How long a pass takes on a cluster of this machine, and on as many threads of one process.

    python experiments/cluster/measure.py pivots --positions 1000000 --workers 2 --worker-threads 1
    python experiments/cluster/measure.py pivots --positions 4000000 --partitions 16 --workers 8 --worker-threads 2
    python experiments/cluster/measure.py file train.conll --workers 2 --worker-threads 1 -- --kernel poly --degree 2

`pivots` generates data where it is needed; `file` takes that of a file, with options as `kcrf train` has them. Threads
come first, then the cluster, so that memory is there for one of them at a time. Passes alternate between two points.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))


def processor_time() -> float:
    """Seconds of processor time that this process and those it has started have had."""
    import psutil

    own = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in (own, *own.children(recursive=True)))


def timed(objective, passes: int) -> tuple[list[float], float, list[tuple[float, float]]]:
    """Seconds of the first pass and of so many more, processor time of each of those, and what they found.

    On a busy machine processor time tells more.
    """
    rng = np.random.default_rng(0)
    thetas = rng.normal(size=(2, objective.size)) * 0.01
    found, seconds = [], []
    for number in range(passes + 1):
        if number == 1:
            before = processor_time()
        began = time.perf_counter()
        value, gradient = objective.engine.evaluate(thetas[number % 2])
        seconds.append(time.perf_counter() - began)
        found.append((value, float(gradient @ gradient)))
    return seconds, (processor_time() - before) / passes, found[:2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pivots", "file"])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--positions", type=int, default=1_000_000)
    parser.add_argument("--pivots", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker-threads", type=int, default=1)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--memory", type=float, help="GiB for kernel values, of each worker and of threads together")
    arguments, options = parser.parse_known_args()
    import dask
    from distributed import Client, LocalCluster

    from kcrf_core.chains import EDGE, NODE
    from kcrf_core.cluster import DaskExecutor, on_workers
    from kcrf_core.objective import DistantRows, Engine, HostVectors, Objective, ObjectiveTerm, Partition, block_slices
    from kcrf_core.system import Workers

    threads = arguments.workers * arguments.worker_threads
    report = {**vars(arguments), "threads": threads, "processor": on_workers.processor()}
    memory = None if arguments.memory is None else int(arguments.memory * 2**30)
    with Workers(threads, None if memory is None else memory * arguments.workers) as workers:
        if arguments.what == "pivots":
            from generated import DTYPE, Generated

            data = Generated(arguments.positions, arguments.partitions, arguments.pivots)
            objective = data.on_threads(workers)
        else:
            terms, problem, dtype = _of_file(arguments.data, [each for each in options if each != "--"], workers)
            objective = Objective.on(Engine.of(Partition(problem, terms, workers, dtype)), terms)
        seconds, report["threads_processor"], expected = timed(objective, arguments.passes)
        report["threads_first"], report["threads_pass"] = seconds[0], float(np.median(seconds[1:]))
        report["threads_least"] = min(seconds[1:])
        print(json.dumps(report), flush=True)
        del objective
        # As `--engine dask` has it.
        dask.config.set({"distributed.worker.profile.enabled": False})
        cluster = LocalCluster(
            n_workers=arguments.workers,
            threads_per_worker=arguments.worker_threads,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        )
        with cluster, Client(cluster, direct_to_workers=True) as client:
            executor = DaskExecutor(client, memory, print)
            executor.check()
            if arguments.what == "pivots":
                problem, specs, head = data.problem(range(arguments.partitions)), data.specs(), data.head(workers)
                terms = [ObjectiveTerm(NODE, distant=DistantRows(head, 1.0, ())), ObjectiveTerm(EDGE)]
                terms = [term.for_labels(problem.label_count) for term in terms]
                parts = executor, executor.load(specs), [spec.places for spec in specs]
                vectors = HostVectors(block_slices(terms), workers)
                engine = Engine(problem, terms, *parts, vectors, workers, DTYPE, None)
                objective = Objective(engine, [1.0, 1.0])
            else:
                objective = Objective.on(Engine.over(problem, terms, executor, workers, dtype), terms)
            before = executor.sent, executor.received
            seconds, report["cluster_processor"], found = timed(objective, arguments.passes)
            report["cluster_first"], report["cluster_pass"] = seconds[0], float(np.median(seconds[1:]))
            report["cluster_least"] = min(seconds[1:])
            held = client.has_what()
            report["held"] = sorted(sum(each.startswith("kcrf-part") for each in own) for own in held.values())
            report["sent_per_pass"] = (executor.sent - before[0]) // (arguments.passes + 1)
            report["received_per_pass"] = (executor.received - before[1]) // (arguments.passes + 1)
    report["same"] = found == expected
    report["ratio"] = report["cluster_pass"] / report["threads_pass"]
    report["rate"] = 1 / report["ratio"]
    report["least_ratio"] = report["cluster_least"] / report["threads_least"]
    report["processor_ratio"] = report["cluster_processor"] / report["threads_processor"]
    print(json.dumps(report, indent=1))


def _of_file(path: str, options: list[str], workers):
    """Terms and problem of a file, as `kcrf train` has them."""
    from kcrf_cli.commands.train import TrainArguments, train
    from kcrf_cli.options import read_options
    from kcrf_core.features import DTYPES, fit_terms
    from kcrf_core.objective import ObjectiveTerm
    from kcrf_core.objective.solvers import Observer
    from kcrf_core.training.problems import problem_of

    context = train.make_context("train", [path, *options, "--dump-config"])
    prepared = read_options(TrainArguments, context.params).prepared()
    fitted = fit_terms(prepared.encoding, prepared.dataset, prepared.config, None, workers, Observer())
    terms = [ObjectiveTerm(term.config.clique, 1.0, term.map, term.kept) for term in fitted]
    return terms, problem_of(prepared.encoding, prepared.dataset), DTYPES[prepared.config.training.precision]


if __name__ == "__main__":
    main()
