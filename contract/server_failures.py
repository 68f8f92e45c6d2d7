"""Failures in a row of a server: which server an exchange counts for, and what it does to the count.

The fetcher counts while it fetches, and again when it resumes; the extractor counts from the records. Both use these
functions, so they agree on when a server is left alone.
"""

from contract.tables import ANSWERED, FAILED


def charged_server(asked: str, robots_for: str) -> str:
    """The server that an exchange counts for: the one that was asked, or the one whose robots.txt was asked for.

    A robots.txt may be redirected to another server. What happens there counts for the server whose rules are wanted:
    it cannot be fetched without them. The other server is not charged, and its own failures are not forgiven.
    """
    return robots_for or asked


def count_failures(failures: int, outcome: str) -> int:
    """The count after one more outcome: an answer ends the row. A refusal is our own doing and counts neither way."""
    if outcome == ANSWERED:
        return 0
    return failures + 1 if outcome == FAILED else failures
