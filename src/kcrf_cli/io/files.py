"""What commands do with files: configurations, data that is text or encoded, output to a file or stdout."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

import click

from kcrf_core.errors import ConfigError, DataError, FileFormatError
from kcrf_core.files import is_encoded, is_folder, naming

from ..render.visible import shown, shown_lines

if TYPE_CHECKING:
    import numpy as np

    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.config import Config
    from kcrf_core.corpora import Corpus, Layout
    from kcrf_core.device import DeviceChoice
    from kcrf_core.encoding import Dataset, Encoding
    from kcrf_core.system import Budget, Workers
    from kcrf_core.training import Footprint, Prepared


VectorPaths = Sequence[tuple[str, str]]  # names of vectors, and the files that hold them


def load_config(path: str | None) -> dict[str, Any]:
    """The raw configuration of a file: YAML, or a CRF++ template."""
    from kcrf_core.config import load_template, load_yaml, looks_like_template

    if path is None:
        return {}
    if re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?", path) and not os.path.exists(path):
        raise click.UsageError(f"-c is the configuration here: CRF++'s -c {path} is --sigma2 {path}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            text = stream.read().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    return load_template(text, path) if looks_like_template(text) else load_yaml(text, path)


def read_data(
    path: str,
    format_: str | None,
    columns: Sequence[str] | None = None,
    layout: Layout | None = None,
    threads: int | None = None,
    quiet: bool = False,
    vectors: VectorPaths = (),
) -> Corpus:
    """The sequences of a text file with the vectors beside it, whose files are opened before any reading.

    All threads read; there is a bar for long files where someone can watch it.
    """
    from kcrf_core.corpora import open_vectors, with_vectors

    opened = open_vectors(vectors)
    corpus = _read(path, format_, columns, layout, threads, quiet)
    return with_vectors(corpus, opened) if opened else corpus


def _read(
    path: str,
    format_: str | None,
    columns: Sequence[str] | None,
    layout: Layout | None,
    threads: int | None,
    quiet: bool,
) -> Corpus:
    from kcrf_core.corpora import PLAIN, read_corpus
    from kcrf_core.files import compression_of
    from kcrf_core.system import Workers

    layout = layout or PLAIN
    with Workers(threads) as workers:
        if quiet or sys.stderr is None or not sys.stderr.isatty():
            return read_corpus(path, format_, columns, workers, layout)
        from tqdm import tqdm

        plain = path != "-" and os.path.isfile(path) and compression_of(path) is None
        size = os.path.getsize(path) if plain else None
        name = f"reading {shown(os.path.basename(path))}" if path != "-" else "reading"
        with tqdm(total=size, desc=name, unit="B", unit_scale=True, delay=1, leave=False, file=sys.stderr) as bar:
            return read_corpus(path, format_, columns, workers, layout, progress=bar.update)


def prepare(
    data: str,
    format_: str | None,
    config_path: str | None,
    options: dict[str, Any],
    basis_path: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    vectors: VectorPaths = (),
    group: str | None = None,
    otherwise: dict[str, Any] | None = None,
) -> Prepared:
    """Read and encode training data under a configuration file and options; see `kcrf_core.training.prepare`."""
    from kcrf_core.training import prepare as encoded

    return encoded(
        data,
        None if config_path is None else load_config(config_path),
        options,
        source=config_path or "options",
        format_=format_,
        vectors=vectors,
        group=group,
        basis_path=basis_path,
        otherwise=otherwise,
        read=partial(read_data, threads=threads, quiet=quiet, vectors=vectors),
    )


def fold_numbers(path: str, corpus: Corpus | Dataset) -> np.ndarray:
    """Read the fold of each sequence from a file."""
    from kcrf_core.training import read_folds

    try:
        with open(path, encoding="utf-8-sig") as stream:
            return read_folds(stream.read(), path, corpus)
    except UnicodeDecodeError:
        raise DataError("not a text of fold numbers, one on each line", path) from None


def load_dev(
    path: str,
    format_: str | None,
    encoding: Encoding,
    data: str,
    threads: int | None = None,
    quiet: bool = False,
    vectors: VectorPaths = (),
) -> Dataset:
    """Labelled data to score by, encoded like the training data, whose name is `data`."""
    from kcrf_core.encoding import UNOBSERVED, join_datasets
    from kcrf_core.model import ShardFolder, load_dataset, load_folder

    if is_encoded(path):
        if vectors:
            raise click.UsageError(f"{path} is encoded already, and holds its vectors: leave out --dev-vectors")
        stored = load_folder(path) if is_folder(path) else load_dataset(path)
        if not stored.encoding.same_as(encoding):
            hint = f"featurize it with --like {data}" if is_encoded(data) else "give it as text"
            raise FileFormatError(f"{path}: encoded unlike {data}: {hint}")
        dataset = join_datasets(list(stored.datasets())) if isinstance(stored, ShardFolder) else stored.dataset
    else:
        format_ = format_ or encoding.format
        corpus = read_data(path, format_, encoding.columns, encoding.layout, threads, quiet, vectors)
        missing = [name for name in encoding.vectors if name not in corpus.vectors]
        if missing:
            raise click.UsageError(f"{path} needs vectors '{missing[0]}', too: give --dev-vectors {missing[0]}=FILE")
        dataset = encoding.encode(corpus)
    if dataset.labels is None or (dataset.labels == UNOBSERVED).all():
        raise DataError("no labels to score by (--dev)", path)
    return dataset


def say(text: str) -> None:
    """A line for people on stderr. A stderr that cannot be written to must not cost the work."""
    if sys.stderr is None:
        return
    try:
        print(shown(text), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: IO[str] | None) -> None:
    """Send what a broken stream still holds nowhere: Python would fail again when it flushes at exit."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write_out(text: str) -> None:
    """Data as text on stdout, all of it or an error."""
    with output_stream(None) as stream:
        stream.write((text + "\n").encode())


