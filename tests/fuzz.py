"""Mutated files and texts for every reader: python tests/fuzz.py [--seconds 600] [--seed 0] [--keep FOLDER].

A reader may refuse with one of our own errors, of one line, or accept; what it accepts is used, so that a number out of
range that slips through is found where it does harm. Anything else is a finding: another exception, a crash of the
interpreter, a minute, or gigabytes. Cases run in a process of their own and follow from their seed; the input of a
finding is kept, with the seed in its name.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import math
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np

from kcrf_cli.render import inspection_text as inspect_text
from kcrf_core.config import Config, load_template, load_yaml, parse_config
from kcrf_core.corpora import FORMATS, Corpus, read_corpus, stream_corpus
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import export, fit_encoding
from kcrf_core.errors import FileFormatError, KcrfError
from kcrf_core.exchange import PROGRAMS, export_model, import_model
from kcrf_core.features import load_basis, save_basis, select_bases
from kcrf_core.files import CompressedText, compressing, read_container
from kcrf_core.model import Model, dump, load_dataset, save_dataset, summarise, unpack
from kcrf_core.objective.solvers import Observer
from kcrf_core.system import Workers
from kcrf_core.training import train

SECONDS, BYTES = 20, 4 << 30  # that one case may take
CASES_PER_PROCESS = 500

FOREIGN = Path(__file__).parent / "data" / "foreign"  # models of other programs
MODELS = ("words.crfpp", "words.crfsuite-model", "words.wapiti")

CONLL = "Das ART 1.5 O\nHaus N -2 B\n\nein ART 0.25 O\nHaus N 1e3 B\nhat V 7 I\n\n" * 3
ATTRIBUTES = "X\ta\tb:2\nY\ta\tc:-0.5\n\n@weight:2.5\nX\tb\nY\tc\\:d:3\n\n"
YAML = """columns: [word, pos, f0, tag]
features:
  - {column: word, window: [-1, 0, 1], min_count: 2}
  - {name: ending, column: word, transform: suffix, length: 2}
  - {conjunction: ["word", "pos[1]"], window: [0]}
  - {column: f0, scale: standard}
terms:
  - {name: node, features: [word, ending], kernel: {type: poly, degree: 2, gamma: auto}, map: {type: reduced, size: 5}}
  - {name: real, features: [f0], kernel: {type: sum, parts: [{type: rbf}, {type: linear}]}, sigma2: 1e-1}
  - {type: edge, sigma2: 10}
training: {tolerance: 0.01, max_passes: 3, seed: 1, solver: auto}
"""
TEMPLATE = (
    "# comment\nU00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\nU02:%x[1,1]\n"
    "U:%x[1,0]\nU:%x[-2,0]\nU9\nB\nB1:%x[0,1]\nB2:%x[-1,0]%x[0,0]\n"
)
SENTENCES = """# text = vámonos ya
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tv\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tp\t_\t1\tobj\t_\t_
2.1\tes\tser\tAUX\tv\t_\t_\t_\t_\t_
3\tya\tya\tADV\tr\t_\t1\tadvmod\t_\tSpaceAfter=No

