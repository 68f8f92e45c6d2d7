"""Makes or repairs .venv. One process at a time; only a complete .venv gets its stamp."""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"

LINES_SHOWN = 40  # of the output of pip, if it fails
EX_TEMPFAIL = 75
EX_CONFIG = 78


def main(extra: str) -> int:
    if importlib.util.find_spec("ensurepip") is None:
        say(
            "this Python cannot make a virtual environment: install its venv package (Debian: apt install python3-venv)"
        )
        return EX_CONFIG
    try:
        lock = open(ROOT / ".venv.lock", "w")
    except OSError as error:
        say(f"cannot write to {ROOT} to make .venv there ({error.strerror}).")
        return EX_CONFIG
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two that start at once, the second waits here and then finds all done
        stamp = VENV / "installed" / extra
        if is_current(stamp):
            return 0
        return install(extra, stamp)


def is_current(stamp: Path) -> bool:
    return (VENV / "bin" / "python").exists() and stamp.exists() and stamp.read_bytes() == LOCK.read_bytes()


def install(extra: str, stamp: Path) -> int:
    wanted = LOCK.read_bytes()
    say(f"installing what '{extra}' needs into .venv (once, about a minute) ...")
    if not works(VENV / "bin" / "python"):
        show("making .venv")
        shutil.rmtree(VENV, ignore_errors=True)
        venv.create(VENV, with_pip=True, symlinks=True)
    target = str(ROOT) if extra == "core" else f"{ROOT}[{extra}]"
    pip = [VENV / "bin" / "python", "-m", "pip", "install", "--progress-bar", "off", "--disable-pip-version-check"]
    run = subprocess.Popen(
        # editable_mode=compat makes a plain .pth file, which starts fastest.
        [*pip, "--constraint", LOCK, "--config-settings", "editable_mode=compat", "--editable", target],
        # PIP_CONSTRAINT also reaches the build environment of the project.
        env={**os.environ, "PIP_CONSTRAINT": str(LOCK), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    last_lines = follow(run.stdout)
    if run.wait():
        show("")
        sys.stderr.writelines(last_lines)
        say(
            "pip could not install the packages of requirements.lock; its last lines are above. Run the command again "
            "once what they name is mended."
        )
        return EX_TEMPFAIL
    show("compiling")
    subprocess.run(
        [VENV / "bin" / "python", "-P", ROOT / "environment" / "compile.py"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stamp.parent.mkdir(exist_ok=True)
    aside = stamp.with_suffix(".new")
    aside.write_bytes(wanted)
    aside.rename(stamp)
    show("")
    return 0


def follow(lines) -> list[str]:
    """Shows the progress of pip from what it prints; returns its last lines."""
    last, collected = deque(maxlen=LINES_SHOWN), 0
    for line in lines:
        last.append(line)
        words = line.split()
        if line.startswith(("Collecting ", "Processing ")) and len(words) > 1:  # the second: a file on this machine
            collected += 1
            show(f"package {collected}: {words[1].rpartition('/')[2]}")
        elif line.startswith("Installing collected packages:"):
            number = line.count(",") + 1
            show("")
            say(f"{number} package{'s' * (number != 1)} collected, installing ...")
    return list(last)


def show(text: str) -> None:
    """Shows the current step on a terminal, over the previous one; an empty text clears it."""
    if sys.stderr.isatty():
        width = (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
        line = f"coletor: {text} ..." if text else ""
        print("\r" + line[:width].ljust(width) + ("" if text else "\r"), end="", file=sys.stderr, flush=True)


def works(python: Path) -> bool:
    try:
        return subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def say(sentence: str) -> None:
    print(f"coletor: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
