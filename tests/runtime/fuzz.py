"""Damage models of every kind that the C library takes, under sanitizers: `make fuzz-runtime`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "kcrf_runtime"
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "core")]


def main() -> int:
    from test_runtime import MODELS, random_model, text

    from kcrf_core.model import runtime_image
    from kcrf_core.runtime import QUANTIZED

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    run = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, model, data = (Path(folder) / name for name in ("fuzz", "model", "data"))
        sources = [ROOT / "tests/runtime/fuzz.c", *(LIBRARY / f"{name}.c" for name in ("model", "features", "decode"))]
        flags = ["-std=c99", "-O1", "-g", "-DMOST_KNOWN=64", "-DSPARE(bytes)=1", "-fsanitize=address,undefined"]
        flags += ["-fno-sanitize-recover=undefined", f"-I{LIBRARY}"]
        subprocess.run(["cc", *flags, "-o", program, *sources, "-lm"], check=True)
        data.write_text(text(5, 12, 3))
        cases = [(name, form) for name in MODELS for form in QUANTIZED]
        for name, form in cases:
            features, options = MODELS[name]
            model.write_bytes(runtime_image(random_model(features, **options)[0], form))
            each = str(-(-run.files // len(cases)))
            # GCC 13 puts variables of 64 bytes at odd places where it looks for uses after return, and AVX-512 fails.
            sanitizer = "allocator_may_return_null=1:detect_leaks=0:detect_stack_use_after_return=0"
            limits = {"ASAN_OPTIONS": sanitizer}
            done = subprocess.run(
                [program, model, data, each, str(run.seed)], env=limits, capture_output=True, text=True
            )
            print(f"{name}, {form}: {done.stdout.strip()}", flush=True)
            if done.returncode:
                print(done.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
