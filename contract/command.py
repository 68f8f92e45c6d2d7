"""What every command shares: --help, which prints its manual, the configuration options, and exit codes."""

import argparse
import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO, TypeVar

from contract import config_file, names
from contract.config import Config
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, open_folder, set_aside
from contract.errors import EX_DATAERR, EX_TEMPFAIL, EX_USAGE, BadInput, ColetorError
from contract.lines import fit_manual, say_if_possible, width_of
from contract.terminal import guard
from storage.errors import Damaged, UnknownFormat

DEFAULT_CRAWL = Path("crawl")
Number = TypeVar("Number", int, float)
# Errors of the machine, not of the input: the same command may work later.
MENDED_OUTSIDE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ENOBUFS,
    errno.EIO,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EAGAIN,
)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EX_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def make_parser(name: str, manual: str) -> Parser:
    description = fit_manual(manual, width_of(sys.stdout))
    parser = Parser(prog=f"bin/{name}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--crawl", type=Path, default=DEFAULT_CRAWL, metavar="DIR", help="the crawl folder (default: crawl)"
    )
    return parser


def add_configuration(parser: Parser) -> None:
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration file (default: that of the crawl, else pipeline.toml)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override one key; may be repeated"
    )


def at_least(least: Number, most: Number | None = None) -> Callable[[str], Number]:
    """The type of an option: a number of the type of `least`, not below it, and not above `most`."""

    def read(text: str) -> Number:
        number = type(least)(text)
        if not number >= least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, found {text}")
        if most is not None and number > most:
            raise argparse.ArgumentTypeError(f"expected {most} or less, found {text}")
        return number

    read.__name__ = "number"
    return read


def file_to_write(text: str) -> Path:
    """The type of an option: a file in a folder that exists; so a long work does not end without a place for it."""
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file in a folder that exists, found {text}")
    return path


def given(arguments: argparse.Namespace, *, with_set: bool = True) -> str:
    """The options to repeat in a suggested command: --crawl, and --set, which the crawl does not store."""
    settings = arguments.set if with_set else []
    return " " + shlex.join(["--crawl", str(arguments.crawl), *(word for text in settings for word in ("--set", text))])


def is_crawl_given(arguments: argparse.Namespace) -> bool:
    return arguments.crawl is not DEFAULT_CRAWL


def load_configuration(arguments: argparse.Namespace) -> Config:
    """For work outside of a crawl: that of --config, of the crawl of --crawl, or pipeline.toml; --set on top."""
    if arguments.config is None and is_crawl_given(arguments):
        return read_crawl_config(open_folder(arguments.crawl).path, arguments.set)
    return config_file.load(arguments.config, arguments.set)


def run(main: Callable[[], int | None], name: str) -> None:
    """Runs main and ends the process with the exit code that it returns or that its error carries."""
    fill_standard_descriptors()
    guard()
    try:
        code = run_main(main) or 0
    except ColetorError as error:
        code = fail(name, error, error.exit_code)
    except (Damaged, UnknownFormat) as error:
        code = fail(name, error, EX_DATAERR)
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE  # the reader of our output has ended, as `head` does
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        if error.errno in MENDED_OUTSIDE:
            code = fail(
                name, f"{path}{error.strerror}; no unfinished file counts, run it again when this is fixed", EX_TEMPFAIL
            )
        else:
            code = fail(name, f"{path}{error.strerror or repr(error)}", EX_DATAERR)
    except MemoryError:
        code = fail(
            name, "out of memory; run it again with more memory, or with smaller bounds in [blocks]", EX_TEMPFAIL
        )
    for stream in (sys.stdout, sys.stderr):
        flush_or_drop(stream)
    sys.exit(code)


def flush_or_drop(stream: TextIO | None) -> None:
    """Python flushes again at exit, and changes the exit code if that fails: what cannot be written goes nowhere."""
    if stream is None:  # our parent closed it
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fill_standard_descriptors() -> None:
    """Opens those of 0, 1 and 2 that our parent closed: a file that got such a number would be lost to a child."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= 2:
        os.set_inheritable(descriptor, True)
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)


def run_main(main: Callable[[], int | None]) -> int | None:
    try:
        return main()
    except BaseExceptionGroup as group:
        raise first_error(group) from None


def first_error(group: BaseExceptionGroup) -> BaseException:
    """The first single error of a group, such as trio raises."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error


def fail(name: str, message: object, code: int) -> int:
    say_if_possible(f"{name}: {message}", sys.stderr)  # where it is not, the exit code still tells
    return code


@contextmanager
def setting_aside(crawl: CrawlFolder, is_asked: bool = True) -> Iterator[None]:
    """Moves a damaged file of the crawl folder to corrupt/, if asked, and ends with exit code 65."""
    try:
        yield
    except Damaged as error:
        path = Path(error.path)
        if not is_asked or not path.is_relative_to(crawl.path) or path.parent == crawl.path / names.LOG:
            raise  # an entry of the log stays: the crawl cannot do without it, so it must be restored from a copy
        target = set_aside(crawl.path, path, str(error))
        done = f"set aside as {target}" if target else f"it was set aside before, see bin/status --crawl {crawl.path}"
        raise BadInput(f"{error}; {done}") from None
