"""Build the Cython core. All metadata is in pyproject.toml.

KCRF_DEBUG=1 turns bounds checks back on, for `make test-debug`; KCRF_SANITIZE=1 compiles sanitizers in, for
`make sanitize`.
"""

import glob
import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

SANITIZE, DEBUG = (os.environ.get(name, "") not in ("", "0") for name in ("KCRF_SANITIZE", "KCRF_DEBUG"))

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "freethreading_compatible": True,
}

# -O3 lets GCC and Clang vectorise the inner loops; there is no -ffast-math and no -march, so that
# one build serves every machine of its kind and infinities keep their meaning.
COMPILE_ARGS = [] if sys.platform == "win32" else ["-O3"]
LINK_ARGS = []
if SANITIZE:
    LINK_ARGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    COMPILE_ARGS = ["-O1", "-g", "-fno-omit-frame-pointer", *LINK_ARGS]


MODULES = (
    "_chain",
    "_conjunctions",
    "_kernels",
    "_nbest",
    "_pictures",
    "_second_order",
    "_second_order_tangent",
    "_sparse",
    "_tangent",
    "_text",
)


def extension(name):
    return Extension(
        f"kcrf_core.{name}",
        [f"src/kcrf_core/{name}.pyx"],
        include_dirs=["src/kcrf_core"],
        depends=sorted(glob.glob("src/kcrf_core/*.h")),
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
    )


setup(
    ext_modules=cythonize(
        [extension(name) for name in MODULES],
        build_dir="build/debug-cython" if DEBUG else "build/cython",
        compiler_directives=DIRECTIVES,
    )
)
