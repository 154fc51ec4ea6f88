"""A training run, from encoded data and a configuration to a model with its certificate; a stage is a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from .._lazy import cached_property
from .._version import __version__
from ..chains import NODE, Clique
from ..config import GRADIENT, Config, RulesConfig, variance_text
from ..encoding import Dataset, Encoding, sequence_hashes
from ..features import (
    DTYPES,
    DataInMemory,
    FitContext,
    MappedTerm,
    StoredBasis,
    fit_terms,
    plan_term,
)
from ..files import content_digest
from ..model import LabelRules, Model, digest
from ..objective import Vector, certificates
from ..objective.solvers import (
    CERTIFIED,
    PRUNED,
    SOLVERS,
    Observer,
    Run,
    SolverResult,
    Stage,
    Structure,
    Tolerance,
    Trial,
    moved,
)
from ..scoring import DECODINGS, Decision, choose_yardstick, span_bonuses
from ..system import AUTO, PLUGINS, Workers, counted, hand_back
from .checkpoint import Checkpoint
from .dev import DevReport, DevSet
from .growth import Growing, Growth
from .held_out import DecoderChoice, HoldOut, Splits, default_decoder
from .near_copies import kept_together
from .prior_search import HeldOut, Prior, choose_prior, plan_splits
from .problems import (
    check_partial,
    check_scheme,
    check_sparse,
    forbidden_count,
    forbidden_transitions,
    problem_of,
    rule_name,
    seen_transitions,
)
from .restriction import Restriction
from .structure import check_choice, choose_structure
from .task import Minimiser, Solution, TrainingTask
from .warm_start import WarmStart

# Kernel values in single precision differ by a few parts in a million, so finer certificates need double precision.
SINGLE_TOLERANCE = 1e-5

Found = TypeVar("Found")


@dataclass(frozen=True)
class PruneReport:
    """Sizes of a model before and after pruning."""

    prune: float  # largest change of a score
    weights: int  # number before, and after
    weights_left: int
    bytes_saved: int  # of the file

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Report:
    """Results of a training run, for messages and for the model file.

    >>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
    >>> config = parse_config({"training": {"sigma2": 1.0}})
    >>> with Workers() as workers:
    ...     _, report = train(*fit_encoding(config, read_corpus("sample_data/digits.conll")), config, workers=workers)
    >>> bool(report.result.gap <= 0.001), report.sigma2
    (True, {'node': 1.0, 'edge': 1.0})
    """

    result: SolverResult
    sigma2: dict[str, float]  # of each term, chosen or given
    path: tuple[Trial, ...]  # settings that were tried
    outside: float | None  # possible gain outside the pivots: a bound, or an estimate
    certify: str  # exact (a bound) or estimate
    score_columns: int
    parameters: int
    decoder: DecoderChoice
    metric: str  # one of METRICS, used for choices
    c1: float = 0.0  # weight of the L1 penalty
    nonzero: int | None = None  # parameters that are not zero, with an L1 penalty
    structure: Structure | None = None  # results of the selection of terms, if any
    dev: DevReport | None = None
    growth: Growth | None = None  # pivots that were added during training, if any
    pruned: PruneReport | None = None  # results of pruning, if any
    held_out: HeldOut | None = None  # held-out data that sigma2 was chosen on, if any

    def to_dict(self) -> dict[str, Any]:
        result = self.result
        out = {
            "stop": result.reason,
            "objective": result.value,
            "lower_bound": result.lower if np.isfinite(result.lower) else None,
            "certified_gap": result.gap if np.isfinite(result.gap) else None,
            "certified_nats": result.value - result.lower if np.isfinite(result.lower) else None,
            f"outside_{'bound' if self.certify == 'exact' else 'estimate'}": self.outside,
            "gradient_norm": result.gradient_norm,
            "passes": result.passes,
            "hessian_products": result.products,
            "steps": result.steps,
            "work": result.work,
            "sigma2": {name: variance_text(value) for name, value in self.sigma2.items()},
            "sigma2_path": [asdict(trial) for trial in self.path],
            "score_columns": self.score_columns,
            "parameters": self.parameters,
            "metric": self.metric,
            "decoder": self.decoder.to_dict(),
        }
        if self.c1:
            out |= {"c1": self.c1, "nonzero_parameters": self.nonzero}
        optional = {
            "structure": self.structure,
            "dev": self.dev,
            "growth": self.growth,
            "pruned": self.pruned,
            "held_out": self.held_out,
        }
        return out | {key: value.to_dict() for key, value in optional.items() if value is not None}


def train(
    encoding: Encoding, dataset: Dataset, config: Config, *, workers: Workers, **options: Any
) -> tuple[Model, Report]:
    """Fit a model; `options` are fields of `TrainOptions`.

    `interrupted` is called after every pass; when it returns True, training ends with the best model so far. Before the
    final fit, which an event `Stage` with `final` announces, there is no model yet, and `Interrupted` is raised.

    `certify` chooses how the possible gain outside the pivots is computed: "exact" takes a pass over all pairs of
    positions, "estimate" almost no time. With `select_terms`, the model gets only useful terms of the configuration; a
    term whose gain in P is proven to be less than 1 nat is not. `dev` is scored at the end. `prune` removes
    weights and pivots that change no score of a training position by more than its value. `hold_out` defines
    the groups or folds for choosing sigma2. `checkpoint` is a file that stores the state of the run, and from which
    the run continues; the caller removes it. `min_frequency` removes weights of pairs of a feature and a label whose
    values sum to less, and `seen-transitions` that are rarer.

    >>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
    >>> kernel = {"type": "poly", "degree": 2}
    >>> config = parse_config({"terms": [{"kernel": kernel}, {"type": "edge"}], "training": {"sigma2": 3.0}})
    >>> encoding, dataset = fit_encoding(config, read_corpus("sample_data/pitch_accent.conll").subset(range(100)))
    >>> with Workers() as workers:
    ...     model, report = train(encoding, dataset, config, workers=workers)
    >>> model.labels, report.result.reason
    (('0', '1'), 'certified')
    """
    return TrainingRun(encoding, dataset, config, workers, TrainOptions(**options)).run()


def judge(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    *,
    splits: Splits,
    workers: Workers,
    basis: StoredBasis | None = None,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] | None = None,
    enough: Callable[[], bool] = lambda: False,
    sigma2: Mapping[str, float] | None = None,
    together: bool = False,
    positions: int = 0,
) -> Prior:
    """Fit a configuration to the folds of `splits` and score it on the held-out parts, as `train` would.

    The same search as in `train` finds a sigma2 for terms without one; it begins at `sigma2`. With `together`, all of
    them change together only. Splits belong to the dataset, see `make_splits`, which may be a part of the data, with
    `positions` in all. When `enough` returns True, the search
    ends with the settings that it has, if any; when `interrupted` does, `Interrupted` is raised.

    >>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus
    >>> from kcrf_core.training import judge, make_splits, problem_of
    >>> config = parse_config({})
    >>> encoding, dataset = fit_encoding(config, read_corpus("sample_data/pitch_accent.conll").subset(range(200)))
    >>> with Workers() as workers:
    ...     splits = make_splits(problem_of(encoding, dataset), seed=0)
    ...     found = judge(encoding, dataset, config, splits=splits, workers=workers)
    >>> sorted(found.sigma2), sorted(found.judged.counts), len(found.judged.log_counts)
    (['edge', 'node'], ['posterior', 'viterbi'], 200)
    """
    options = TrainOptions(basis, observer or Observer(), interrupted or (lambda: False))
    run = TrainingRun(encoding, dataset, config, workers, options)
    return run.judge(splits, start=sigma2, together=together, enough=enough, positions=positions)


@dataclass(frozen=True)
class TrainOptions:
    """Options of a run that are not part of the configuration; `train` documents them."""

    basis: StoredBasis | None = None
    observer: Observer = field(default_factory=Observer)
    interrupted: Callable[[], bool] = lambda: False
    certify: str = "estimate"  # or exact
    select_terms: bool = False
    start: WarmStart | None = None
    dev: Dataset | None = None
    prune: float | None = None
    hold_out: HoldOut = field(default_factory=HoldOut)
    checkpoint: Checkpoint | None = None
    min_frequency: float | None = None


class TrainingRun:
    """One run. Its attributes are inputs and do not change; each stage returns its results, `run` passes them on."""

    def __init__(self, encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, options: TrainOptions):
        training, observer = config.training, options.observer
        if training.precision == "single" and (training.tolerance or 1.0) < SINGLE_TOLERANCE:
            observer.note(f"a tolerance below {SINGLE_TOLERANCE:g} is beyond single precision: double is used")
            training = replace(training, precision="double")
            config = replace(config, training=training)
        self._problem = replace(problem_of(encoding, dataset), least_count=options.min_frequency or 0.0)
        check_scheme(encoding, dataset, self._problem, training)
        self._tolerance = Tolerance.of(training.tolerance, self._problem)
        self._hold_out = options.hold_out or HoldOut()
        self._yardstick = choose_yardstick(encoding.span_labels, training.metric)
        # The decoder that is given; None: it is to be chosen.
        decision = Decision(None if training.decode == AUTO else training.decode, span_bonus=training.span_bonus)
        self._decoder = None
        if decision != Decision():
            self._decoder = DecoderChoice(decision.decoder(DECODINGS[0]), span_bonus=training.span_bonus or 0.0)
        if training.span_bonus:
            # Labels without spans are refused.
            span_bonuses(encoding.span_labels, training.span_bonus)
        self._complete = bool(self._problem.complete.all())  # all labels are observed
        hopeless = 0 if options.dev is None else forbidden_count(encoding, options.dev, training)
        if hopeless:
            observer.report(f"dev: {hopeless:,} labels count as wrong, not allowed there by {rule_name(training)}")
        self._encoding, self._dataset, self._basis, self._workers = encoding, dataset, options.basis, workers
        self._config, self.training, self._options, self._observer = config, training, options, observer
        # A term's own sigma2, else that of the training section; None: to be chosen.
        self._given = {term.name: term.sigma2 or training.sigma2 for term in config.terms}
        self._forbidden = forbidden_transitions(encoding, dataset, self._problem, training)
        # Forbidden transitions are among the potentials of the model; other rules are for its labels.
        self._rules = replace(config.rules, forbid=())
        # Errors come before training.
        seen = seen_transitions(self._problem)
        LabelRules.of(config.rules, encoding.labels, seen, odd=encoding.odd_labels)
        if not self._complete:
            check_partial(config, self._problem.convex, options.select_terms, options.certify)
        check_sparse(config, self._complete, options.select_terms)
        if options.select_terms:
            check_choice(config)
        solve, self._checkpoint = SOLVERS[training.solver], options.checkpoint
        if self._checkpoint is not None:
            solve = self._checkpoint.solver(solve)
        self._minimiser = Minimiser(solve, observer, options.interrupted)
        if workers.executor is not None:
            observer.note(f"cluster: {counted(len(self._problem.borders) - 1, 'shard')}")

    def run(self) -> tuple[Model, Report]:
        """Run all stages, one after another."""
        if self._checkpoint is not None:
            self._checkpoint.begin(self._about(), self._workers, self._observer)
        # Stages that replace maps assign `task` again, which releases the memory of the old maps.
        task = self.fit_terms()
        task, structure = self.choose_terms(task)
        prior = self._once(partial(self.choose_sigma2, task))
        task = self.settle(task)
        self._minimiser.check_interrupted()
        self._observer.tell(Stage("final fit", final=True))
        run = Run(self._tolerance, self.training.max_passes, None, self._minimiser.interrupted)
        theta = self.starting_point(task, prior, run)
        run.observe = self._observer.tell
        solution, growth = self.fit(task, prior, theta, run)
        mapped = [(j, term) for j, term in enumerate(solution.task.terms) if isinstance(term, MappedTerm)]
        objective, found = solution.objective, solution.result.theta
        precision = self.training.precision
        terms = tuple(term.to_model(objective.stored_weights(found, j), precision) for j, term in mapped)
        model = Model(
            self._encoding,
            terms,
            objective.engine.potentials(found),
            rules=None if self._rules == RulesConfig() else self._rules,
            seen=seen_transitions(self._problem),
            trained_on=self.sequence_hashes(),
        )
        dev = None if self._options.dev is None else DevSet(self._options.dev, self._yardstick, self._workers)
        decoder = self.choose_decoder(model, prior, dev)
        model = replace(model, decode=decoder.decode, span_bonus=decoder.span_bonus)
        model, solution, pruned = self.prune(model, solution)
        if self.training.c1:
            model = replace(model, terms=tuple(term.compacted() for term in model.terms))
        outside, certify = self.outside(solution, growth if pruned is None else None)
        report = Report(
            result=solution.result,
            sigma2=prior.sigma2,
            path=prior.tried,
            outside=outside,
            certify=certify,
            score_columns=solution.objective.columns,
            parameters=solution.objective.size,
            c1=self.training.c1 or 0.0,
            nonzero=solution.objective.nonzero(solution.result.theta) if self.training.c1 else None,
            structure=structure,
            dev=None if dev is None else dev.report(model),
            growth=growth,
            pruned=pruned,
            held_out=prior.held_out,
            decoder=decoder,
            metric=self._yardstick.name,
        )
        names = [term.config.name for term in solution.task.terms]
        config = replace(self._config, terms=tuple(term for term in self._config.terms if term.name in names))
        reported = report.to_dict()
        data = {name: getattr(self._dataset, name) for name in ("sequences", "positions")}
        given = {name: value for name, value in self._beside().items() if value not in (None, False, "estimate")}
        info = {"config": config.to_stored(), "digest": self.data_digest(), "data": data, "options": given}
        info |= {"version": __version__, "training": reported} | SOLVERS.origin(config.training.solver)
        return replace(model, info=info), report

    def _beside(self) -> dict[str, Any]:
        """Return options that are not part of the configuration, data and files of kcrf by their digests."""
        options, wishes = self._options, self._hold_out
        arrays = {"group": wishes.groups, "folds_file": wishes.folds}
        return {
            **{name: getattr(options, name) for name in ("certify", "select_terms", "prune")},
            **{key: None if own is None else content_digest({}, {"": own}) for key, own in arrays.items()},
            "block": wishes.block,
            "dev": None if options.dev is None else digest(options.dev),
            "init": None if options.start is None else options.start.model.digest,
            "basis": None if self._basis is None else content_digest(*self._basis.pack()),
        }

    def _about(self) -> dict[str, Any]:
        """Return everything that the bytes of the model depend on, for comparison with a checkpoint."""
        device = self._workers.device
        return {
            **self._config.to_dict(),
            **self._beside(),
            "engine": "threads" if device is None else device.backend.name,  # a cluster gives the same bytes
            **{f"plug-in {one.name}": one.digest for one in PLUGINS.values()},
            "data": self.data_digest(),  # last, since it depends on the encoding
        }

    @cached_property
    def hold_out(self) -> HoldOut:
        """Sequences that are held out together: as users say, else near copies."""
        data, wanted = self._dataset, self.training.near_copies
        return kept_together(self._hold_out, data.hashes, data.offsets, wanted, tell=self._observer.report)

    def _once(self, stage: Callable[[], Found]) -> Found:
        """Return the results of a stage, from the checkpoint if that has them."""
        return stage() if self._checkpoint is None else self._checkpoint.stage(stage)

    def fit_terms(self) -> TrainingTask:
        """Fix the kernel and the map of each term."""
        config, training = self._config, self.training
        # Terms and sigma2 are chosen on more pivots than a growing basis begins with.
        rehearse = self._options.select_terms or None in self._given.values()
        hand_back()  # the memory of reading and encoding
        terms = fit_terms(self._encoding, self._dataset, config, self._basis, self._workers, self._observer, rehearse)
        beyond = [term.config.name for term in terms if term.map is not None and term.map.beyond_single]
        if beyond and training.precision == "single":
            which = f"term {beyond[0]}" if len(beyond) == 1 else f"terms {', '.join(beyond)}"
            self._observer.note(f"{which}: single precision does not tell all pivots apart: double is used")
            training = self.training = replace(training, precision="double")
            self._config = replace(config, training=training)
            terms = [term if term.map is None else replace(term, map=term.map.in_double(held=True)) for term in terms]
        restriction = self.restriction
        restricted = restriction.terms(terms, self._problem, self._workers, self._observer)
        hand_back()
        about = self._workers, DTYPES[training.precision], self._forbidden, training.c1 or 0.0, restriction
        return TrainingTask(self._problem, restricted, *about)

    @property
    def restriction(self) -> Restriction:
        """Settings that take weights and transitions from the data."""
        return Restriction(self._encoding, self._dataset, self._config, self._options.min_frequency)

    def choose_terms(self, task: TrainingTask) -> tuple[TrainingTask, Structure | None]:
        """Leave out terms that are not useful, with `select_terms`."""
        structure = None
        if self._options.select_terms:
            about = self._given, self.training.seed, self._minimiser, self.hold_out
            structure = self._once(partial(choose_structure, task, *about))
            task = replace(task, terms=task.present(structure.chosen))
        if all(term.clique.axes == 1 for term in task.terms):
            self._observer.report("no edge term: labels are taken as independent of each other")
        if task.problem.label_count == 1:
            self._observer.report(f"all labels are '{self._encoding.labels[0]}': the model will say nothing else")
        elif task.problem.label_count == 2 and any(term.config.clique is NODE for term in task.terms):
            self._observer.note("two labels: one score column")
        return task, structure

    def choose_sigma2(self, task: TrainingTask) -> Prior:
        """Find a prior variance for each term that has none, from an initial model or on held-out sequences."""
        given = {term.config.name: self._given[term.config.name] for term in task.terms}
        if self._options.start is not None:
            given |= self._options.start.known_sigma2(task.terms, given, self._observer)
        free = sum(value is None for value in given.values())
        if not free:
            return choose_prior(task, given, None, self._yardstick, self._minimiser)
        reach = max(self._encoding.reach([name for term in task.terms for name in term.features]))
        splits = plan_splits(task, free, self.hold_out, self.training.seed, reach)
        about = given, splits, self._yardstick, self._minimiser
        return choose_prior(task, *about, decoder=self._decoder, positions=self._problem.positions)

    def judge(self, splits: Splits, **how: Any) -> Prior:
        """Run the first stages, and score them on held-out data; `how` are arguments of `choose_prior`."""
        self._minimiser.check_interrupted()
        task = self.fit_terms()
        self._minimiser.check_interrupted()
        about = self._given, splits, self._yardstick, self._minimiser
        return choose_prior(task, *about, decoder=self._decoder, judged=True, **how)

    def settle(self, task: TrainingTask) -> TrainingTask:
        """Return the task of the final fit, with the first pivots of a basis that grows."""
        if _grows(task):
            data = DataInMemory(self._encoding, self._dataset)
            context, terms = FitContext(data, self._config, self._workers, self._observer), list(task.terms)
            for j, term in enumerate(terms):
                if term.basis is not None and term.config.map.select == GRADIENT and term.growing is None:
                    terms[j] = plan_term(term.config, data, None).fit(context)
            return replace(task, terms=tuple(terms))
        return task

    def starting_point(self, task: TrainingTask, prior: Prior, run: Run) -> Vector:
        """Return initial parameters: those of an earlier model, of the search for sigma2, or zero."""
        objective, start = task.objective(prior.sigma2), self._options.start
        # The first pivots of a basis that grows are not those that sigma2 was searched with.
        theta = objective.vectors.zeros() if prior.theta is None or _grows(task) else prior.theta
        if start is not None:
            return start.choose(self._encoding, task.terms, objective, theta, self._observer)
        if objective.convex:
            return theta
        # P of the sequences that have all labels is convex: start at its optimum.
        which = np.flatnonzero(task.problem.complete)
        if not len(which):
            self._observer.note("no sequence has all its labels: training begins at zero")
            return theta
        complete = task.subset(which)
        self._observer.tell(Stage("complete sequences"))
        result = self._minimiser.solve(complete.objective(prior.sigma2), theta, run)
        what = "optimum" if result.reason == CERTIFIED else "best point found"
        self._observer.note(
            f"training begins at the {what} of {counted(len(which), 'sequence')} with all labels, "
            f"{counted(result.passes, 'pass', 'passes')}"
        )
        run.go_on(complete.problem.positions / max(task.problem.positions, 1))
        return result.theta

    def fit(self, task: TrainingTask, prior: Prior, theta: Vector, run: Run) -> tuple[Solution, Growth | None]:
        """Minimise P, with a growing set of pivots for `select: gradient`."""
        self._observer.tell(Stage("training"))
        if _grows(task):
            data = DataInMemory(self._encoding, self._dataset)
            context = FitContext(data, self._config, self._workers, Observer())
            growing = Growing(task, prior.sigma2, theta, context, self._minimiser, run)
            solution, growth = growing.until_enough()
        else:
            objective = task.objective(prior.sigma2)
            solution, growth = Solution(task, objective, self._minimiser.solve(objective, theta, run)), None
        hand_back()
        return solution, growth

    def choose_decoder(self, model: Model, prior: Prior, dev: DevSet | None) -> DecoderChoice:
        """Return the given decoder, or by held-out data, or, without any, that of the initial model or the default."""
        if self._decoder is not None:
            return self._decoder
        if prior.held_out is not None:
            return prior.held_out.decoder
        if dev is not None:
            return dev.decoder(model)
        if self._options.start is None:
            return DecoderChoice(default_decoder(self._yardstick))
        initial = self._options.start.model
        return DecoderChoice(initial.decode, span_bonus=initial.span_bonus)

    def prune(self, model: Model, solution: Solution) -> tuple[Model, Solution, PruneReport | None]:
        """Drop weights and pivots that change no score by more than `prune`, and evaluate P without them."""
        prune, objective, result = self._options.prune, solution.objective, solution.result
        if prune is None:
            return model, solution, None
        self._observer.tell(Stage("pruning"))
        blocks = {j: objective.block(result.theta, j) for j in range(len(objective.terms))}
        terms = []
        for j, term in zip(objective.mapped, model.terms, strict=True):
            inputs = self._encoding.inputs(self._dataset, term.features).seen()
            thinned = term.pruned(inputs, prune / len(model.terms), self._workers)
            fitted = solution.task.terms[j]
            assert isinstance(fitted, MappedTerm)
            blocks[j] = objective.block_of(fitted.map_weights(thinned), j)
            terms.append(thinned.compacted())
        smaller = replace(model, terms=tuple(terms))
        report = PruneReport(
            prune=prune,
            weights=sum(term.nonzero for term in model.terms),
            weights_left=sum(term.nonzero for term in terms),
            bytes_saved=model.file_size - smaller.file_size,
        )
        result = moved(result, objective, objective.vector(blocks), self._tolerance, PRUNED)
        return smaller, replace(solution, result=result), report

    def outside(self, solution: Solution, growth: Growth | None) -> tuple[float | None, str]:
        """Return the possible gain outside the pivots, and "estimate" or "exact"."""
        task, objective, certify = solution.task, solution.objective, self._options.certify
        if growth is not None and all(term.growing is not None for term in task.terms if term.basis is not None):
            proven = growth.rounds[-1].bound
            if proven is not None:
                return proven, "exact"
        if not objective.convex:  # nothing is proven about it
            return None, certify
        if self._minimiser.interrupted():
            certify = "estimate"  # the bound takes a pass over all pairs of positions
        theta, gain = solution.result.theta, 0.0
        if certify == "exact":
            objective = objective.in_double()

        @cache
        def errors(clique: Clique) -> np.ndarray:
            return objective.errors(theta, clique)

        for term, sigma2 in zip(task.terms, objective.sigma2, strict=True):
            if term.basis is None or term.map is None:
                continue  # nothing is outside an explicit map
            m = errors(term.config.clique)
            if certify == "exact":
                inputs = self._encoding.inputs(self._dataset, term.features).seen()
                gain += certificates.bound(m, term.map, inputs, term.basis.kernel, sigma2, self._workers)
            else:
                gain += certificates.estimate(m, term.map, sigma2, self._workers)
        if certify == "exact":
            here = objective.proven(theta)
            gain += here.value - here.lower
        return gain, certify

    def data_digest(self) -> str:
        return digest(self._dataset)

    def sequence_hashes(self) -> np.ndarray | None:
        """Return the hashes of sequences that have weight, ascending; None if they are not known, or not wanted."""
        data = self._dataset
        if data.hashes is None or self.training.omit_hashes:
            return None
        return np.unique(sequence_hashes(data.hashes, data.offsets)[self._problem.weights > 0])


def _grows(task: TrainingTask) -> bool:
    """Return True if training adds pivots to some term."""
    return any(term.config.map.select == GRADIENT for term in task.terms)
