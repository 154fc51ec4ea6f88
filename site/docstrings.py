"""Render docstrings of kcrf as Markdown: lists of parameters and doctests have a form of their own there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

# "name : explanation", continued on indented lines.
PARAMETER = re.compile(r"^(\w+(?:, \w+)*) : (.*(?:\n +\S.*)*)", re.MULTILINE)
DOCTEST = re.compile(r"^>>> .*(?:\n\S.*)*", re.MULTILINE)
SETTINGS = Path(__file__).parents[1] / "build" / "KernelCRF.txt"  # by site/pages.py


class Docstrings(griffe.Extension):
    """Extension of griffe, named in mkdocs.yml."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = SETTINGS.read_text(encoding="utf-8") if obj.name == SETTINGS.stem else obj.docstring.value
            obj.docstring.value = as_markdown(text)


def as_markdown(text: str) -> str:
    """Return a docstring with bullets for parameters and fences around doctests."""
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    return PARAMETER.sub(lambda found: f"- **{found[1]}**: {' '.join(found[2].split())}", text)
