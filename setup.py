"""Build the Cython core. All metadata is in pyproject.toml.

KCRF_DEBUG=1 turns bounds checks back on, for `make test-debug`; KCRF_SANITIZE=1 compiles sanitizers in, for
`make sanitize`.
"""

import glob
import os
import re
import sys

import setuptools
import setuptools.command.build_ext
from Cython.Build import cythonize
from setuptools import Extension

SANITIZE, DEBUG = (os.environ.get(name, "") not in ("", "0") for name in ("KCRF_SANITIZE", "KCRF_DEBUG"))

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
}

# -O3 lets GCC and Clang vectorise the inner loops; there is no -ffast-math and no -march, so that
# one build serves every machine of its kind and infinities keep their meaning. Products are fused with sums only where
# the source says so: compilers do it in one loop and not in the next, and the bits of a sum must not depend on that.
# MSVC optimises by default, fuses nothing, and knows `restrict` from C11 on.
MSVC = ["/std:c11"]
COMPILE_ARGS = MSVC if sys.platform == "win32" else ["-O3", "-ffp-contract=off"]
# Memory views and the like are no inner loops: they are compiled in less than half the time without -O3.
UTILITY_ARGS = MSVC if sys.platform == "win32" else ["-O1", "-ffp-contract=off"]
LINK_ARGS = []
# Of this process: a container or taskset may leave it fewer than the machine has.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
if DEBUG:
    COMPILE_ARGS = UTILITY_ARGS  # bounds are checked, nothing is timed
if sys.platform != "win32" and "-g" not in os.environ.get("CFLAGS", "").split():
    # Python's own flags ask for debugging information, a fifth of the time that the compiler takes.
    COMPILE_ARGS, UTILITY_ARGS = [*COMPILE_ARGS, "-g0"], [*UTILITY_ARGS, "-g0"]
if SANITIZE:
    LINK_ARGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    COMPILE_ARGS = UTILITY_ARGS = ["-O1", "-g", "-ffp-contract=off", "-fno-omit-frame-pointer", *LINK_ARGS]

CORE = "src/kcrf_core"
HEADERS = sorted(glob.glob(f"{CORE}/*/*.h"))
# Text, tables and calls of others: no loop over numbers in these gains by -O3, and no bit of a result depends on it.
LIGHT = {
    "maps._conjunctions",
    "system._lapack",
    "system.team",
    "exchange._double_array",
}
# The C library, which is also built without Python (make kcrf-tag), and the module that it is a part of.
LIBRARY = [f"src/kcrf_runtime/{name}.c" for name in ("model", "features", "decode")]
WITH_LIBRARY = "runtime._runtime"
WITH_TEXTS = "corpora._text"  # which shares a header of the library
SHARED = "kcrf_core._cyutility"  # memory views and the like, compiled once for all modules


def extension(source):
    name = os.path.relpath(source, "src")[: -len(".pyx")].replace(os.sep, ".")
    library, headers = [], HEADERS
    if name.partition(".")[2] == WITH_LIBRARY:
        library, headers = LIBRARY, sorted(glob.glob("src/kcrf_runtime/*.h"))
    if name.partition(".")[2] == WITH_TEXTS:
        headers = [*HEADERS, "src/kcrf_runtime/texts.h"]
    return Extension(
        name,
        [source, *library],
        include_dirs=sorted(set(map(os.path.dirname, headers))),
        depends=[*headers, *library],
        extra_compile_args=UTILITY_ARGS if name.partition(".")[2] in LIGHT else COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
    )


class build_ext(setuptools.command.build_ext.build_ext):
    """Compiles extensions side by side, one for each core unless `--parallel` says how many."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or CORES


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def package_page(readme, project):
    """README.md as a package index shows it, where relative links lead nowhere.

    They lead below the address `Source` of [project.urls] in pyproject.toml. Without one, the text is followed by the
    path of the file in the source distribution, and images are left out.
    """
    source = re.search(r'^Source = "(.+?)/?"$', project, re.MULTILINE)

    def link(found):
        image, text, target = found.groups()
        if re.match(r"\w+:|#", target):
            return found[0]
        if source:
            return f"{image}[{text}]({source[1]}/{target})"
        return "" if image else text if text == target else f"{text} (`{target}`)"

    return re.sub(r"(!?)\[([^]]*)\]\(([^)\s]+)\)", link, readme)


if __name__ == "__main__":  # as it is for pip, too
    setuptools.setup(
        cmdclass={"build_ext": build_ext},
        long_description=package_page(*map(read, ("README.md", "pyproject.toml"))),
        long_description_content_type="text/markdown",
        ext_modules=cythonize(
            [
                # The longest first: the last to be compiled should not keep one core waiting for the other.
                *map(extension, sorted(glob.glob(f"{CORE}/*/*.pyx"), key=os.path.getsize, reverse=True)),
                Extension(SHARED, [SHARED + ".c"], extra_compile_args=UTILITY_ARGS, extra_link_args=LINK_ARGS),
            ],
            build_dir="build/debug-cython" if DEBUG else "build/cython",
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            nthreads=CORES,
        ),
    )
