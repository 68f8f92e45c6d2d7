"""What is no file in the place of configuration.toml: commands refuse it and do not wait for it."""

import os
import subprocess
from pathlib import Path

import pytest

from contract import names
from contract.crawl_folder import create

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.name),
        lambda path: None,
    ],
)
@pytest.mark.sampled(2)
def test_what_is_no_file_is_refused_and_nobody_waits_for_it(tmp_path, make):
    crawl = create(tmp_path / "crawl", 1).path
    (crawl / names.CONFIGURATION).unlink()
    make(crawl / names.CONFIGURATION)
    for command in (["run-cycle"], ["seed", "http://a.test/"]):
        refused = subprocess.run(
            [ROOT / "bin" / command[0], "--crawl", crawl, *command[1:]], capture_output=True, text=True
        )
        assert (
            refused.returncode == 78
            and str(crawl / names.CONFIGURATION) in refused.stderr
            and "--config FILE" in refused.stderr
        )
    checked = subprocess.run([ROOT / "bin/check", "--crawl", crawl], capture_output=True, text=True)
    assert checked.returncode == 65 and "WRONG  the configuration is whole" in checked.stdout
