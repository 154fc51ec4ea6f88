"""Files that are written whole or not at all: how private they are, and what errors call them."""

import errno
import os
import stat
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kcrf_core.files import read_container, replacing, write_container

posix = pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@posix
@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o400])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, umask, before):
    path = tmp_path / "model.npz"
    path.write_bytes(b"old")
    path.chmod(before)
    with replacing(path) as stream:
        stream.write(b"new")
        (temporary,) = (each for each in tmp_path.iterdir() if each != path)
        assert mode(temporary) & ~before == 0 or mode(temporary) == 0o600
    assert path.read_bytes() == b"new" and mode(path) == before
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_container_goes_to_devices_and_pipes(tmp_path, kind):
    arrays = {"numbers": np.arange(10.0)}
    if kind == "device":  # where every place is 0
        write_container(os.devnull, "model", {}, arrays)
        return
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_container(tmp_path / "pipe", "model", {}, arrays)
    (tmp_path / "model.npz").write_bytes(os.read(reader, 1 << 20))
    os.close(reader)
    stored = read_container(tmp_path / "model.npz", "model")
    np.testing.assert_array_equal(stored.array("numbers", "float64", 1), arrays["numbers"])


@posix
def test_a_new_file_obeys_the_umask(tmp_path, umask):
    for mask, expected in ((0o022, 0o644), (0o077, 0o600)):
        os.umask(mask)
        path = tmp_path / f"{mask}"
        with replacing(path) as stream:
            (temporary,) = tmp_path.glob(".kcrf-*")
            assert mode(temporary) == expected
            stream.write(b"new")
        assert mode(path) == expected


@posix
def test_a_link_stays_and_its_target_is_replaced(tmp_path, umask):
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "target").write_bytes(b"old")
    (folder / "target").chmod(0o600)
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(folder / "target")
    dangling.symlink_to(folder / "later")
    for each in (link, dangling):
        with replacing(each) as stream:
            stream.write(b"new")
        assert each.is_symlink() and each.read_bytes() == b"new"
    assert mode(folder / "target") == 0o600 and (folder / "later").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_stay_where_that_is_possible(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65533)
    path.chmod(0o640)
    with replacing(path) as stream:
        stream.write(b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode(path)) == (65534, 65533, 0o640)


@posix
def test_another_group_gets_no_more_than_everybody(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o664)
    real = os.stat

    def elsewhere(target, *more, **options):  # as if the file belonged to a group that this process is not in
        found = real(target, *more, **options)
        if str(target) != str(path):
            return found
        values = list(found)
        values[stat.ST_GID] = found.st_gid + 1
        return os.stat_result(values)

    def refused(*arguments):
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr(os, "stat", elsewhere)
    with replacing(path) as stream:
        stream.write(b"new")
    monkeypatch.undo()
    assert mode(path) == 0o644


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no lists of access rights here")
def test_a_list_of_access_rights_stays(tmp_path):
    """With such a list, the bits of the group say what any entry may have, and not what the group has."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    nobody = 0xFFFFFFFF
    # Owner rw, one more user r, group nothing, mask r, others nothing.
    entries = [(0x01, 6, nobody), (0x02, 4, 12345), (0x04, 0, nobody), (0x10, 4, nobody), (0x20, 0, nobody)]
    rights = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", rights)
    except OSError:
        pytest.skip("a file system without lists of access rights")
    with replacing(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new" and os.getxattr(path, "system.posix_acl_access") == rights


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_named(tmp_path):
    with pytest.raises(OSError) as failed, replacing("/dev/full") as stream:
        stream.write(b"x" * 100_000)
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, "/dev/full")
    with pytest.raises(OSError) as failed, replacing("/dev/full") as stream:
        stream.write(b"x")  # what fails is closing it
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, "/dev/full")


@posix
def test_a_container_of_any_size_can_be_written_to_a_device():
    """/dev/null is at 0 after every seek, which is no position of an archive."""
    arrays = {f"array{number}": np.zeros(1000) for number in range(20)}
    write_container("/dev/null", "model", {}, arrays)


@posix
def test_a_container_in_a_pipe_is_read_as_from_a_file(tmp_path):
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    arrays = {f"array{number}": np.arange(1000.0) + number for number in range(20)}
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(pipe.read_bytes)
        write_container(pipe, "model", {}, arrays)
        data = reading.result()
    read = read_container(pipe, "model", data=data).arrays
    assert read.keys() == arrays.keys()
    assert all(np.array_equal(read[name], array) for name, array in arrays.items())


def test_what_fails_elsewhere_is_not_laid_on_the_file(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(OSError) as failed, replacing(path):
        raise OSError(errno.EIO, "the input broke")
    assert failed.value.filename is None and not list(tmp_path.iterdir())


def test_an_empty_name_is_no_file():
    with pytest.raises(FileNotFoundError, match="empty name"), replacing(""):
        pass
