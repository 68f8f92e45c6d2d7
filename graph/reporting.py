"""Progress of a command that takes long, on standard error: every ten seconds, on a terminal twice per second."""

from collections.abc import Callable

from contract.stage import Progress


def make_report(name: str) -> Callable[..., None]:
    """A function that takes the step, what is done of it and the whole."""
    progress = Progress(name)

    def report(step: str, done: int = 0, whole: int = 0) -> None:
        if progress.is_due():
            of = {"of": f"{whole:,}"} if whole else {}
            progress.report(step=step.replace(" ", "_"), done=f"{done:,}", **of)

    return report
