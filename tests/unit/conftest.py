"""tests/unit has no process and no socket: a test here that starts one or connects one fails.

Such a test belongs elsewhere: tests/stages runs one program, tests/pipeline the ring, tests/crash faults.
"""

import sys

import pytest

FORBIDDEN = {
    "subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn",
    "socket.bind", "socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname",
}  # fmt: skip
watched: list[str] | None = None  # what the running test did; None outside of tests


def watch(event: str, _arguments: tuple) -> None:
    if watched is not None and event in FORBIDDEN:
        watched.append(event)
        raise AssertionError(f"{event} in tests/unit, which has no process and no socket: see tests/unit/conftest.py")


sys.addaudithook(watch)  # stays for the process: it does nothing while another folder's tests run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    global watched
    watched = []
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    global watched
    try:
        return (yield)
    finally:
        done, watched = watched, None
        if done:  # also where the program swallowed the error
            pytest.fail(f"{item.nodeid}: {', '.join(sorted(set(done)))}; tests/unit has no process and no socket")
