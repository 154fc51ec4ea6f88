"""Basis files, which `select-basis` writes for `train`: the pivots of terms, with the encoding that they are under."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import Config
from ..encoding import Encoding
from ..files import Contents, content_digest, read_container, write_container
from ..kernels import Inputs, Kernel, kernel_to_dict
from .stored_terms import pack_pivots, read_terms, stored_config


@dataclass(frozen=True)
class TermBasis:
    """The pivots of one node term."""

    name: str
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs  # [M]
    lines: np.ndarray  # [M] int64, where they stand in the training data
    curve: np.ndarray  # [M+1] float64, unexplained part of the trace with the first 0..M of them


@dataclass(frozen=True)
class StoredBasis:
    encoding: Encoding
    config: Config
    terms: tuple[TermBasis, ...]


def save_basis(path: str | os.PathLike[str], basis: StoredBasis, data_digest: str) -> None:
    header, arrays = _pack_basis(basis)
    write_container(path, "basis", {**header, "digest": data_digest}, arrays)


def basis_digest(basis: StoredBasis) -> str:
    """SHA-256 of a basis."""
    return content_digest(*_pack_basis(basis))


def _pack_basis(basis: StoredBasis) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header, arrays = basis.encoding.pack()
    header |= {"config": basis.config.to_dict(), "terms": []}
    for number, term in enumerate(basis.terms):
        at = f"term{number}"
        header["terms"].append(
            {"name": term.name, "features": list(term.features), "kernel": kernel_to_dict(term.kernel)}
        )
        arrays |= pack_pivots(term.pivots, term.lines, at)
        arrays[f"{at}.curve"] = term.curve
    return header, arrays


def load_basis(path: str | os.PathLike[str]) -> StoredBasis:
    return unpack_basis(read_container(path, "basis"))


def unpack_basis(contents: Contents) -> StoredBasis:
    encoding = Encoding.unpack(contents)
    terms = []
    for stored in read_terms(contents, encoding):
        kernel, (pivots, lines) = stored.kernel(), stored.pivots()
        curve = stored.array("curve", "float64", 1)
        if len(curve) != len(lines) + 1:
            raise contents.error(f"'{stored.at}.curve' does not fit its pivots")
        terms.append(TermBasis(stored.name, stored.features, kernel, pivots, lines, curve))
    if not terms:
        raise contents.error("it has no pivots")
    return StoredBasis(encoding, stored_config(contents, contents.header.get("config")), tuple(terms))