1\t!\t!\tPUNCT\tf\t_\t0\troot\t_\t_
"""
LABELLED = {
    "xml": "<a><s><author>Être &amp; M.,</author> (<date>1927</date>)</s>\n<s><x>b <i>c</i></x></s></a>",
    "json lines": '{"text": "a bc 😀", "label": [[0, 3, "X"], [2, 6, "Y"]]}\n'
    '{"tokens": ["a", "b"], "labels": ["X", "O"]}',
    "json array": '[{"data": {"text": "a b"}, "annotations": [{"result": [{"value": {"start": 2, "end": 3, '
    '"text": "b", "labels": ["X"]}}]}]},\n {"text": "c", "spans": [], "tokens": [{"start": 0, "end": 1}]}]',
    "ttx": "title         |    How Does It\n              | work? 1999\nblank         | \n",
}
TOKENS = (
    *("0", "-1", "1e999", "nan", "inf", "null", "true", "''", "%x[0,0]", "U", "B", "&a", "*a", "!!int", "<<", "{", "}"),
    *(
        "[",
        "]",
        ":",
        "\n",
        "\t",
        " ",
        "-",
        "'",
        '"',
        "|",
        "\\",
        "@weight:",
        "O",
        "\r\n",
        "\ufeff",
        "\x00",
        "é",
        "\ud83d",
    ),
    *("1-2", "1.1", "#", "_", "%m[0,0]", "B1:%x[0,0]", "U:%x[0,0]"),
    *("9" * 30, "a" * 3000, "[" * 200, "kernel", "type", "size", "window", "transform", "column", "2..1", "edge"),
)
JUNK = (None, True, -1, 0, 2**40, 1e308, -0.5, "", "node", "poly", [], {}, [[]], {"type": "rbf"}, "x" * 5000)


# ----------------------------------------------------------------------------- mutations


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, pieces cut, doubled, moved, overwritten."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not out:
            break
        place, length = rng.randrange(len(out)), rng.choice((1, 2, 4, 8, 60))
        what = rng.randrange(6)
        if what == 0:
            out[place] ^= 1 << rng.randrange(8)
        elif what == 1:
            del out[place : place + length]
        elif what == 2:
            out[place:place] = out[place : place + length]
        elif what == 3:
            out[place : place + length] = rng.randbytes(length)
        elif what == 4:
            del out[place:]
        else:
            other = rng.randrange(len(out))
            out[place : place + length] = out[other : other + length]
    return bytes(out)


def mutated_text(text: str, rng: random.Random) -> bytes:
    """The same with words that mean something, line by line or anywhere."""
    if rng.random() < 0.3:
        return mutated_bytes(text.encode(), rng)
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        number = rng.randrange(len(lines))
        line = lines[number]
        place = rng.randrange(len(line) + 1)
        what = rng.randrange(5)
        if what == 0:
            lines[number] = line[:place] + rng.choice(TOKENS) + line[place:]
        elif what == 1:
            lines[number] = line[:place] + rng.choice(TOKENS) + line[place + rng.randrange(6) :]
        elif what == 2:
            lines.insert(rng.randrange(len(lines) + 1), line)
        elif what == 3 and len(lines) > 1:
            del lines[number]
        else:
            words = line.split(" ")
            rng.shuffle(words)
            lines[number] = " ".join(words)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def mutated_container(data: bytes, rng: random.Random) -> bytes:
    """Bytes, or arrays and header with checksums that fit again: damage that only the loader can see."""
    if rng.random() < 0.2:
        return mutated_bytes(data, rng)
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.4:
            _mutate_json(header, rng)
        else:
            name = rng.choice(sorted(arrays))
            arrays[name] = _mutated_array(arrays[name], rng)
            if rng.random() < 0.05:
                del arrays[name]
        if not arrays:
            break
    if rng.random() < 0.9:
        header["arrays"] = sorted(arrays)
    stream = io.BytesIO()
    np.savez(stream, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)
    return stream.getvalue()


def edited_container(data: bytes, rng: random.Random) -> bytes:
    """An edit by someone who knows the format, that a loader has to refuse."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    numbers = [name for name in arrays if name.endswith((".weights", ".alpha", "transitions", ".weights.values"))]
    what = rng.choice(("labels", "twice", "behind an array", "behind the archive", "surrogate", "not finite", "large"))
    if what == "large" and not numbers:
        what = "labels"
    if what == "labels":
        text = arrays["labels.text"].copy()
        text[rng.randrange(len(text))] = ord(rng.choice("\n\t\r\0"))
        arrays["labels.text"] = text
    elif what == "surrogate":
        header["columns" if rng.random() < 0.5 else "version"] = rng.choice(("\ud800", "a\udfffb"))
    elif what == "not finite":
        header["info"] = {"training": {"objective": rng.choice((np.nan, np.inf, -np.inf))}}
    elif what == "large":
        name = rng.choice(sorted(numbers))
        values = arrays[name].copy()
        values.flat[rng.randrange(values.size)] = rng.choice((1e300, -1e300, 1e101, -1.7e308))
        arrays[name] = values
    members = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}
    last = rng.choice(sorted(members))
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")  # of a name that is there already
        for name, array in [*members.items(), *[(last, members[last])] * (what == "twice")]:
            out = io.BytesIO()
            np.lib.format.write_array(out, np.asanyarray(array), allow_pickle=False)
            behind = rng.randbytes(rng.randrange(1, 20)) if what == "behind an array" and name == last else b""
            archive.writestr(f"{name}.npy", out.getvalue() + behind)
    return stream.getvalue() + (rng.randbytes(rng.randrange(1, 30)) if what == "behind the archive" else b"")


