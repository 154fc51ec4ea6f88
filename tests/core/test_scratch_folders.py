"""Scratch folders are private, and nothing of them stays."""

from __future__ import annotations

import os
import stat

import pytest

from kcrf_core.files import ScratchFolder


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
def test_a_folder_is_private_and_removed_with_all_that_is_in_it(tmp_path):
    folder = ScratchFolder(str(tmp_path))
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == 0o700
    with open(os.path.join(folder.path, "large"), "w", encoding="utf-8") as stream:
        stream.write("much")
    folder.remove()
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        ScratchFolder(str(tmp_path / "nowhere"))
    assert error.value.filename == str(tmp_path / "nowhere")


def test_an_interrupt_while_it_is_made_leaves_nothing(tmp_path, monkeypatch):
    make = os.mkdir

    def interrupted(*arguments):
        make(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ScratchFolder(str(tmp_path))
    assert os.listdir(tmp_path) == []
