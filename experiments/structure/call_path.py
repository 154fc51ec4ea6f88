"""Measure how far a reader has to jump to follow one training run through the code.

    python experiments/structure/call_path.py [--src DIR] [--most N] [--path]

Runs `kcrf train sample_data/pitch_accent.conll` with two threads, writes down each Python function of kcrf when it is
first called, in any thread, and prints figures of that order:

    functions        `def` and `async def` of src; no lambdas, comprehensions or class bodies, and no calls made while a
                     module of kcrf is being imported (decorators, registrations)
    stays in a file  runs of consecutive functions in one file
    returns          runs in a file, or package, that had been left before
    packages         kcrf_core.x and kcrf_cli.x; modules outside of those belong to kcrf_core or kcrf_cli itself

and then the lines of each package (.py, .pyx, .pxd, .h), the pairs of packages between which most returns happen, and
those that would save most returns if they were one package.
Two threads may call functions for the first time in either order, so figures vary by one or two from run to run.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import io
import itertools
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COUNTED = (".py", ".pyx", ".pxd", ".h")


class Function(NamedTuple):
    """A function of src, with its file relative to src."""

    file: Path
    name: str

    @property
    def package(self) -> str:
        return package_of(self.file)


class Stay(NamedTuple):
    """Consecutive functions of one place, a file or a package."""

    place: str
    first: Function
    is_return: bool


def package_of(file: Path) -> str:
    """Return the package of a file: its first two folders, or the first one where it has no more."""
    return ".".join(file.parts[:-1][:2])


@contextlib.contextmanager
def first_calls(src: Path) -> Iterator[dict[CodeType, None]]:
    """Collect code objects below `src` in the order of their first call, in all threads that start meanwhile."""
    found: dict[CodeType, None] = {}
    below = f"{src}/"

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in found or not code.co_filename.startswith(below):
            return
        caller: FrameType | None = frame
        while caller is not None:
            if caller.f_code.co_name == "<module>" and caller.f_code.co_filename.startswith(below):
                return
            caller = caller.f_back
        found[code] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@functools.cache
def definitions(file: str) -> frozenset[tuple[str, int]]:
    """Return the name and first line, decorators included, of each `def` in a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return frozenset(
        (node.name, min(line.lineno for line in (node, *node.decorator_list)))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def train(src: Path) -> list[Function]:
    """Return the functions of a training run in the order of their first call."""
    sys.path.insert(0, str(src))
    data = str(ROOT / "sample_data" / "pitch_accent.conll")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stderr(io.StringIO()) as messages,
        first_calls(src) as found,
    ):
        from kcrf_cli.main import main

        try:
            main(["train", data, "--threads", "2", "-o", f"{folder}/model.npz"])
        except SystemExit as end:
            if end.code:
                sys.__stderr__.write(messages.getvalue())
                raise
    return [
        Function(Path(code.co_filename).relative_to(src), code.co_name)
        for code in found
        if (code.co_name, code.co_firstlineno) in definitions(code.co_filename)
    ]


def stays(functions: Sequence[Function], place_of: Callable[[Function], str]) -> list[Stay]:
    """Return the runs of consecutive functions in one place."""
    found: list[Stay] = []
    left: set[str] = set()
    for function in functions:
        place = place_of(function)
        if not found or found[-1].place != place:
            found.append(Stay(place, function, place in left))
            left.add(place)
    return found


def merged_savings(functions: Sequence[Function]) -> list[tuple[int, tuple[str, str]]]:
    """Return how many returns each two packages would save as one, the most first."""

    def returns(pair: tuple[str, ...]) -> int:
        places = stays(functions, lambda function: pair[0] if function.package in pair else function.package)
        return sum(stay.is_return for stay in places)

    now, packages = returns(("",)), sorted({function.package for function in functions})
    savings = [(now - returns(pair), pair) for pair in itertools.combinations(packages, 2)]
    return sorted(savings, key=lambda saving: -saving[0])


def lines_by_package(src: Path) -> Counter[str]:
    """Return the number of lines in the source files of each package."""
    counts: Counter[str] = Counter()
    for path in sorted(src.rglob("*")):
        if path.suffix in COUNTED:
            counts[package_of(path.relative_to(src))] += len(path.read_bytes().splitlines())
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the path of one training run through the code.")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the source folder, default: of this checkout")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="pairs of packages to show, default: 20")
    parser.add_argument("--path", action="store_true", help="print the functions, in the order of their first call")
    arguments = parser.parse_args()
    src = arguments.src.resolve()

    functions = train(src)
    in_files = stays(functions, lambda function: str(function.file))
    in_packages = stays(functions, lambda function: function.package)
    if arguments.path:
        for function in functions:
            print(f"{function.file}: {function.name}")
    print(f"{len(functions):6,} functions")
    print(f"{len({function.file for function in functions}):6,} files")
    print(f"{len({function.package for function in functions}):6,} packages on the way")
    print(f"{len(in_files):6,} stays in a file")
    print(f"{sum(stay.is_return for stay in in_files):6,} returns to a file already left")
    print(f"{len(in_packages):6,} stays in a package")
    print(f"{sum(stay.is_return for stay in in_packages):6,} returns to a package already left")

    lines = lines_by_package(src)
    print(f"\n{lines.total():6,} lines in {len(lines)} packages")
    for package, count in lines.most_common():
        print(f"{count:6,} {100 * count / lines.total():5.1f} %  {package}")

    names: dict[tuple[str, str], list[str]] = {}
    for before, stay in itertools.pairwise(in_packages):
        if stay.is_return:
            names.setdefault((before.place, stay.place), []).append(f"{stay.first.file.stem}.{stay.first.name}")
    print("\nreturns, by the package that was left and the one that was entered again")
    for (left, entered), entries in sorted(names.items(), key=lambda item: -len(item[1]))[: arguments.most]:
        print(f"{len(entries):6,} {left} -> {entered}: {', '.join(entries)}")

    print("\nreturns that two packages would save as one, with their share of the lines")
    for saved, pair in merged_savings(functions)[: arguments.most]:
        share = sum(lines[package] for package in pair) / lines.total()
        print(f"{saved:6,} {' + '.join(pair)}: {100 * share:.1f} %")


if __name__ == "__main__":
    main()