def _mutated_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    what = rng.choice((0, 0, 0, 1, 2, 3, 4, 5))
    if what == 0 and array.size:
        out = array.copy()
        extreme = (
            [np.nan, np.inf, 1e308, -1e308, 0.0] if out.dtype.kind == "f" else [-(2**31), 2**31 - 1, -1, -2, 10**6]
        )
        out.flat[rng.randrange(out.size)] = np.array(rng.choice(extreme)).astype(out.dtype)
        return out
    if what == 1:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array
    if what == 2:
        return np.concatenate([array, array]) if array.ndim else array
    if what == 3:
        return array.astype(rng.choice(["int32", "int64", "float32", "float64", "uint8", "bool"]), copy=True)
    if what == 4:
        return array.reshape(rng.choice([(-1,), (1, *array.shape), (*array.shape, 1)]))
    out = array.copy().ravel()
    order = list(range(out.size))
    rng.shuffle(order)
    return out[order].reshape(array.shape)


def _mutate_json(value: dict | list, rng: random.Random) -> None:
    """One place somewhere in it: another value, one less, or one level deeper."""
    while True:
        keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.7:
            value = inner
            continue
        what = rng.randrange(3)
        if what == 0:
            del value[key]
        elif what == 1:
            value[key] = deepcopy(rng.choice(JUNK))  # of its own: it may be changed later
        else:
            value[key] = [inner]
        return


