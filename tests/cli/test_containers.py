"""Images of kcrf-tag and of the example of a service."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for folder in ("examples", "docs") for path in (ROOT / folder).rglob("Containerfile*"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_base_images_are_arguments_and_copied_files_exist(path):
    """No registry is named: an image is based on nothing, or on the one that a user names."""
    text, stages = path.read_text("utf-8"), set()
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    assert not re.search(r"\b[\w-]+(\.[\w-]+)+/[\w-]+", re.sub(r"\$PWD\S*", "", text).replace("examples/", "")), (
        "a host"
    )
    for keyword, *words in lines:
        if keyword == "ARG":
            assert words == ["BASE"]
        elif keyword == "FROM":
            assert words[0] in {"scratch", "${BASE}"} | stages
            stages |= set(words[2:])
        elif keyword == "COPY" and not words[0].startswith("--from="):
            for name in words[:-1]:
                assert name == "kcrf-tag" or (ROOT / name).exists(), name
    assert {"USER", "ENTRYPOINT"} <= {line[0] for line in lines} or "cluster" in path.parts


@pytest.mark.slow
def test_image_of_the_program_labels(kcrf, trained, first_accents, tmp_path):
    """Where buildah runs: the image has one file, and what it prints is what `kcrf tag` prints."""
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("buildah is not installed, or needs root privileges here")
    buildah = ["buildah", "--root", tmp_path / "store", "--runroot", tmp_path / "run", "--storage-driver", "vfs"]

    def run(*arguments: object, **options: object) -> bytes:
        return subprocess.run([*buildah, *arguments], check=True, stdout=subprocess.PIPE, **options).stdout

    build, data = tmp_path / "build", tmp_path / "data"
    build.mkdir()
    data.mkdir()
    sources = sorted((ROOT / "src" / "kcrf_runtime").glob("*.c"))
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-static"]
    subprocess.run(["cc", *flags, "-o", build / "kcrf-tag", *sources, "-lm", "-lpthread"], check=True)
    assert kcrf("export", trained, "-o", data / "model.kcrf", "--quantize", "none").code == 0
    run("build", "--isolation", "chroot", "-q", "-f", ROOT / "examples" / "Containerfile.tag", "-t", "kcrf-tag", build)
    container = run("from", "--pull-never", "localhost/kcrf-tag").decode().strip()
    mounted = Path(run("mount", container).decode().strip())
    assert [path.name for path in mounted.rglob("*") if path.is_file()] == ["kcrf-tag"]
    command = ["--isolation", "chroot", "-v", f"{data}:/data:ro", container, "--", "/kcrf-tag", "/data/model.kcrf"]
    with open(first_accents(20), "rb") as text:
        found = run("run", *command, stdin=text)
    assert found == kcrf("tag", "-m", trained, first_accents(20)).out
    run("umount", container)
    run("rm", container)
