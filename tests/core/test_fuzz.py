"""Damaged and hostile input of every kind: a refusal of one line, or a use that does no harm. See `make fuzz`."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from fuzz import Targets, finding
from kcrf_core.config import load_yaml
from kcrf_core.config.yaml_text import DEEPEST, MOST_CHARACTERS
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.files import read_container, write_container
from kcrf_core.files.containers import MAGIC


@pytest.mark.parametrize("cases", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutations_of_every_kind_of_input(tmp_path, cases):
    targets = Targets(tmp_path)
    found = [(seed, what) for seed in range(cases) if (what := finding(targets, seed)) is not None]
    assert not found


@pytest.mark.parametrize("seed", [103786, 107848], ids=["pivots of 1e308", "pivots of other features"])
def test_what_was_found_before(tmp_path, seed):
    assert finding(Targets(tmp_path), seed) is None


def compressed_container(size):
    """A few kilobytes that would become `size` bytes."""
    header = {"magic": MAGIC, "kind": "model", "format": 1, "version": "0", "arrays": ["x"]}
    stream = io.BytesIO()
    arrays = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), "x": np.zeros(size, np.uint8)}
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def test_what_is_small_stays_small(tmp_path):
    path = tmp_path / "bomb.npz"
    path.write_bytes(compressed_container(50_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(FileFormatError, match="compressed"):
        read_container(path, "model")


def test_members_that_share_their_bytes(tmp_path):
    """Many entries of the directory for one member: each is small, together they are not."""
    path = tmp_path / "bomb.npz"
    write_container(path, "model", {}, {"x": np.zeros(10_000)})
    with zipfile.ZipFile(path, "a") as archive:
        info = archive.getinfo("x.npy")
        for number in range(50):
            again = zipfile.ZipInfo(f"y{number}.npy")
            for name in ("header_offset", "file_size", "compress_size", "CRC", "compress_type"):
                setattr(again, name, getattr(info, name))
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
        archive._didModify = True
    with pytest.raises(FileFormatError, match="larger than the file"):
        read_container(path, "model")


def test_headers_nested_without_end(tmp_path):
    path = tmp_path / "deep.npz"
    np.savez(path, header=np.frombuffer(b"[" * 100_000, np.uint8))
    with pytest.raises(FileFormatError):
        read_container(path, "model")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "levels"),
        ("a: " + "[" * 100_000, "levels"),
        ("a: &x [*x]", "alias"),
        ("\n".join(["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]), ":2: an alias"),
        ("a: " + "x" * MOST_CHARACTERS, "too many"),
        ('a: !!python/object/apply:os.system ["true"]', "not valid"),
        ("a: !!python/name:os.system", "not valid"),
    ],
    ids=["deep", "deeper", "in itself", "laughs", "long", "call", "name"],
)
def test_yaml_that_asks_for_too_much(text, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        load_yaml(text, "config.yaml")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
