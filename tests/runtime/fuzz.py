"""Damage models of every kind that the C library takes, under sanitizers: `make fuzz-runtime`.

The library opens and uses damaged models; the program kcrf-tag has damaged models and data, headers, byte order marks,
threads and paths of all lengths, with the sanitizers of memory and with that of threads.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "kcrf_runtime"
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "core")]
SANITIZERS = {
    "memory": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    "threads": ["-fsanitize=thread"],
}
# GCC 13 puts variables of 64 bytes at odd places where it looks for uses after return, and AVX-512 fails.
LIMITS = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0:detect_stack_use_after_return=0",
    "TSAN_OPTIONS": "report_thread_leaks=0",  # after an error the program does not wait for its threads
}


def compiled(path: Path, sanitizer: str, *sources: Path) -> Path:
    """Compile a program whose rooms have no spare bytes, and which remembers few values and reads short blocks."""
    small = ["-DMOST_KNOWN=64", "-DSPARE(bytes)=1", "-DREAD_SIZE=512"]
    flags = ["-std=c99", "-O1", "-g", *small, *SANITIZERS[sanitizer], f"-I{LIBRARY}"]
    library = [LIBRARY / f"{name}.c" for name in ("model", "features", "decode")]
    subprocess.run(["cc", *flags, "-o", path, *sources, *library, "-lm", "-lpthread"], check=True)
    return path


def fuzz_library(folder: Path, files: int, seed: int) -> int:
    from test_runtime import MODELS, random_model, text

    from kcrf_core.model import runtime_image
    from kcrf_core.runtime import QUANTIZED

    program, model, data = (
        compiled(folder / "fuzz", "memory", ROOT / "tests/runtime/fuzz.c"),
        folder / "m",
        folder / "d",
    )
    data.write_text(text(5, 12, 3))
    cases = [(name, form) for name in MODELS for form in QUANTIZED]
    for name, form in cases:
        features, options = MODELS[name]
        model.write_bytes(runtime_image(random_model(features, **options)[0], form))
        each = str(-(-files // len(cases)))
        done = subprocess.run([program, model, data, each, str(seed)], env=LIMITS, capture_output=True, text=True)
        print(f"{name}, {form}: {done.stdout.strip()}", flush=True)
        if done.returncode:
            print(done.stderr)
            return 1
    return 0


def random_data(rng: np.random.Generator, lines: list[str], columns: int, header: bool) -> bytes:
    """Return rows with or without labels, a mark and a header, some of them damaged."""
    rows, odd = lines[: rng.integers(len(lines))], 0.1 * (rng.random() < 0.2)
    rows = [f"{line}\t1.25e-7" if line and rng.random() < odd else line for line in rows]
    names = "\t".join([*(f"c{c}" for c in range(columns)), "label"])
    if header and rng.random() < 0.9:
        rows.insert(0 if rng.random() < 0.8 else len(rows) // 2, names)
    data = ("\ufeff" * (rng.random() < 0.5) + ("\r\n" if rng.random() < 0.2 else "\n").join(rows)).encode()
    if len(data) and rng.random() < 0.2:
        at = int(rng.integers(len(data)))
        data = data[:at] + bytes(rng.integers(256, size=rng.integers(1, 5), dtype=np.uint8)) + data[at + 1 :]
    return data


def fuzz_program(folder: Path, sanitizer: str, runs: int, seed: int) -> int:
    """Run kcrf-tag with one thread and with several: results are the same."""
    from test_runtime import MODELS, attributes, damaged, random_model, section, text

    from kcrf_core.model import runtime_image
    from kcrf_core.model.runtime_sections import META

    program, rng = compiled(folder / f"kcrf-tag-{sanitizer}", sanitizer, LIBRARY / "tag.c"), np.random.default_rng(seed)
    codes = dict.fromkeys(range(4), 0)
    # The sanitizer of threads of GCC before 14 crashes where the kernel spreads addresses widely.
    fixed = [setarch, "-R"] if (setarch := shutil.which("setarch")) is not None else []
    if subprocess.run([*fixed, program], capture_output=True).returncode not in codes:
        print(f"kcrf-tag, sanitizer of {sanitizer}: left out, as programs with it do not run here", flush=True)
        return 0
    for run in range(runs):
        name = str(rng.choice(["words", "numbers", "attributes", "second order, few pairs", "bonus", "templates"]))
        features, options = MODELS[name]
        image, header = bytearray(runtime_image(random_model(features, **options)[0])), bool(rng.random() < 0.5)
        if header and name != "attributes":
            struct.pack_into("<I", image, section(image, "meta")[0] + 4 * META.index("header"), 1)
        lines = (attributes if name == "attributes" else text)(int(rng.integers(1000)), 60, 3).split("\n")
        where = folder / f"{sanitizer}-{run}"
        for _ in range(rng.integers(4)):
            where /= "d" * int(rng.integers(1, 250))
        where.mkdir(parents=True)
        model, data = where / "model", where / "data"
        model.write_bytes(damaged(bytes(image), rng) if rng.random() < 0.3 else image)
        data.write_bytes(random_data(rng, lines, 3, header))
        marginals = [[], ["--marginals", "best"], ["--marginals", "all"]][rng.integers(3)]
        results = []
        for threads in (1, int(rng.integers(2, 6))):
            command = [*fixed, program, model, data, "-t", str(threads), *marginals]
            done = subprocess.run(command, env=LIMITS, capture_output=True)
            harmed = b"Sanitizer" in done.stderr or b"runtime error" in done.stderr
            if harmed or done.returncode not in codes:
                print(f"{sanitizer}, run {run}, {' '.join(map(str, command))}\n{done.stderr.decode()}")
                return 1
            results.append((done.returncode, done.stdout, done.stderr))
        codes[results[0][0]] += 1
        if results[0] != results[1]:
            print(f"{sanitizer}, run {run}: threads do not agree: {results}")
            return 1
    print(f"kcrf-tag, sanitizer of {sanitizer}: {runs} runs, exit codes {codes}", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000, help="damaged models; kcrf-tag runs twice for each 400")
    parser.add_argument("--seed", type=int, default=1)
    run = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = (fuzz_program(Path(folder), kind, -(-run.files // 400), run.seed) for kind in SANITIZERS)
        return max(programs) or fuzz_library(Path(folder), run.files, run.seed)


if __name__ == "__main__":
    sys.exit(main())
