"""Makes or mends .venv: one process at a time, whole or not stamped."""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"

EX_TEMPFAIL = 75
EX_CONFIG = 78


def main(extra: str) -> int:
    if importlib.util.find_spec("ensurepip") is None:
        say("this Python cannot make a virtual environment: install its venv package (Debian: apt install python3-venv).")
        return EX_CONFIG
    try:
        lock = open(ROOT / ".venv.lock", "w")
    except OSError as error:
        say(f"cannot write to {ROOT} to make .venv there ({error.strerror}).")
        return EX_CONFIG
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the second of two that start at once waits here, then finds all done
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
        shutil.rmtree(VENV, ignore_errors=True)
        venv.create(VENV, with_pip=True, symlinks=True)
    target = str(ROOT) if extra == "core" else f"{ROOT}[{extra}]"
    pip = [VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run = subprocess.run(
        [*pip, "--constraint", LOCK, "--config-settings", "editable_mode=compat", "--editable", target],  # a plain .pth: starts fastest
        env={**os.environ, "PIP_CONSTRAINT": str(LOCK)},  # reaches the build environment of the project too
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    if run.returncode:
        sys.stderr.write(run.stdout)
        say("pip could not install the packages of requirements.lock (see above); run the command again when it can.")
        return EX_TEMPFAIL
    subprocess.run([VENV / "bin" / "python", "-P", ROOT / "environment" / "compile.py"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stamp.parent.mkdir(exist_ok=True)
    aside = stamp.with_suffix(".new")
    aside.write_bytes(wanted)
    aside.rename(stamp)
    return 0


def works(python: Path) -> bool:
    try:
        return subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def say(sentence: str) -> None:
    print(f"coletor: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
