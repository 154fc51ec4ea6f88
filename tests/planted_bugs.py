"""Plant bugs, one at a time, and check that tests catch them: `python tests/planted_bugs.py [--named] [PATH...]`.

There is a bug in every package of kcrf_core and kcrf_cli, in every subcommand and in every file of the C library, each
a small change of one file: a sign, an off-by-one, a wrong default, a dropped check. It is made in a scratch copy of the
checkout, Cython and C are compiled again there, and the tests named beside it are run, then all everyday tests where
those pass. A table says which test caught which bug; the exit code is 1 if one was not caught. With PATHs only bugs in
files whose names contain one of them are planted; with --named only the tests named beside a bug are run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# `make test` leaves out what is marked so, where anything is.
EVERYDAY = ("-m", "not slow") if '"slow: ' in (ROOT / "pyproject.toml").read_text(encoding="utf-8") else ()
NOT_COPIED = (".git", ".venv", "demo", "dist", "__pycache__", ".pytest_cache", ".ruff_cache", "debug", "sanitize")
COMPILED = (".pyx", ".c", ".h")


@dataclass(frozen=True)
class Bug:
    """A change of a source file, and the tests that are likely to catch it."""

    path: str  # below src
    old: str  # stands there once
    new: str
    tests: str  # files below tests, or tests in them, separated by spaces


BUGS = [
    # Subcommands.
    Bug(
        "kcrf_cli/commands/audit.py",
        "if not run.new_labels:",
        "if run.new_labels:",
        "cli/test_audit_command.py",
    ),
    Bug(
        "kcrf_cli/commands/crossval.py",
        "if is_encoded(self.data):",
        "if is_encoded(self.data) and self.grid:",
        "cli/test_crossval.py::test_encoded_data_is_refused",
    ),
    Bug(
        "kcrf_cli/commands/curve.py",
        'if run.output not in (None, "-"):',
        "if run.output is None:",
        "cli/test_curve.py::test_the_table_and_the_results_agree",
    ),
    Bug(
        "kcrf_cli/commands/evaluate.py",
        '.count("-") > 1',
        '.count("-") > 2',
        "cli/test_evaluate.py::test_options_that_contradict_each_other",
    ),
    Bug(
        "kcrf_cli/commands/guarantee.py",
        "round(1 - run.sets, 12)",
        "run.sets",
        "cli/test_guarantee.py",
    ),
    Bug(
        "kcrf_core/scoring/guarantees.py",
        "level * (items.sequences + 1) - 1 + 1e-12",
        "level * items.sequences + 1e-12",
        "core/test_guarantees.py",
    ),
    Bug(
        "kcrf_cli/commands/export.py",
        'if program != "runtime":',
        'if program == "runtime":',
        "cli/test_exchange_commands.py cli/test_export.py",
    ),
    Bug(
        "kcrf_cli/commands/featurize.py",
        "range(min(run.show, dataset.positions))",
        "range(min(run.show, dataset.positions - 1))",
        "cli/test_commands.py::test_featurize_shows_no_more_positions_than_there_are",
    ),
    Bug(
        "kcrf_cli/commands/import_.py",
        "os.path.getsize(run.output)",
        "os.path.getsize(run.model)",
        "cli/test_exchange_commands.py",
    ),
    Bug(
        "kcrf_cli/commands/inspect.py",
        '"fewest_positions": min(sizes)',
        '"fewest_positions": max(sizes)',
        "cli/test_shards.py::test_a_folder_tells_what_it_holds",
    ),
    Bug(
        "kcrf_cli/commands/next.py",
        "if batch.closed:",
        "if not batch.closed:",
        "cli/test_next.py",
    ),
    Bug(
        "kcrf_cli/commands/select_basis.py",
        "float(term.curve[-1])",
        "float(term.curve[0])",
        "cli/test_commands.py::test_select_basis_json",
    ),
    Bug("kcrf_cli/commands/tag.py", "and not self.force", "and self.force", "cli/test_tag_options.py"),
    Bug(
        "kcrf_cli/commands/train.py",
        "reason != CERTIFIED",
        "reason == CERTIFIED",
        "cli/test_commands.py::test_max_passes_is_a_warning_and_strict_an_error",
    ),
    Bug(
        "kcrf_cli/commands/tune.py",
        "journal, run.journal is None,",
        "journal, run.journal is not None,",
        "cli/test_tune.py::test_what_is_found_can_be_trained",
    ),
    Bug(
        "kcrf_cli/options.py",
        '"h": 3600',
        '"h": 360',
        "cli/test_tune.py::test_times_are_read_as_people_write_them",
    ),
    # Other packages of the command layer.
    Bug("kcrf_cli/main.py", "errors.FileFormatError: 4", "errors.FileFormatError: 3", "cli/test_errors.py"),
    Bug("kcrf_cli/report/html.py", "if row != column else", "if row == column else", "cli/test_html_report.py"),
    Bug(
        "kcrf_cli/io/files.py",
        "os.path.samefile(path, given)",
        "path == given",
        "cli/test_errors.py::test_inputs_are_never_overwritten",
    ),
    Bug(
        "kcrf_cli/io/events.py",
        "(value if math.isfinite(value) else None for value",
        "(value for value",
        "cli/test_running.py::test_a_log_tells_everything",
    ),
    Bug(
        "kcrf_cli/render/tagged.py",
        "best.scores, strict=True), 1)",
        "best.scores, strict=True))",
        "cli/test_tag_options.py",
    ),
    # Packages of the core.
    Bug("kcrf_core/selection/evidence.py", "others[rows, gold] = -1", "others[rows, gold] = 0.5", "core/test_audit.py"),
    Bug("kcrf_core/chains/_best.pyx", "elif t - 1 < entry", "elif t < entry", "core/test_nbest.py"),
    Bug(
        "kcrf_core/cluster/engines.py",
        "not ipaddress.ip_address(host).is_loopback",
        "ipaddress.ip_address(host).is_loopback",
        "cli/test_cluster_training.py::test_other_hosts_without_certificates",
    ),
    Bug(
        "kcrf_core/config/values.py", "range(least, most + 1, size)", "range(least, most, size)", "core/test_config.py"
    ),
    Bug(
        "kcrf_runtime/texts.h",
        "digits > 900000000000000ull",
        "digits > 9000000000000000ull",
        "core/test_reading.py::test_numbers_are_those_of_python",
    ),
    Bug("kcrf_core/corpora/conllu.py", "np.unique(begins)", "begins", "core/test_conllu.py"),
    Bug(
        "kcrf_core/encoding/features.py",
        "symbol = size + reach + distance - 1",
        "symbol = size + reach + distance",
        "core/test_encoding.py",
    ),
    Bug(
        "kcrf_core/files/kinds.py",
        "is_folder(path) or is_archive(path)",
        "is_folder(path)",
        "cli/test_crossval.py::test_encoded_data_is_refused",
    ),
    Bug("kcrf_core/selection/curves.py", " + exact[-1] - means[-1]", "", "core/test_curves.py"),
    Bug("kcrf_core/selection/cross_validation.py", "contents[:, -1] = 1", "contents[:, 0] = 1", "core/test_folds.py"),
    Bug(
        "kcrf_core/device/packed_chains.py",
        "first[sequence] + step, last[sequence] - step",
        "first[sequence] + step, last[sequence] - step // 2",
        "core/test_device_engine.py",
    ),
    Bug(
        "kcrf_core/config/options.py",
        "1.0 / (2.0 * c2) if c2",
        "1.0 / c2 if c2",
        "core/test_estimator.py::test_c2_is_another_name_for_sigma2",
    ),
    Bug(
        "kcrf_core/estimator/estimator.py",
        "np.ones(len(X)) if sample_weight is None",
        "np.ones(len(X)) if sample_weight is not y",
        "core/test_estimator.py",
    ),
    Bug("kcrf_core/features/fitted.py", "by_labels.mean(axis=1", "by_labels.mean(axis=0", "core/test_warm_start.py"),
    Bug("kcrf_core/kernels/_kernels.pyx", "if rows[i, c] < 0:", "if rows[i, c] <= 0:", "core/test_kernels.py"),
    Bug(
        "kcrf_core/kernels/plain.py",
        "return 2 * self.gamma, -self.gamma, 0.0",
        "return self.gamma, -self.gamma, 0.0",
        "core/test_kernels.py",
    ),
    Bug("kcrf_core/maps/explicit.py", "if self.rows.zeros is not None:", "if False:", "core/test_observed_features.py"),
    Bug(
        "kcrf_core/maps/_conjunctions.pyx",
        "if keys[slots[place]] == key:",
        "if keys[slots[place]] >= key:",
        "core/test_conjunctions.py",
    ),
    Bug(
        "kcrf_core/maps/partition_sums.py",
        "max(initial=-1)) + 1 for border",
        "max(initial=-1)) for border",
        "core/test_composed_engine.py core/test_repeated_maps.py",
    ),
    Bug("kcrf_core/model/novelty.py", "np.maximum(out[rows], ", "np.minimum(out[rows], ", "core/test_novelty.py"),
    Bug("kcrf_core/features/linear.py", "where(influence > low)", "where(influence > high)", "core/test_pruning.py"),
    Bug(
        "kcrf_core/objective/_passes.pyx",
        "errors[t] = (node[2 * t] - node[2 * t + 1]) * half",
        "errors[t] = (node[2 * t] - node[2 * t + 1])",
        "core/test_sparse_weights_training.py",
    ),
    Bug(
        "kcrf_core/objective/solvers/proximal.py",
        "(objective, alone.places[model.columns], curvature)",
        "(objective, np.sort(alone.places[model.columns]), curvature)",
        "core/test_sparse_weights_training.py",
    ),
    Bug(
        "kcrf_core/chains/_samples.pyx",
        "factor = &onto[y, 0]",
        "factor = &into[y, 0]",
        "core/test_sampled_hessian.py",
    ),
    Bug(
        "kcrf_core/maps/_sparse.pyx",
        "out[differ[n], place] -= <float>",
        "out[differ[n], place] += <float>",
        "core/test_sampled_hessian.py",
    ),
    Bug(
        "kcrf_core/objective/solvers/sampled_model.py",
        "matrix[np.ix_(others, others)] += ",
        "matrix[np.ix_(others, others)] -= ",
        "core/test_sampled_hessian.py",
    ),
    Bug(
        "kcrf_core/system/cholesky.py", "rows.start == block.stop", "rows.stop == len(matrix)", "core/test_triangles.py"
    ),
    Bug(
        "kcrf_core/objective/solvers/bundle.py",
        "slopes, near = thresholds.copy(), ",
        "slopes, near = 0 * thresholds, ",
        "core/test_sparse_weights_training.py",
    ),
    Bug(
        "kcrf_core/objective/solvers/bordered.py",
        "np.where(self._joined, vectors[:, self._parameters], 0.0)",
        "np.zeros((len(vectors), len(self._parameters)))",
        "core/test_sampled_hessian.py",
    ),
    Bug("kcrf_core/objective/engine.py", "before.kept[chosen]", "chosen", "core/test_composed_engine.py"),
    Bug(
        "kcrf_core/objective/solvers/working_set.py",
        "np.where(active[changed[part]], 1, -1)",
        "np.where(active[changed[part]], 1, 1)",
        "core/test_working_set.py",
    ),
    Bug(
        "kcrf_core/objective/objective.py",
        "(2 * self.sigma2)).sum()",
        "self.sigma2).sum()",
        "core/test_sparse_weights_training.py",
    ),
    Bug("kcrf_core/pycrfsuite/trainer.py", "-1.0 - abs(least)", "1.0", "core/test_pycrfsuite.py"),
    Bug(
        "kcrf_core/scoring/spans.py",
        "if rules.closed:",
        "if not rules.closed:",
        "core/test_evaluation.py",
    ),
    Bug(
        "kcrf_core/objective/solvers/newton.py", "vectors.negated(now.gradient)", "now.gradient", "core/test_solvers.py"
    ),
    Bug(
        "kcrf_core/runtime/characters.py",
        "TRANSFORMS.index(transform)",
        'TRANSFORMS.index("lower")',
        "core/test_runtime.py",
    ),
    Bug("kcrf_core/system/memory.py", "self._left += count", "self._left -= count", "core/test_memory.py"),
    Bug(
        "kcrf_core/exchange/crfpp_models.py",
        "np.where(pair, Y * Y, Y)",
        "np.where(pair, Y, Y)",
        "core/test_exchange.py",
    ),
    Bug(
        "kcrf_core/training/folds.py",
        "restriction.terms(sample.terms, sample.problem,",
        "restriction.terms(sample.terms, held.problem,",
        "core/test_held_out_refits.py",
    ),
    Bug("kcrf_core/training/restriction.py", "& seen & seen[:, None]", "", "core/test_held_out_refits.py"),
    Bug(
        "kcrf_core/encoding/cut_offs.py",
        "len(values)) < least",
        "len(values)) <= least",
        "core/test_held_out_refits.py",
    ),
    Bug("kcrf_core/training/held_out.py", "error if name == BONUS else -error", "0", "core/test_decoder_choice.py"),
    Bug(
        "kcrf_core/scoring/costs.py",
        "np.ones(len(labels), dtype=bool)",
        "np.zeros(len(labels), dtype=bool)",
        "core/test_costs.py",
    ),
    Bug(
        "kcrf_core/selection/space.py",
        "if 0 <= place < len(self.values)",
        "if 0 < place < len(self.values)",
        "core/test_tuning_search.py core/test_tuning.py",
    ),
    # The C library.
    Bug("kcrf_runtime/decode.c", "begin + C->scores[first_of(C, p)] : begin", "begin : begin", "core/test_runtime.py"),
    Bug("kcrf_runtime/features.c", "seen++ == length", "++seen == length", "core/test_runtime.py"),
    Bug("kcrf_runtime/model.c", "header.size != model->size", "header.size < model->size", "core/test_runtime.py"),
]


class Scratch:
    """A copy of the checkout, with at most one bug at a time."""

    def __init__(self, folder: Path):
        self.root = folder / "kcrf"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        # A bug of as many characters as what it replaces, within a second, would stay in bytecode.
        self.environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=self.environment, capture_output=True, text=True
        )

    def test(self, *arguments: str) -> str | None:
        """The first test that fails, and None where all pass."""
        done = self.run("-m", "pytest", "-x", "-q", *EVERYDAY, "-p", "no:cacheprovider", "--tb=no", *arguments)
        if done.returncode == 0:
            return None
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if found is None:
            raise SystemExit(f"pytest {' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return found[1].removeprefix("tests/")

    def compile(self) -> None:
        done = self.run("setup.py", "--quiet", "build_ext", "--inplace")
        if done.returncode != 0:
            raise SystemExit(f"the core cannot be compiled: {done.stderr[-2000:]}")

    def caught_by(self, bug: Bug, named: bool) -> str | None:
        """The test that fails with the bug, None where all everyday tests pass, or the named ones alone."""
        path = self.root / "src" / bug.path
        text = path.read_text(encoding="utf-8")
        assert text.count(bug.old) == 1, f"{bug.path}: '{bug.old}' stands there {text.count(bug.old)} times"
        compiled = path.suffix in COMPILED
        # A header is in more than one module.
        module = {".c": "_runtime", ".h": "*", ".pyx": path.stem}.get(path.suffix)
        built = (self.root / "src").rglob(f"{module}.*.so") if compiled else ()
        libraries = [(each, each.read_bytes()) for each in built]
        path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        try:
            if compiled:
                self.compile()
            test = self.test(*(f"tests/{name}" for name in bug.tests.split()))
            return test if named or test is not None else self.test("-n", "auto")
        finally:
            path.write_text(text, encoding="utf-8")
            for library, content in libraries:  # a mapped file is not written to
                library.unlink()
                library.write_bytes(content)


def main(arguments: list[str]) -> int:
    wanted = [part for part in arguments if part != "--named"]
    bugs = [bug for bug in BUGS if not wanted or any(part in bug.path for part in wanted)]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="kcrf-bugs-") as folder:
        scratch = Scratch(Path(folder))
        if any(bug.path.endswith(COMPILED) for bug in bugs):
            scratch.compile()  # so that later a single module is
        for bug in bugs:
            test = scratch.caught_by(bug, "--named" in arguments)
            if test is not None and scratch.test("tests/" + test.partition("[")[0]) is not None:
                raise SystemExit(f"{test} fails without the bug, too")
            missed += test is None
            change = f"{bug.old.strip()} -> {bug.new.strip()}".split("\n")[0]
            print(f"{bug.path:42} {change:90.90} {test or 'NOT CAUGHT'}", flush=True)
    print(f"{len(bugs) - missed} of {len(bugs)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
