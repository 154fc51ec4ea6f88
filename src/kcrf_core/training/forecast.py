"""Memory of training at its peak, worked out before it begins by the plans that training carries out.

Data are read, maps are made, weights are estimated: the peak is that of the largest stage. The number of conjunctions
is an estimate.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..config import Config
from ..encoding import Dataset, Encoding
from ..features import DTYPES, DataInMemory, PivotPlan, StoredBasis, TermFootprint, plan_term
from ..maps import PIECE_VALUES, ColumnOrder
from ..model import ShardFolder
from ..objective import MOST_POSITIONS
from ..objective.solvers import PROOF_POINTS, fit_bytes
from ..system import Budget, available_threads, counted, size_text

# Interpreter and libraries, with what their threads allocate; SciPy's where there is more than one-hot features.
PROGRAM, SCIPY = 44 << 20, 24 << 20
# A value of a column as text: a number of the distinct ones; numbers are read into an array of their own and scaled.
BYTES_PER_CELL = 8
# Arrays of a thread that goes through chains: scores, messages, marginals and what is made of them; and those of pairs.
ARRAYS_PER_LABEL, ARRAYS_PER_PAIR = 6, 3

# Arrays on a device for every position, those of them that are as long as labels are many, and those of pairs of
# labels: in a pass, and in a product with the Hessian. Sparse maps have longer indices there than here. Measured on
# NumPy with 3 to 20 labels.
DEVICE_ARRAYS, DEVICE_ARRAYS_PER_LABEL, DEVICE_ARRAYS_PER_PAIR = 25, 14, 5.5
DEVICE_PRODUCT_ARRAYS, DEVICE_PRODUCT_ARRAYS_PER_LABEL, DEVICE_PRODUCT_ARRAYS_PER_PAIR = 20, 30, 9.5
DEVICE_MAP = 3

# Of shards that are not here: labels, and what is made of them for a while; offsets and weights of sequences.
BYTES_PER_OUTLINED_POSITION, BYTES_PER_OUTLINED_SEQUENCE = 12, 40


@dataclass
class Footprint:
    """Bytes of memory that training takes."""

    budget: int
    data: int  # encoded
    reading: int  # released once it is encoded
    terms: tuple[TermFootprint, ...]
    errors: int  # of every position and score column
    chains: int  # of each thread for some chains, kernel values included
    threads: int
    solver: int  # weights, gradients and the steps that are remembered
    program: int
    shards: int = 1
    largest_share: float = 1.0  # of positions, that a shard has
    waiting: int = 0  # shards that are held beside the one that is gone through
    device_chains: int = 0  # of all positions, where a device goes through them

    def __post_init__(self) -> None:
        self.table, self.fixed = sum(term.table for term in self.terms), sum(term.fixed for term in self.terms)
        self.held = min(self.table, max(self.budget - self.fixed, 0))  # of the tables that there is room for
        # Of a map, with the maps of the other terms there; pivots are chosen in a table.
        self.building = max((self.held + self.fixed - term.fixed + term.building for term in self.terms), default=0)
        self.fitting = self.held + self.fixed + self.errors + self.waiting + self.threads * self.chains + self.solver
        self.total = self.program + self.data + max(self.reading, self.building, self.fitting)
        # Of the largest shard on a cluster: its share of maps and errors, and some weights.
        weights = 3 * 8 * sum(term.parameters for term in self.terms if not term.table)
        self.shard = int(self.largest_share * (self.table + self.fixed + self.errors)) + weights
        # On a device: maps besides kernel values, and all, with as many kernel values as the budget has room for.
        self.device_maps = sum(term.fixed * (1 if term.table else DEVICE_MAP) for term in self.terms)
        self.device = self.held + self.device_maps + self.device_chains + self.solver

    def summary(self) -> str:
        """Return one line to print."""
        text = f"memory: about {size_text(self.total)}"
        if self.held < self.table:
            text += (
                f"; {size_text(self.held)} of {size_text(self.table)} kernel values fit into a budget of "
                f"{size_text(self.budget)}, the others are computed again in every pass"
            )
        return text

    def lines(self) -> list[str]:
        """Return lines to print: the total, then its components."""
        out = [self.summary(), f"  program {size_text(self.program)}, data {size_text(self.data)}"]
        out += [f"  term {term.name}: {term.map}, {size_text(term.fixed + term.table)}" for term in self.terms]
        out.append(
            f"  errors {size_text(self.errors)}, weights and solver {size_text(self.solver)}, "
            f"each thread {size_text(self.chains)}"
            + (f", shards held {size_text(self.waiting)}" if self.waiting else "")
        )
        out.append(
            f"  temporary, released before training: {size_text(self.reading)} to read the data, "
            f"{size_text(self.building)} to make maps"
        )
        return out

    def cluster_lines(self) -> list[str]:
        """Return lines to print about the memory of a cluster's workers, for some numbers of them."""
        each = [
            f"{counted(workers, 'worker')} {size_text(-(-self.shards // workers) * self.shard)}"
            for workers in (1, 2, 4, 8, 16, 32, 64)
            if workers <= self.shards
        ]
        return [
            f"on a cluster: {counted(self.shards, 'shard')} of up to {size_text(self.shard)}, and each worker holds "
            f"with {', '.join(each)}"
        ]

    def beside_device(self) -> Footprint:
        """Return the footprint of this process where a device has the kernel values."""
        return replace(self, terms=tuple(replace(term, table=0) for term in self.terms))

    def device_lines(self, name: str) -> list[str]:
        """Return lines to print about the memory of a device."""
        rest = "" if self.held == self.table else f" of {size_text(self.table)}, the others computed again"
        return [
            f"on {name}: about {size_text(self.device)}, beside what its driver takes: "
            f"kernel values {size_text(self.held)}{rest}, other maps {size_text(self.device_maps)}, "
            f"chains {size_text(self.device_chains)}, weights and solver {size_text(self.solver)}"
        ]

    def to_dict(self) -> dict[str, Any]:
        names = "device shards shard total budget program data reading building fitting terms table held errors waiting"
        found = {name: getattr(self, name) for name in (*names.split(), "chains", "threads", "solver")}
        return found | {"terms": [asdict(term) for term in self.terms]}


