"""Files of commands: configurations, data that is text or encoded, output to a file or stdout."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast

import click

from kcrf_core._version import __version__
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.files import naming

from ..options import Configuration, HeldOutOptions, PreparedArguments
from ..render.visible import shown_lines
from .progress import progress, say

if TYPE_CHECKING:
    import numpy as np

    from kcrf_core.corpora import Corpus, Layout
    from kcrf_core.encoding import Dataset
    from kcrf_core.selection import Journal
    from kcrf_core.training import Prepared


def load_config(given: Configuration, wapiti: bool = False) -> dict[str, Any]:
    """Read the raw configuration of a file: YAML, or a template, in capitals that of CRF++ unless `wapiti`."""
    from kcrf_core.config import load_template, load_yaml, looks_like_template

    path, text = given.config, ""
    if path is not None:
        try:
            with open(path, encoding="utf-8-sig", newline="") as stream:
                text = stream.read().replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: not UTF-8 text") from None
    if path is not None and looks_like_template(text):
        return load_template(text, path, wapiti or given.wapiti)
    if given.wapiti:
        raise ConfigError("--wapiti is for a template: give one with -c")
    return {} if path is None else load_yaml(text, path)


def read_data(
    path: str,
    format_: str | None,
    columns: Sequence[str] | None = None,
    layout: Layout | None = None,
    threads: int | None = None,
    quiet: bool = False,
    vectors: Sequence[tuple[str, str]] = (),
) -> Corpus:
    """Read a text file and the vectors beside it, whose files are opened before any reading."""
    from kcrf_core.corpora import PLAIN, open_vectors, read_corpus, with_vectors
    from kcrf_core.system import Workers

    name = "reading" if path == "-" else f"reading {os.path.basename(path)}"
    with progress(quiet, name, paths=[path]) as moved, Workers(threads) as workers:
        opened = open_vectors(vectors)
        corpus = read_corpus(path, format_, columns, workers, layout or PLAIN, moved)
    for remark in corpus.remarks:
        unless(quiet)(remark)
    return with_vectors(corpus, opened) if opened else corpus


def prepare(
    run: PreparedArguments,
    basis_path: str | None = None,
    group: str | None = None,
    otherwise: dict[str, Any] | None = None,
    held_out: HeldOutOptions | None = None,
    wapiti: bool = False,
) -> Prepared:
    """Read and encode training data under a configuration file and options; see `kcrf_core.training.prepare`.

    With `held_out`, the default configuration is compared with others.
    """
    from kcrf_core.system import Workers
    from kcrf_core.training import HoldOut, prepare as encoded

    def held_out_of(corpus: Corpus, groups: np.ndarray | None) -> HoldOut:
        path, block = (None, None) if held_out is None else (held_out.folds_file, held_out.block)
        return HoldOut(groups, fold_numbers(path, corpus), block)

    with Workers(run.engine.threads, run.engine.memory) as workers:
        return encoded(
            run.data,
            load_config(run.configuration, wapiti) if run.configuration.config or run.configuration.wapiti else None,
            run.configuration.chosen,
            source=run.configuration.config or "options",
            format_=run.format,
            vectors=run.vectors,
            group=group,
            basis_path=basis_path,
            otherwise=otherwise,
            read=partial(read_data, threads=run.engine.threads, quiet=run.quiet, vectors=run.vectors),
            workers=None if held_out is None else workers,
            held_out=held_out_of,
        )


def configuration_printed(run: PreparedArguments, prepared: Callable[[], Prepared]) -> bool:
    """Print the configuration if --dump-config asks for it; return True then."""
    if run.dump_config:
        from kcrf_core.config import configuration_text

        comments = [f"configuration of kcrf {__version__}"]
        write_out(configuration_text(prepared().config.to_dict(), comments), end="")
    return run.dump_config


def fold_numbers(path: str | None, corpus: Corpus | Dataset) -> np.ndarray | None:
    """Read the fold of each sequence from a file, if there is one."""
    from kcrf_core.training import read_folds

    if path is None:
        return None
    try:
        with open(path, encoding="utf-8-sig") as stream:
            return read_folds(stream.read(), path, corpus)
    except UnicodeDecodeError:
        raise DataError("not a text of fold numbers, one on each line", path) from None


def unless(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints a line on stderr, or does nothing if `quiet`."""
    return (lambda line: None) if quiet else say


