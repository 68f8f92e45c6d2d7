"""Commands whose standard streams are closed or cannot be written to: the exit code still tells."""

import subprocess

import pytest

from tests.pipeline.judge import ROOT


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
@pytest.mark.sampled(2)
def test_the_exit_code_tells_where_nothing_can_be_printed(tmp_path, streams):
    command = f'exec "{ROOT}/bin/status" --crawl "{tmp_path}/none" {streams}'
    assert subprocess.run(["/bin/sh", "-c", command]).returncode == 78
