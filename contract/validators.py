"""Which ETag and Last-Modified of a server may go back to it in a conditional request; tables keep them as served."""

import re

# One line of ASCII, else it is not used: no character may end a line of a request.
_SAFE = re.compile(r"[!-~](?:[ -~]{0,998}[!-~])?")


def may_send(text: str) -> bool:
    return bool(_SAFE.fullmatch(text))
