"""A packed column opens in tools that people already have."""

import io
import subprocess

import numpy as np
import pytest

from storage import columns


@pytest.mark.parametrize("rows", [columns.FRAME_ROWS, columns.FRAME_ROWS + 1])
@pytest.mark.parametrize("pieces", [1, 3])
def test_zstdcat_unpacks_a_column(tmp_path, needs, rows, pieces):
    values = (np.arange(rows) % 7).astype(np.uint8)
    writer = columns.ColumnsWriter(tmp_path, {"state": "u1"}, frozenset(("state",)))
    for part in np.array_split(values, pieces):
        writer.append({"state": part})
    writer.close()
    unpacked = subprocess.run([needs("zstdcat"), tmp_path / "state.npy.zst"], capture_output=True, check=True).stdout
    assert np.array_equal(np.load(io.BytesIO(unpacked)), values)
