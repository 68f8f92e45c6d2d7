"""What tests share: synthetic webs that end with the test, and programs that a machine may lack."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

READY_WITHIN_S = 30

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so a shell starts what it puts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # and the programs under test must not inherit it


@pytest.fixture
def synthetic_web(tmp_path):
    """Starts a web of a seed and size; gives its state folder and port."""
    processes = []

    def start(seed: int, servers: int):
        state = tmp_path / f"web-{seed}-{servers}"
        state.mkdir()
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "synthweb",
                "serve",
                "--seed",
                str(seed),
                "--servers",
                str(servers),
                "--port",
                "0",
                "--state",
                str(state),
                "--until-eof",
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        processes.append(process)
        deadline = time.monotonic() + READY_WITHIN_S
        while not (state / "ready.json").exists():
            assert process.poll() is None and time.monotonic() < deadline, "the web did not start"
            threading.Event().wait(0.01)
        return state, json.loads((state / "ready.json").read_bytes())["port"]

    yield start
    for process in processes:
        process.stdin.close()
        process.wait()


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