def write_out(text: str, path: str | None = None, end: str = "\n") -> None:
    """Write data as text to stdout or to a file, all of it or an error."""
    with output_stream(path) as stream:
        stream.write((text + end).encode())


def write_json(figures: dict[str, Any]) -> None:
    """Write figures as JSON to stdout."""
    from ..render.figures import as_json

    write_out(as_json({"schema": 1, **figures}))


def show(text: str) -> None:
    """Print lines for people on stdout."""
    write_out(shown_lines(text))


STDOUT = "standard output"


@contextlib.contextmanager
def output_stream(path: str | None) -> Iterator[IO[bytes]]:
    """Yield a binary stream: stdout for None and `-`, else a file, compressed by its name and replaced at the end."""
    from kcrf_core.files import compressing, is_compressed, replacing

    if path is None or path == "-":
        if sys.stdout is None:
            raise OSError(errno.EBADF, "is closed", STDOUT)
        stream = sys.stdout.buffer
        with naming(STDOUT):
            sys.stdout.flush()
        # With PYTHONUNBUFFERED it is a raw file, which may write a part and leave the rest to its caller.
        raw = io.BufferedWriter(stream) if isinstance(stream, io.RawIOBase) else None
        whole = stream if raw is None else raw
        try:
            named = SimpleNamespace(write=naming(STDOUT)(whole.write), flush=naming(STDOUT)(whole.flush))
            yield cast("IO[bytes]", named)  # all that is used of one
            named.flush()
        finally:
            if raw is not None:
                with contextlib.suppress(OSError):
                    raw.detach()
        return
    with replacing(path) as stream:
        if is_compressed(path):
            with compressing(stream) as packed:
                yield cast("IO[bytes]", packed)  # all that is used of one
        else:
            yield stream


def check_writable(path: str, *inputs: str | None) -> None:
    """Refuse an output that cannot be written, or that is an input, before the work is done rather than after."""
    if path == "-":
        raise click.UsageError("this output cannot go to stdout: give the name of a file")
    if os.path.isdir(path):
        raise click.UsageError(f"{path} is a directory: give the name of a file")
    if os.path.exists(path):
        for given in inputs:
            if given not in (None, "-") and os.path.exists(given) and os.path.samefile(path, given):
                raise click.UsageError(f"{path} is also an input and would be overwritten: give another name")
        if not os.path.isfile(path):  # a device or a pipe, which is written to and not replaced
            return
        if not os.access(path, os.W_OK):
            raise click.UsageError(f"{path} is write-protected: give another name, or unprotect it")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such directory to write to", os.path.dirname(path) or folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "no permission to write there", folder)


def check_outputs(outputs: Iterable[str | None], *inputs: str | None) -> None:
    """Refuse outputs that cannot be written, that are inputs, or that are one another; `-` is stdout."""
    written = [path for path in outputs if path not in (None, "-")]
    for path in written:
        if path.endswith((".bz2", ".xz", ".zst")):
            raise click.UsageError(f"'{path}': outputs are compressed by gzip alone: give a name that ends in .gz")
        check_writable(path, *inputs)
    if len({os.path.realpath(path) for path in written}) < len(written):
        raise click.UsageError("two outputs have the same name: give each its own")


@contextlib.contextmanager
def kept_journal(
    journal: Journal, temporary: bool, counted: Callable[[], str | None], quiet: bool
) -> Iterator[Journal]:
    """Yield a journal, and remove it at the end if `temporary`; a run that ends early keeps it, and a message tells.

    `counted` returns how much of this run the journal has in it, None for nothing.
    """
    try:
        yield journal
    except BaseException:
        if (found := counted()) is not None:
            unless(quiet)(f"{found} kept in {journal.path}: the same command continues from there")
        raise
    else:
        if temporary:
            journal.remove()
