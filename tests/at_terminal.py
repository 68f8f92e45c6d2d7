"""Commands run at a terminal of a given width, as a person would."""

import fcntl
import os
import struct
import subprocess
import termios


def run_at_terminal(
    command: list, columns: int = 80, answers: dict[str, bytes] | None = None, **more
) -> tuple[int, str]:
    """The exit code and all that the command printed; a question that ends with a key of `answers` gets that answer."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(list(map(str, command)), stdin=theirs, stdout=theirs, stderr=theirs, **more)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
            for question, answer in (answers or {}).items():
                if shown.endswith(question.encode()):
                    os.write(ours, answer)
    except OSError:
        pass  # the terminal's other end is closed: the command has ended
    os.close(ours)
    return process.wait(), shown.decode("utf-8", "replace").replace("\r\n", "\n")
