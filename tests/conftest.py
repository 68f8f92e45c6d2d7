"""What tests share: webs that end with the test, programs that a machine may lack, and the two runs of sampling.py."""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import hypothesis
import pytest

from synthweb import ChangingWeb
from tests.sampling import SEEDS, left_to_long_run, names_tests, sampling

READY_WITHIN_S = 300  # reached only where it hangs
LEFT = pytest.StashKey[int]()  # how many tests the quick run leaves out

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so a shell starts what it puts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # and the programs under test must not inherit it
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # so does nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser):
    group = parser.getgroup("coletor")
    group.addoption("--all", action="store_true", dest="is_complete", help="run every test, every sweep in full")
    group.addoption("--sample-seed", type=int, help="chooses the samples; default: random, with --all 0")


def pytest_configure(config):
    options, workerinput = config.option, getattr(config, "workerinput", {})  # of pytest-xdist; see below
    if options.sample_seed is None:
        options.sample_seed = 0 if options.is_complete else random.SystemRandom().randrange(1, SEEDS)
    options.leaves_long = not options.is_complete and not names_tests(config)
    vars(options).update(workerinput.get("sampling", {}))
    sampling.is_complete, sampling.seed = options.is_complete, options.sample_seed
    config.stash[LEFT] = 0
    hypothesis.settings.register_profile(
        "coletor",
        max_examples=sampling.examples(100),
        database=None,  # the seed repeats a failure
        deadline=None,  # no time that load can break
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("coletor")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """The workers choose as the process that started them does."""
    options = node.config.option
    node.workerinput["sampling"] = {name: getattr(options, name) for name in ("sample_seed", "leaves_long")}


def pytest_sessionstart(session):
    reporter, options = session.config.pluginmanager.get_plugin("terminalreporter"), session.config.option
    if reporter and not hasattr(session.config, "workerinput"):
        run = "the long run" if options.is_complete else "the quick run"
        reporter.write_line(f"{run}, --sample-seed {options.sample_seed}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if getattr(item.function, "is_hypothesis_test", False):
            hypothesis.seed(config.option.sample_seed)(item.function)
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)
    if config.option.leaves_long:
        left = left_to_long_run(items, config.option.sample_seed)
        items[:] = [item for item in items if item not in left]
        config.stash[LEFT] = len(left)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash[LEFT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    node.config.stash[LEFT] = max(node.config.stash[LEFT], getattr(node, "workeroutput", {}).get("left", 0))


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[LEFT]:
        terminalreporter.write_line(f"{config.stash[LEFT]} tests are left to bin/test --all")


@contextmanager
def serve_web(folder: Path, seed: int, servers: int) -> Iterator[tuple[Path, int]]:
    """Serves a synthetic web of a seed and size until the block ends; gives its state folder and port."""
    state = folder / f"web-{seed}-{servers}"
    with serve_words(state, "serve", "--seed", str(seed), "--servers", str(servers)) as port:
        yield state, port


@contextmanager
def serve_words(state: Path, *words: str) -> Iterator[int]:
    """Runs `python -m synthweb` with these words until the block ends; gives its port."""
    state.mkdir()
    command = [sys.executable, "-P", "-m", "synthweb", *words, "--port", "0", "--state", str(state), "--until-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + READY_WITHIN_S
        while not (state / "ready.json").exists():
            assert process.poll() is None and time.monotonic() < deadline, "the web did not start"
            threading.Event().wait(0.01)
        yield json.loads((state / "ready.json").read_bytes())["port"]
        process.stdin.close()


@pytest.fixture
def synthetic_web(tmp_path):
    """A function that serves a web of a seed and size for this test alone; it gives its state folder and port."""
    with ExitStack() as webs:
        yield lambda seed, servers: webs.enter_context(serve_web(tmp_path, seed, servers))


@pytest.fixture(scope="module")
def changing_webs(tmp_path_factory):
    """A function that serves a changing web of a seed and size, each time another one.

    It gives its state folder and the web. `sitemaps`: its servers have sitemaps.
    """

    with ExitStack() as webs:

        def serve(seed: int, servers: int, pages: int, sitemaps: bool = False) -> tuple[Path, ChangingWeb]:
            state = tmp_path_factory.mktemp("changing") / "web"
            words = ("changing", "--seed", seed, "--servers", servers, "--pages", pages)
            port = webs.enter_context(serve_words(state, *map(str, words), *["--sitemaps"] * sitemaps))
            return state, ChangingWeb(seed, servers, pages, port, sitemaps=sitemaps)

        yield serve


@pytest.fixture(scope="session")
def libfaketime() -> str:
    """The library that sets the clock of a process."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("faketime is not installed")
    return str(found[0])


@pytest.fixture(scope="session")
def make_once(tmp_path_factory):
    """A function that makes a folder once per session, also where several processes run its tests.

    It gives the folder.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, fill) -> Path:
        folder = shared / name
        with open(shared / f"{name}.lock", "a+") as lock:  # not empty: the folder is whole
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.fstat(lock.fileno()).st_size:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                lock.write("made")
        return folder

    return make


@pytest.fixture
def needs():
    """Skips where a program is missing; with CI=true that is a failure."""

    def check(program: str) -> str:
        path = shutil.which(program)
        if path is None and os.environ.get("CI") == "true":
            pytest.fail(f"{program} is not installed, and CI installs it")
        if path is None:
            pytest.skip(f"{program} is not installed")
        return path

    return check


@pytest.fixture
def small_disk():
    """Mounts a tmpfs of so many kB, and gives a function that changes its size; needs root."""
    mounted = []

    def mount(folder, size_kb: int):
        folder.mkdir()
        run = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", folder], capture_output=True, text=True
        )
        if run.returncode:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
                f"cannot mount a small disk: {run.stderr.strip()}"
            )
        mounted.append(folder)
        return lambda more_kb: subprocess.run(["mount", "-o", f"remount,size={more_kb}k", folder], check=True)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
