"""How much memory a run would take, for `--dry-run` and before work begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcrf_core.footprint import Footprint, footprint
from kcrf_core.memory import Budget

from . import render
from .files import write_out

if TYPE_CHECKING:
    from .files import Prepared


def memory_line(prepared: Prepared, budget: Budget) -> str:
    return _footprint(prepared, budget).summary()


def show_footprint(prepared: Prepared, memory: int | None, as_json: bool) -> None:
    """The estimate as data, on stdout."""
    found = _footprint(prepared, Budget(memory))
    write_out(render.as_json({"schema": 1, **found.to_dict()}) if as_json else "\n".join(found.lines()))


def _footprint(prepared: Prepared, budget: Budget) -> Footprint:
    return footprint(prepared.encoding, prepared.dataset, prepared.config, prepared.basis, budget)
