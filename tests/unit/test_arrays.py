"""storage/arrays.py: heads of files that are damaged, and files that a full disk has no room for."""

import errno
import resource

import numpy as np
import pytest

from storage.arrays import make_mapped, open_array
from storage.errors import Damaged


def test_a_head_that_is_no_head_is_damage(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    content, refused = (tmp_path / "x.npy").read_bytes(), 0
    for number in range(128):
        for bit in range(8):
            changed = bytearray(content)
            changed[number] ^= 1 << bit
            (tmp_path / "x.npy").write_bytes(changed)
            try:
                open_array(tmp_path / "x.npy", "<i8")
            except Damaged as error:
                assert error.path == tmp_path / "x.npy"
                refused += 1
    assert refused > 100


def test_a_mapped_file_that_has_no_room_is_an_error_before_it_is_written(tmp_path):
    """It would be a bus error, which ends the process without a word, when it is written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
        with pytest.raises(OSError) as refused:
            make_mapped(tmp_path / "full", "<i8", 1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert refused.value.errno == errno.EFBIG and refused.value.filename == str(tmp_path / "full")
    mapped = make_mapped(tmp_path / "x", "<i8", 3)
    mapped += 2
    assert np.fromfile(tmp_path / "x", "<i8").tolist() == [2, 2, 2]
    assert len(make_mapped(tmp_path / "none", "u1", 0)) == 1
