"""Errors that end a program: each has an exit code and a message that says what to do."""

EX_OK = 0
EX_USAGE = 64  # the command line is wrong; not retried
EX_DATAERR = 65  # an input is damaged and was set aside; not retried
EX_TEMPFAIL = 75  # try again later: locked, interrupted, disk full
EX_CONFIG = 78  # the configuration is wrong; not retried


class ColetorError(Exception):
    exit_code = 1


class Usage(ColetorError):
    exit_code = EX_USAGE


class BadInput(ColetorError):
    exit_code = EX_DATAERR


class TryLater(ColetorError):
    exit_code = EX_TEMPFAIL


class Locked(TryLater):
    """Another run works on the crawl folder; from cron that is normal."""


class BadConfiguration(ColetorError):
    exit_code = EX_CONFIG