def show(text: str) -> None:
    """Lines for people on stdout."""
    write_out(shown_lines(text))


def show_config(config: Config) -> None:
    """A configuration as YAML on stdout; read again, it is the same."""
    import yaml

    from kcrf_core._version import __version__

    text = yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True, width=120)
    write_out(f"# configuration of kcrf {__version__}\n{text.rstrip()}")


STDOUT = "standard output"


class _Named:
    """Standard output, by its name where writing to it fails."""

    def __init__(self, stream: IO[bytes]):
        self._stream = stream

    def write(self, data: bytes) -> int:
        with naming(STDOUT):
            return self._stream.write(data)

    def flush(self) -> None:
        with naming(STDOUT):
            self._stream.flush()


@contextlib.contextmanager
def output_stream(path: str | None) -> Iterator[IO[bytes]]:
    """A binary stream: stdout for None and `-`, else a file that appears when all went well, compressed by its name."""
    from kcrf_core.files import compression_of, packing, replacing

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
            yield cast("IO[bytes]", _Named(whole))  # all that is used of one
            with naming(STDOUT):
                whole.flush()
        finally:
            if raw is not None:
                with contextlib.suppress(OSError):
                    raw.detach()
        return
    with replacing(path) as stream:
        if (kind := compression_of(path)) is not None:
            with packing(stream, kind) as packed:
                yield packed
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
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such directory to write to", os.path.dirname(path) or folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "no permission to write there", folder)


def unless(quiet: bool) -> Callable[[str], None]:
    """Says lines on stderr, or nothing."""
    return (lambda line: None) if quiet else say


def memory_line(prepared: Prepared, workers: Workers) -> str:
    """How much memory a run will take, in a line."""
    return _footprint(prepared, workers.memory, workers.threads).summary()


def show_footprint(
    prepared: Prepared,
    memory: int | None,
    threads: int | None,
    as_json: bool,
    engine: ClusterEngine | DeviceChoice | None = None,
) -> None:
    """The estimate as data, on stdout; with what workers of a cluster, or a device, have to hold."""
    from kcrf_core.cluster import ClusterEngine
    from kcrf_core.device import DeviceChoice
    from kcrf_core.system import Budget

    from ..render import figures as render

    found, more = _footprint(prepared, Budget(memory), threads), []
    if as_json:
        write_out(render.as_json({"schema": 1, **found.to_dict()}))
        return
    if isinstance(engine, ClusterEngine):
        more = found.cluster_lines()
    elif isinstance(engine, DeviceChoice):
        found, more = found.beside_device(), found.device_lines(engine.address)
    show("\n".join(map(shown, found.lines() + more)))


def _footprint(prepared: Prepared, budget: Budget, threads: int | None) -> Footprint:
    from kcrf_core.training import footprint, shard_footprint

    if prepared.folder is not None:
        return shard_footprint(prepared.folder, prepared.config, prepared.basis, budget, threads)
    return footprint(prepared.encoding, prepared.dataset, prepared.config, prepared.basis, budget, threads)
