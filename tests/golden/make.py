"""Makes the golden crawl anew, after a format has changed on purpose: python -m tests.golden.make

A few cycles of a small synthetic web. The folder is committed; tests read it with today's programs and make it again.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from contract import config_file as configuration
from contract import names
from contract.crawl_folder import create
from supervise.demo import SETTINGS
from supervise.seed import leave
from tests.golden import GOLDEN, SHOWN, SUFFIX_LIST, shown_name

ROOT = Path(__file__).resolve().parent.parent.parent
CYCLES = 3


def main() -> None:
    state = (
        Path(tempfile.gettempdir()) / "coletor-golden"
    )  # its name is in the plans and the configuration, so it is the same every time
    with state_folder(state):
        web = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "synthweb",
                "serve",
                "--seed",
                "6",
                "--servers",
                "4",
                "--port",
                "0",
                "--state",
                state,
                "--until-eof",
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        web.stderr.readline()  # said once it listens
        shutil.rmtree(GOLDEN, ignore_errors=True)
        GOLDEN.mkdir()
        (GOLDEN / "public_suffix_list.dat").write_text(SUFFIX_LIST)
        (GOLDEN / "log").mkdir()
        (state / "pipeline.toml").write_text(SETTINGS.format(hosts="hosts"))
        create(GOLDEN, 2, hash_seed=17, config=configuration.load(state / "pipeline.toml"))
        leave(GOLDEN, json.loads((state / "ready.json").read_bytes())["seeds"])
        subprocess.run([ROOT / "bin/crawl", "--crawl", GOLDEN, "--cycles", str(CYCLES)], check=True)
        web.stdin.close()
        web.wait()
    for name in (names.LOCK, names.LIVE, names.MESSAGES, names.LOG_SUMMARY, names.SLOTS):  # of a run, not of the crawl
        (GOLDEN / name).unlink()
    shutil.rmtree(GOLDEN / names.JOURNAL)
    write_shown()


def write_shown() -> None:
    folder = GOLDEN.parent / "shown"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in SHOWN:
        shown = subprocess.run(
            [ROOT / "bin/show", "--crawl", GOLDEN, path, "--json", "--limit", "5"], check=True, capture_output=True
        )
        (folder / shown_name(path)).write_bytes(shown.stdout)


@contextmanager
def state_folder(path: Path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    yield
    shutil.rmtree(path)


if __name__ == "__main__":
    main()
