"""Scratch folders of processes that were killed are removed by the next one, and no others."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest

from kcrf_core.files import ScratchFolder, scratch_folders

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such locks")

MAKING = """
import sys, time
from kcrf_core.files import ScratchFolder
folder = ScratchFolder(sys.argv[1])
open(folder.path + "/large", "w").write("much")
print(folder.path, flush=True)
time.sleep(60)
"""


@pytest.fixture
def living(tmp_path):
    """A process with a scratch folder, and the path of that."""
    other = subprocess.Popen([sys.executable, "-c", MAKING, tmp_path], stdout=subprocess.PIPE, text=True)
    yield other, other.stdout.readline().strip()
    kill(other)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_what_a_killed_process_left_is_removed(living, tmp_path):
    process, path = living
    before = ScratchFolder(str(tmp_path))
    assert os.path.exists(path + "/large")  # it lives
    kill(process)
    after = ScratchFolder(str(tmp_path))
    assert not os.path.exists(path) and os.path.exists(before.path)
    assert stat.S_IMODE(os.stat(after.path).st_mode) == 0o700
    after.remove()
    before.remove()
    assert os.listdir(tmp_path) == []


def test_what_is_not_known_to_be_scratch_stays(living, tmp_path, monkeypatch):
    """Folders that were moved to their place, and those of other machines."""
    process, path = living
    kept = ScratchFolder(str(tmp_path))
    kept.release()
    kill(process)
    monkeypatch.setattr(scratch_folders.socket, "gethostname", lambda: "another machine")
    ScratchFolder(str(tmp_path)).remove()
    assert os.path.exists(path) and os.listdir(kept.path) == []
    monkeypatch.undo()
    ScratchFolder(str(tmp_path)).remove()
    assert os.listdir(tmp_path) == [os.path.basename(kept.path)]


def test_a_place_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        ScratchFolder(str(tmp_path / "nowhere"))
    assert error.value.filename == str(tmp_path / "nowhere")


def test_a_folder_that_is_released_is_never_taken_for_abandoned(tmp_path, monkeypatch):
    """Somebody looks while it is being released."""
    kept, unlink = ScratchFolder(str(tmp_path)), os.unlink

    def look(path):
        monkeypatch.undo()
        ScratchFolder(str(tmp_path)).remove()
        unlink(path)

    monkeypatch.setattr(os, "unlink", look)
    kept.release()
    assert os.listdir(tmp_path) == [os.path.basename(kept.path)]


@pytest.mark.parametrize("moment", ["mkdir", "rename"])
def test_an_interrupt_while_it_is_made_leaves_nothing(tmp_path, monkeypatch, moment):
    act = getattr(os, moment)

    def interrupted(*arguments):
        act(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(scratch_folders.os, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ScratchFolder(str(tmp_path))
    assert os.listdir(tmp_path) == []
