"""Interfaces to the C library: C, Rust, Java, R, Node and a browser. Each gives the labels of `kcrf tag`."""

from __future__ import annotations

import base64
import fnmatch
import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.runtime import RuntimeModel, RuntimeTagger

ROOT = Path(__file__).resolve().parents[2]

# Calls of a tagger, each an array of a name and arguments, from the standard input; results, or errors, as JSON.
CALLS = """
import { readFileSync } from "node:fs";
const { folder, calls } = JSON.parse(readFileSync(0));
const { load } = await import(folder + "/kcrf.mjs"), results = [];
let tagger;
for (const [name, ...values] of calls)
  try {
    if (name === "load") tagger = await load(readFileSync(folder + "/kcrf.wasm"), readFileSync(values[0]));
    const found = name === "load" ? {...tagger} : tagger[name](...values);
    results.push(name === "marginals" ? found.map((row) => Array.from(row)) : found ?? null);
  } catch (error) { results.push({ error: `${error.constructor.name}: ${error.message}` }); }
console.log(JSON.stringify(results));
"""


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="module")
def wasm(tmp_path_factory) -> Path:
    """The folder of what `make wasm` makes, compiled without optimisation, which takes an eighth of the time."""
    needs("make", "clang", "wasm-ld")
    probe = ["clang", "--target=wasm32-wasi", "-E", "-x", "c", "-o", "/dev/null", "-"]
    if subprocess.run(probe, input=b"#include <stdlib.h>\n", capture_output=True).returncode:
        pytest.skip("clang has no C library for WebAssembly (Debian: wasi-libc)")
    folder = tmp_path_factory.mktemp("wasm")
    make = ["make", "-s", "-C", ROOT, "wasm", f"BUILD={folder}", "CFLAGS=-O0 -Werror", f"PYTHON={sys.executable}"]
    done = subprocess.run(make, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """The folder of what `make library` makes."""
    needs("make", "cc")
    folder = tmp_path_factory.mktemp("library")
    make = ["make", "-s", "-C", ROOT, "library", f"BUILD={folder}", "CFLAGS=-O0 -Werror"]
    done = subprocess.run(make, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def node(wasm):
    needs("node")

    def call(*calls: list) -> list:
        script, given = ["node", "--input-type=module", "-e", CALLS], {"folder": str(wasm), "calls": calls}
        done = subprocess.run(script, input=json.dumps(given), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def rows_of(path: Path, columns: int) -> list[list[list[str]]]:
    """Return the sequences of a tab-separated file, without labels."""
    blocks = path.read_text("utf-8").strip().split("\n\n")
    return [[line.split("\t")[:columns] for line in block.splitlines()] for block in blocks]


def test_node(kcrf, node, trained, first_accents, tmp_path):
    exported, data = tmp_path / "model.kcrf", first_accents(30)
    assert kcrf("export", trained, "-o", exported, "--quantize", "none").code == 0
    tagged = kcrf("tag", "-m", trained, data, "--marginals", "all").text.strip().split("\n\n")
    sequences = rows_of(data, 5)
    calls = [call for rows in sequences for call in (["set", rows], ["labels"], ["marginals"])]
    last = [["set", sequences[0]], ["viterbi"]]
    about, *results, _, most = node(["load", str(exported)], *calls, *last)
    assert about["labelNames"] == ["0", "1"] and about["columnNames"] == ["c0", "c1", "c2", "c3", "c4"]
    assert about["columnsUsed"] == [True] * 5 and about["takesAttributes"] is False
    for block, labels, marginals in zip(tagged, results[1::3], results[2::3], strict=True):
        lines = [line.split("\t") for line in block.splitlines()]
        assert labels == [line[-1] for line in lines]
        shown = [[float(one.partition(":")[2]) for one in line[6:8]] for line in lines]
        np.testing.assert_allclose(marginals, shown, rtol=0, atol=1e-6)
    own = RuntimeTagger(RuntimeModel(exported.read_bytes()))
    own.set_columns(sequences[0])
    assert most == own.label_names()


def test_node_attributes_and_other_scripts(kcrf, node, tmp_path):
    data, model, exported = tmp_path / "data.crfsuite", tmp_path / "model.npz", tmp_path / "model.kcrf"
    data.write_text("Ä\tw=日本\tlong:0.5\nB\tw=𝄞é\n\nB\tw=𝄞é\tlong:2\nÄ\tw=日本\n", "utf-8")
    assert kcrf("train", data, "-o", model, "--sigma2", "1", "-q").code == 0
    assert kcrf("export", model, "-o", exported, "--quantize", "none").code == 0
    rows = [["w=𝄞é", ["long", 1.5]], ["w=日本"], []]
    own = RuntimeTagger(RuntimeModel(exported.read_bytes()))
    own.set_attributes([{"w=𝄞é": 1.0, "long": 1.5}, ["w=日本"], []])
    about, _, labels, marginals = node(["load", str(exported)], ["set", rows], ["labels"], ["marginals"])
    assert about["takesAttributes"] and sorted(about["labelNames"]) == ["B", "Ä"]
    assert labels == [about["labelNames"][label] for label in own.labels()]
    np.testing.assert_allclose(marginals, own.marginals(), rtol=1e-9)


def test_node_errors(kcrf, node, trained, tmp_path):
    exported, bad = tmp_path / "model.kcrf", {}
    kcrf("export", trained, "-o", exported)
    whole = exported.read_bytes()
    damaged = {
        "empty": b"",
        "other": trained.read_bytes(),
        "cut": whole[:-9],
    }
    for name, content in damaged.items():
        bad[name] = tmp_path / name
        bad[name].write_bytes(content)
    row = ["but", "C", "0.10", "112.7", "63.7"]
    calls = [
        ["set", [row, row[:4]]],
        ["set", [[*row[:4], None]]],
        ["set", [[*row[:4], "high"]]],
        ["set", "but"],
        ["set", []],
        ["labels"],
    ]
    results = [["labels"], ["viterbi"], ["marginals"]]
    refused = (["set", one] for one in ("but", [row[:4]], [[*row[:4], "high"]], [[*row[:4], 3]]))
    after = [call for wrong in refused for call in (["set", [row]], wrong, *results)]
    found = node(
        *(["load", str(path)] for path in bad.values()),
        *(["load", str(exported)], *calls, ["set", [row]], ["labels"]),
        *(["load", str(exported)], *results, *after),
    )
    errors = [one["error"] if isinstance(one, dict) and "error" in one else one for one in found]
    assert errors[:2] == ["Error: not a model for kcrf-tag (write one with kcrf export --to runtime)"] * 2
    assert "cut off" in errors[2]
    assert errors[4] == "Error: position 2: expected an array of 5 columns (c0, c1, c2, c3, c4)"
    assert errors[5] == "Error: position 1: a text was expected, not null"
    assert errors[6].startswith("Error: ") and "high" in errors[6]
    assert errors[7] == "Error: expected an array of positions"
    assert errors[8:10] == [None, []] and errors[11] == ["0"]
    unset = ["Error: no sequence is set: there was none yet, or the last one was refused"] * 3
    assert errors[13:16] == unset
    for first in range(16, 36, 5):
        assert errors[first] is None and errors[first + 1].startswith("Error: ")
        assert errors[first + 2 : first + 5] == unset


# Columns of a model, those in use, lines of a text, words of its sequences, and the number of label columns left out.
TYPED = [
    ("w", [1], ["Nairobi jana"], [["Nairobi", "jana"]], 0),
    ("w", [1], ["Nairobi jana", "", "leo"], [["Nairobi", "jana"], ["leo"]], 0),
    ("w", [1], ["  Nairobi\tjana kesho "], [["Nairobi", "jana", "kesho"]], 0),
    ("w", [1], ["Nairobi", "jana", "", "leo"], [["Nairobi", "jana"], ["leo"]], 0),
    ("w", [1], [""], [], 0),
    ("wpc", [1, 0, 0], ["Nairobi jana", "leo"], [["Nairobi//", "jana//"], ["leo//"]], 0),
    ("wpc", [1, 0, 0], ["Nairobi ni mji"], [["Nairobi//", "ni//", "mji//"]], 0),
    ("wpc", [1, 0, 0], ["New York\tNN\tO\tB", "x\ty\tz\tI"], [["New York/NN/O", "x/y/z"]], 1),
    ("wp", [1, 1], ["Nairobi NN", "jana RB", "", "leo RB"], [["Nairobi/NN", "jana/RB"], ["leo/RB"]], 0),
    ("wp", [1, 1], ["Nairobi NN B-LOC", "jana RB O"], [["Nairobi/NN", "jana/RB"]], 1),
    ("wpcd", [1, 1, 0, 0], ["Nairobi NN"], [["Nairobi/NN//"]], 0),
    ("wp", [1, 1], ["Nairobi"], "1 columns, expected 2, with or without a label: w, p", None),
    ("wp", [1, 1], ["Nairobi NN", "jana"], "line 2: 1 columns, expected 2", None),
]


def test_text_of_the_browser_page():
    """No word of a typed text is lost: where a model uses one column, each word is a position and none a label."""
    needs("node")
    page = (ROOT / "docs" / "browser.html").read_text("utf-8")
    (function,) = re.findall(r"^function sequences.*?^}", page, re.DOTALL | re.MULTILINE)
    script = f"""{function}
    console.log(JSON.stringify(JSON.parse(process.argv[1]).map(([names, used, lines]) => {{
      try {{ return sequences({{ columnNames: [...names], columnsUsed: used.map(Boolean) }}, lines); }}
      catch (error) {{ return [error.message, null]; }}
    }})));"""
    done = subprocess.run(["node", "-e", script, json.dumps(TYPED)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for (*given, expected, labels), (read, left) in zip(TYPED, json.loads(done.stdout), strict=True):
        words = read if isinstance(read, str) else [["/".join(row) for row in rows] for rows in read]
        assert (words, left) == (expected, labels), given


@pytest.mark.slow
def test_browser(kcrf, wasm, trained, first_accents, tmp_path):
    """The page tags with a model beside it, and from file:// with one that is chosen; with an error for other files."""
    needs("chromium")
    exported, data = tmp_path / "model.kcrf", first_accents(1)
    kcrf("export", trained, "-o", exported, "--quantize", "none")
    lines = kcrf("tag", "-m", trained, data, "--marginals", "all").text.strip().splitlines()
    expected = []
    for *cells, _, no, yes, label in (line.split("\t") for line in lines):
        no, yes = no.partition(":")[2], yes.partition(":")[2]
        expected.append([*cells, label, yes if label == "1" else no, no, yes])
    page = (wasm / "browser.html").read_text("utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    options += ["--disable-background-networking", "--disable-component-update", "--virtual-time-budget=20000"]

    def shown(address: str) -> tuple[str, list[list[str]]]:
        folder = tmp_path / "profile"
        command = ["chromium", *options, f"--user-data-dir={folder}", "--dump-dom", address]
        text = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        message = re.search(r'<p id="message"[^>]*>([^<]*)<', text)
        assert message, text
        rows = [re.findall(r"<td>([^<]*)</td>", row) for row in re.findall(r"<tr[^>]*>.*?</tr>", text)]
        return html.unescape(message[1]), [row for row in rows if row]

    (tmp_path / "browser.html").write_text(page, "utf-8")
    query = "text=" + "".join(f"%{byte:02X}" for byte in data.read_bytes())

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            """Wait a moment if asked to: the clock of the browser, whose 20 s may pass at once, stands still."""
            if self.path == "/wait":
                time.sleep(0.1)
            super().do_GET()

    handler = functools.partial(Handler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server_address = f"http://127.0.0.1:{server.server_port}"
        address = f"{server_address}/browser.html"
        about, rows = shown(f"{address}?model=model.kcrf&{query}")
        left_out = "; the last column of the text is taken for labels, and left out"
        assert about == f"model.kcrf: 2 labels, columns c0, c1, c2, c3, c4{left_out}" and rows == expected
        assert shown(f"{address}?model=model.npz")[0].startswith("model.npz: not a model for kcrf-tag")
        assert shown(f"{address}?model=missing.kcrf")[0].startswith("missing.kcrf: missing.kcrf: 404")
        # As the dialog does: a file of the input, and an event; then until the file was read.
        content = base64.b64encode(exported.read_bytes()).decode()
        choose = f"""<script type="module">const files = new DataTransfer(), input = document.getElementById("model");
            files.items.add(new File([Uint8Array.from(atob("{content}"), (c) => c.charCodeAt(0))], "mine.kcrf"));
            input.files = files.files; input.dispatchEvent(new Event("change"));
            const message = document.getElementById("message");
            for (let times = 0; times < 300 && message.textContent === "No model."; times++)
              await fetch("{server_address}/wait", {{ mode: "no-cors", cache: "no-store" }});</script>"""
        (tmp_path / "chosen.html").write_text(page + choose, "utf-8")
        about, rows = shown(f"file://{tmp_path}/chosen.html?{query}")
        server.shutdown()
    assert about.startswith("mine.kcrf: 2 labels") and rows == expected


def java_headers() -> str:
    """Compiler options for the headers of Java."""
    home = Path(shutil.which("javac") or "").resolve().parents[1] / "include"
    return f"-I{home} -I{home}/linux"


# How each example is compiled and run, in a folder with the library and the examples, as docs/deployment.md has it.
EXAMPLES = {
    "c": (["cc"], "cc -std=c99 -Wall -Wextra -Werror -I{runtime} -o tag tag.c libkcrf_runtime.a -lm", "./tag"),
    "rust": (["rustc"], "rustc -L . -l static=kcrf_runtime -l m -o tag-rs tag.rs", "./tag-rs"),
    "java": (
        ["javac", "java"],
        "javac Tag.java && cc -shared -fPIC {java} -I{runtime} -o libkcrf_java.so tag_java.c libkcrf_runtime.a -lm",
        "java -Djava.library.path=. Tag",
    ),
    "r": (
        ["R"],
        "PKG_CFLAGS=-I{runtime} PKG_LIBS='libkcrf_runtime.a -lm' R CMD SHLIB tag_r.c",
        "Rscript --vanilla tag.R",
    ),
}


@pytest.mark.parametrize(
    "language", ["c", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rust", "java", "r"))]
)
def test_examples(kcrf, library, trained, first_accents, tmp_path, language):
    programs, compiled, called = EXAMPLES[language]
    needs(*programs)
    data, build = first_accents(1), tmp_path / "build"
    shutil.copytree(library, build)
    shutil.copytree(ROOT / "examples", build, dirs_exist_ok=True)
    kcrf("export", trained, "-o", build / "model.kcrf", "--quantize", "none")
    lines = [
        line.split("\t") for line in kcrf("tag", "-m", trained, data, "--marginals", "best").text.splitlines() if line
    ]
    rows = " ".join(f"'{'/'.join(line[:5])}'" for line in lines)
    compiled = compiled.format(runtime=ROOT / "src/kcrf_runtime", java=java_headers() if language == "java" else "")

    def run(command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, shell=True, cwd=build, capture_output=True, text=True)

    done = run(compiled)
    assert done.returncode == 0, done.stderr
    done = run(f"{called} model.kcrf {rows}")
    assert done.returncode == 0, done.stderr
    printed = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[1] if language == "c" else line[0] for line in printed] == [line[-1] for line in lines]
    if language == "c":
        assert [f"{line[1]}:{line[2]}" for line in printed] == [line[-2] for line in lines]
    for model, word, position in [
        ("missing.kcrf", "cannot be read", "x"),
        ("tag.c", "not a model", "x"),
        ("model.kcrf", "high", "a/B/high/1/1"),
    ]:
        done = run(f"{called} {model} {position}")
        assert done.returncode != 0 and word in done.stderr, (done.stdout, done.stderr)


def test_source_distribution_has_the_library():
    """Files of the C library, of its interfaces and examples are in the sdist, as MANIFEST.in says."""
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    patterns = [(folder, name) for kind, folder, *names in lines if kind == "recursive-include" for name in names]
    folders = [ROOT / "src/kcrf_runtime", ROOT / "examples", ROOT / "docs"]
    files = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    found = {
        path.name
        for path in files
        for folder, name in patterns
        if (ROOT / folder) in path.parents and fnmatch.fnmatch(path.name, name)
    }
    assert found == {path.name for path in files}
    assert {"kcrf_runtime.h", "internal.h", "model.c", "tag.c", "kcrf.mjs", "browser.html", "tag.rs"} <= found