def _mutated_foreign(name: str, data: bytes, rng: random.Random) -> bytes:
    """Bytes, or numbers in the places where a format has sizes and places."""
    if name in ("words.wapiti", "patterns") and rng.random() < 0.5:
        return mutated_text(data.decode("latin-1"), rng).decode("utf-8", "replace").encode("latin-1", "replace")
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = 4 * rng.randrange(12 if rng.random() < 0.4 else len(out) // 4)
        number = rng.choice(
            (0, 1, 2, 3, 47, 255, len(out), len(out) - 4, 2**31 - 1, 2**32 - 1, rng.randrange(len(out)))
        )
        out[place : place + 4] = number.to_bytes(4, "little")
    return bytes(out)


# ----------------------------------------------------------------------------- targets


def _corpus(text: str, format: str) -> Corpus:
    parsed = FORMATS[format].parse(blocks(io.BytesIO(text.encode()), "data"), "data")
    return concatenate(part.corpus for part in parsed)


class Targets:
    """Readers with something valid to begin from."""

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / "case.npz"
        self.corpus = _corpus(CONLL, "conll")
        self.config = parse_config(load_yaml(YAML, "yaml"))
        self.bag, self.bag_config = _corpus(ATTRIBUTES, "crfsuite"), parse_config({"training": {"sigma2": 1.0}})
        self.observed = parse_config({"training": {"sigma2": 1.0, "observed_features": True}})
        pairs = {"kernel": {"type": "poly", "degree": 2}, "features": ["c0", "c1"]}
        terms = [pairs, {"type": "edge"}, {"type": "edge-x", "features": ["c1", "c2"]}]
        self.observed_pairs = parse_config({"terms": terms, "training": {"sigma2": 1.0, "observed_features": True}})
        self.words = _corpus(SENTENCES, "conllu")
        self.foreign = [(path.name, path.read_bytes()) for path in sorted(FOREIGN.iterdir()) if path.name in MODELS]
        self.foreign.append(("patterns", (FOREIGN / "patterns").read_bytes()))
        self.files: list[tuple[str, bytes, Callable[[], object]]] = []
        template = parse_config(load_template(TEMPLATE, "template") | {"training": {"sigma2": 1.0}})
        with Workers(1) as workers:
            self._add_files(self.corpus, self.config, workers)
            self._add_files(self.bag, self.bag_config, workers)
            self._add_files(self.bag, self.observed, workers)
            self._add_files(self.corpus, self.observed_pairs, workers)
            encoding, dataset = fit_encoding(self.config, self.corpus)
            basis = select_bases(encoding, dataset, self.config, workers, Observer())
            save_basis(self.path, basis, "digest")
            self.files.append(("basis", self.path.read_bytes(), self._use_basis))
            self._add_files(self.corpus, template, workers)
            self._add_files(self.words, self.bag_config, workers)

    def _add_files(self, corpus: Corpus, config: Config, workers: Workers) -> None:
        """A model of the corpus, and the corpus encoded."""
        encoding, dataset = fit_encoding(config, corpus)
        model, _ = train(encoding, dataset, config, workers=workers)
        model.save(self.path)
        self.files.append(("model", self.path.read_bytes(), self._use_model))
        save_dataset(self.path, encoding, dataset, config)
        self.files.append(("dataset", self.path.read_bytes(), self._use_dataset))

    def case(self, seed: int) -> tuple[str, bytes, Callable[[], object]]:
        """What a seed stands for: the reader's name, its input, and what reads it from the path of the case."""
        rng = random.Random(seed)
        texts = (
            ("conll", CONLL, lambda: self._use_corpus("conll")),
            ("crfsuite", ATTRIBUTES, lambda: self._use_corpus("crfsuite")),
            ("yaml", YAML, lambda: self._use_config(load_yaml)),
            ("template", TEMPLATE, lambda: self._use_config(load_template)),
            ("conllu", SENTENCES, lambda: self._use_corpus("conllu")),
            ("compressed", CONLL, self._use_compressed),
        )
        # What came later has seeds of its own, so that those of earlier findings keep their meaning.
        if seed % 17 == 3:
            name = rng.choice(list(LABELLED))
            return name, mutated_text(LABELLED[name], rng), lambda: read_corpus(self.path)
        if seed % 11 == 5:
            name, data = rng.choice(self.foreign)
            return name, _mutated_foreign(name, data, rng), self._use_foreign
        if seed % 7 == 3:
            name, data, use = rng.choice(self.files)
            return f"edited {name}", edited_container(data, rng), lambda: self._refuse(use)
        later = seed % 3 == 0
        files, texts = (self.files[5:], texts[3:]) if later else (self.files[:5], texts[:4])
        number = rng.randrange(len(files) + len(texts))
        if number < len(files):
            name, data, use = files[number]
            return name, mutated_container(data, rng), use
        name, text, use = texts[number - len(files)]
        if name == "compressed":
            out = io.BytesIO()
            with compressing(out) as stream:
                stream.write(text.encode())
            return name, mutated_bytes(out.getvalue(), rng), use
        return name, mutated_text(text, rng), use

    def _refuse(self, use: Callable[[], object]) -> None:
        try:
            use()
        except FileFormatError:
            return
        raise AssertionError("an edited file was taken for a sound one")

    def _use_foreign(self) -> None:
        """A model of another program, or its patterns: what is read is used, stored and written again."""
        data = self.path.read_bytes()
        if data[:1] in (b"U", b"u", b"b", b"*"):
            self._use_config(load_template)
            return
        model, _ = import_model(self.path)
        model.save(self.path)
        self._use_model()
        for program in PROGRAMS:
            with contextlib.suppress(KcrfError):
                export_model(model, program)

    def _use_model(self) -> None:
        model = Model.load(self.path)
        self._inspect()
        deque(dump(model), maxlen=0)
        for corpus in (self.corpus, self.bag, self.words):
            if corpus.format == model.encoding.format:
                model.tag_corpus(corpus)
                for value in model.marginals(model.encoding.encode(corpus)).flat:
                    assert math.isfinite(value)

    def _use_dataset(self) -> None:
        stored = load_dataset(self.path)
        self._inspect()
        self._train(stored.encoding, stored.dataset, stored.config)

    def _use_basis(self) -> None:
        basis = load_basis(self.path)
        self._inspect()
        self._train(basis.encoding, basis.encoding.encode(self.corpus), basis.config, basis)

    def _inspect(self) -> None:
        contents = read_container(self.path, "model", "dataset", "basis")
        found = summarise(contents, unpack(contents), 3)
        inspect_text.text(json.loads(json.dumps(found, allow_nan=False)), "case", 3)

    def _use_corpus(self, format: str) -> None:
        corpus = read_corpus(self.path, format)
        encoding, dataset = fit_encoding(parse_config({}), corpus)
        for _ in export(encoding, dataset, corpus.columns[-1]):
            pass
        for parsed in stream_corpus(self.path, format):
            if parsed.corpus.positions:
                FORMATS[format].labelled(parsed, ["X"], np.zeros(parsed.corpus.positions, np.int32))

    def _use_compressed(self) -> None:
        with self.path.open("rb") as stream, CompressedText(stream, "data") as text:
            for _ in FORMATS["conll"].parse(blocks(text, "data"), "data"):
                pass

    def _use_config(self, load: Callable[[str, str], dict]) -> None:
        try:
            text = self.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            return  # refused before it is a configuration
        config = parse_config(load(text, "config"), "config")
        fit_encoding(config, self.corpus)

    def _train(self, encoding, dataset, config, basis=None) -> None:
        from dataclasses import replace

        quick = replace(config.training, max_passes=3, sigma2=config.training.sigma2 or 1.0)
        with Workers(1) as workers:
            train(encoding, dataset, replace(config, training=quick), basis=basis, workers=workers)


def finding(targets: Targets, seed: int) -> str | None:
    """What is wrong with how a case was taken; None where all is well."""
    with np.errstate(all="ignore"):
        name, data, use = targets.case(seed)
    targets.path.write_bytes(data)
    began = time.monotonic()
    try:
        with np.errstate(all="ignore"):
            use()
    except KcrfError as error:
        if "\n" in str(error):
            return f"{name}: a message of several lines: {error}"
    except Exception:
        return f"{name}: {traceback.format_exc()}"
    seconds = time.monotonic() - began
    return f"{name}: {seconds:.0f} seconds" if seconds > SECONDS else None


# ----------------------------------------------------------------------------- campaigns


def _campaign(folder: Path, first: int, count: int, until: float, keep: Path) -> None:
    """Cases one after the other in this process; findings go to the folder `keep`."""
    faulthandler.enable()
    signal.alarm(10 * SECONDS)  # nothing hangs for longer
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    targets = Targets(folder)
    for seed in range(first, first + count):
        if time.monotonic() > until:
            break
        (folder / "seed").write_text(str(seed))
        signal.alarm(2 * SECONDS)
        found = finding(targets, seed)
        if found is not None:
            (keep / f"case-{seed}").write_bytes(targets.path.read_bytes())
            (keep / f"case-{seed}.txt").write_text(found)
            print(f"seed {seed}: {found}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    until, seed, crashes = time.monotonic() + options.seconds, options.seed, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "seed").write_text(str(seed))
        while time.monotonic() < until:
            arguments = (folder, seed, CASES_PER_PROCESS, until, options.keep)
            process = multiprocessing.get_context("spawn").Process(target=_campaign, args=arguments)
            process.start()
            process.join()
            last = int((folder / "seed").read_text())
            if process.exitcode:
                crashes += 1
                (options.keep / f"case-{last}").write_bytes((folder / "case.npz").read_bytes())
                (options.keep / f"case-{last}.txt").write_text(f"exit code {process.exitcode}")
                print(f"seed {last}: exit code {process.exitcode}", file=sys.stderr, flush=True)
            seed = last + 1
    found = len(list(options.keep.glob("case-*.txt")))
    print(f"{seed - options.seed:,} cases, {found} findings in {options.keep}, {crashes} of them crashes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
