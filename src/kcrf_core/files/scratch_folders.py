"""Folders of scratch files, which are removed when the work that needs them ends or is interrupted."""

from __future__ import annotations

import os
import shutil

from .writing import naming, temporary_beside


class ScratchFolder:
    """A new folder that only its owner may look into, unless `mode` is another."""

    def __init__(self, place: str, mode: int = 0o700):
        self.path = temporary_beside(os.path.join(place, ""))
        try:
            with naming(place, self.path):
                os.mkdir(self.path, mode)
        except BaseException:  # an interrupt may come at any moment
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