def footprint(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    basis: StoredBasis | None,
    memory: Budget,
    threads: int | None = None,
) -> Footprint:
    """Forecast the memory of training, with so many threads or all that there are."""
    training, N = config.training, dataset.positions
    Y, itemsize = len(encoding.labels), DTYPES[training.precision].itemsize
    data = _nbytes(dataset.codes, dataset.real, dataset.labels, dataset.lines)
    if dataset.bag is not None:
        data += _nbytes(dataset.bag.data, dataset.bag.indices, dataset.bag.indptr)
    terms, errors, piece, data_in_memory = [], 0, 0, DataInMemory(encoding, dataset)
    for term in config.mapped_terms:
        # For pairs of labels all weights are taken for observed ones: it is an estimate.
        few = training.observed_features and term.clique.axes == 1
        width = Y if few else term.clique.columns(Y)
        plan = plan_term(term, data_in_memory, basis)
        # In single precision in double later, for the proof: of all its points side by side where there are pivots.
        errors += N * width * 8 * (PROOF_POINTS if plan.has_pivots and itemsize < 8 else 1)
        if isinstance(plan, PivotPlan):  # kernel values that are not held, in double precision for a proof at least
            piece = max(piece, 8 * min(PIECE_VALUES, N * plan.size))
        terms.append(plan.footprint(width, itemsize, dataset, few))
    parameters = sum(term.clique.size(Y) for term in config.label_terms) + sum(term.parameters for term in terms)
    cells = N * (dataset.codes.shape[1] + dataset.real.shape[1] + 1)
    reading = cells * BYTES_PER_CELL + _nbytes(dataset.real) + data - _nbytes(dataset.codes, dataset.real)
    pairs = any(term.clique.per_position for term in config.mapped_terms)
    each, of_labels, of_pairs = DEVICE_ARRAYS, DEVICE_ARRAYS_PER_LABEL, DEVICE_ARRAYS_PER_PAIR
    if training.solver == "newton":  # which multiplies with the Hessian
        each, of_labels = DEVICE_PRODUCT_ARRAYS, DEVICE_PRODUCT_ARRAYS_PER_LABEL
        of_pairs = DEVICE_PRODUCT_ARRAYS_PER_PAIR
    there = 8 * N * (each + of_labels * Y + (of_pairs * Y * Y if pairs or config.order > 1 else 0))
    chains = 8 * (ARRAYS_PER_LABEL * Y + (ARRAYS_PER_PAIR * Y * Y if pairs else 0)) * min(N, MOST_POSITIONS)
    name = "proximal" if training.c1 else training.solver
    solver = fit_bytes(parameters, itemsize < 8, name, training.max_passes)
    threads = threads or available_threads()
    one_hot = dataset.bag is None and not dataset.real.shape[1]
    linear = all(term.kernel.type == "linear" for term in config.mapped_terms)
    program = PROGRAM if one_hot and linear and not piece else PROGRAM + SCIPY
    sizes = np.diff(dataset.offsets[dataset.borders])
    share = float(sizes.max(initial=0)) / max(N, 1)
    return Footprint(
        memory.total,
        data,
        reading,
        tuple(terms),
        errors,
        chains + piece,
        threads,
        solver,
        program,
        len(sizes),
        share,
        device_chains=int(there),
    )


def _nbytes(*arrays: np.ndarray | None) -> int:
    return sum(array.nbytes for array in arrays if array is not None)


def shard_footprint(
    folder: ShardFolder, config: Config, basis: StoredBasis | None, memory: Budget, threads: int | None = None
) -> Footprint:
    """Forecast the memory of training on shards: maps of one shard at a time, and weights of all columns.

    How many weights maps have is estimated by how many more the largest shard has than a half of it; with a cut-off,
    about as many again come to be kept with every doubling.
    """
    largest = max(folder.shards, key=lambda shard: shard.positions).load(folder.encoding)
    one = footprint(folder.encoding, largest, config, basis, memory, threads)
    half = footprint(folder.encoding, largest.span(0, max(largest.sequences // 2, 1)), config, basis, memory, threads)
    Y, training = len(folder.encoding.labels), config.training
    empty, parameters = folder.encoding.empty_dataset(), sum(term.clique.size(Y) for term in config.label_terms)
    doublings = np.log2(max(folder.positions / max(largest.positions, 1), 1))
    for term, own, less in zip(config.mapped_terms, one.terms, half.terms, strict=True):
        order = ColumnOrder.of(folder.encoding.inputs(empty, folder.encoding.term_features(term)))
        growth = 2.0 if term.map.cut_off > 1 else max(own.parameters / max(less.parameters, 1), 1)
        grown = int(own.parameters * growth**doublings)
        parameters += min(grown, order.size * Y**term.clique.axes) if term.kernel.type == "linear" else grown
    name = "proximal" if training.c1 else training.solver
    solver = fit_bytes(parameters, DTYPES[training.precision].itemsize < 8, name, training.max_passes)
    outline = folder.positions * BYTES_PER_OUTLINED_POSITION + folder.sequences * BYTES_PER_OUTLINED_SEQUENCE
    each = one.table + one.fixed + one.errors
    waiting = max(min(memory.total, len(folder.shards) * each) - each, 0)
    return replace(one, data=one.data + outline, solver=solver, waiting=waiting)
