"""What every command shares: the manual as --help, the configuration options, and how an error becomes an exit code."""

import argparse
import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from contract import config as configuration
from contract import names
from contract.config import Config
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, open_folder, set_aside
from contract.errors import EX_DATAERR, EX_TEMPFAIL, EX_USAGE, BadInput, ColetorError
from contract.lines import fit_manual, say, width_of
from contract.terminal import guard
from storage.errors import Damaged, UnknownFormat

DEFAULT_CRAWL = Path("crawl")
# Errors that are the machine's and not the input's: the same command may work later.
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
    def error(self, message: str):
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
        help="configuration file (default: that of the crawl; without one, pipeline.toml)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override one key; may be repeated"
    )


def at_least(least):
    """The type of an option that is a number of this kind, not below `least`."""

    def read(text: str):
        number = type(least)(text)
        if not number >= least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, found {text}")
        return number

    read.__name__ = "number"
    return read


def given(arguments, *, with_set: bool = True) -> str:
    """The options for the next command to try: --crawl, and --set, which no crawl remembers."""
    settings = arguments.set if with_set else []
    return " " + shlex.join(["--crawl", str(arguments.crawl), *(word for text in settings for word in ("--set", text))])


def is_crawl_given(arguments) -> bool:
    return arguments.crawl is not DEFAULT_CRAWL


def load_configuration(arguments) -> Config:
    """For work outside of a crawl: that of --config, of the crawl that --crawl names, or the project's own; --set on top."""
    if arguments.config is None and is_crawl_given(arguments):
        return read_crawl_config(open_folder(arguments.crawl).path, arguments.set)
    return configuration.load(arguments.config, arguments.set)


def run(main: Callable[[], int | None], name: str) -> None:
    """Ends the process with the exit code that main returns or that its error carries."""
    guard()
    try:
        code = run_main(main) or 0
    except ColetorError as error:
        code = fail(name, error, error.exit_code)
    except (Damaged, UnknownFormat) as error:
        code = fail(name, error, EX_DATAERR)
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE  # the reader of our output went away, as `head` does
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in MENDED_OUTSIDE:
            code = fail(
                name,
                f"{place}{error.strerror}; nothing half-written counts, run it again when that is mended",
                EX_TEMPFAIL,
            )
        else:
            code = fail(name, f"{place}{error.strerror or repr(error)}", EX_DATAERR)
    except MemoryError:
        code = fail(name, "out of memory; run it again with more, or with smaller bounds in [blocks]", EX_TEMPFAIL)
    try:
        if sys.stdout is not None:  # closed by whoever started us
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again at exit, and complains
    sys.exit(code)


def run_main(main: Callable[[], int | None]) -> int | None:
    try:
        return main()
    except BaseExceptionGroup as group:
        raise first_error(group) from None


def first_error(group: BaseExceptionGroup) -> BaseException:
    """Of a group of errors, as trio raises them, the first single one."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error


def fail(name: str, message, code: int) -> int:
    say(f"{name}: {message}", sys.stderr)
    return code


@contextmanager
def setting_aside(crawl: CrawlFolder, is_asked: bool = True):
    """Moves a damaged file of the crawl folder to corrupt/, if that is asked for, and ends with exit code 65."""
    try:
        yield
    except Damaged as error:
        path = Path(error.path)
        if not is_asked or not path.is_relative_to(crawl.path) or path.parent == crawl.path / names.LOG:
            raise  # an entry of the log stays where it is: without it the crawl has no truth, and a copy must be put back
        target = set_aside(crawl.path, path, str(error))
        done = f"set aside as {target}" if target else f"it was set aside before, see bin/status --crawl {crawl.path}"
        raise BadInput(f"{error}; {done}") from None
