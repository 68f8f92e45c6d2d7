"""The canonical URLs of a crawl: contract/url.py, then the rules of [url], which fold URLs of the same page into one.

Each rule is a pure function from a canonical URL to a canonical URL. It looks at whole parts only: a parameter of the
query, a parameter of a path segment, a segment, a label of the host. If it removes a part, the parts around it do not
join into something that it would remove too. So folding twice gives the same as folding once, whichever rules are on.
docs/scope.md says what each rule might lose.
"""

import re
from collections.abc import Callable, Iterable

from contract.config import Url
from contract.url import canonicalise, server_of

# Of a servlet engine: 32 characters, then perhaps a dot or '!' and the name of a machine. Of PHP: 22 or more, as set.
_JSESSIONID = r"jsessionid=[0-9a-z]{32}(?:[.!][\w.!-]*+)?"
_SESSION_PARAMETER = re.compile(
    rf"{_JSESSIONID}|phpsessid=[0-9a-z,-]{{22,256}}+|(?:osc)?sid=[0-9a-z]{{32}}|aspsessionid[a-z]{{8}}=[a-z]{{24}}",
    re.I | re.A,
)
_SESSION_IN_PATH = re.compile(_JSESSIONID, re.I | re.A)
_COLD_FUSION = re.compile(r"(cfid|cftoken)=.", re.I)
# A segment of ASP.NET: (S(24 characters)), beside it perhaps A(...) and F(...) with tickets.
_ASP_NET = re.compile(r"/\((?=[^/?]*S\([0-9a-z]{24}\))(?:[AFS]\([\w-]++\))++\)(?=/)", re.I | re.A)
_DOTS = frozenset((".", "..", "%2e", ".%2e", "%2e.", "%2e%2e"))  # what the standard takes for steps in a path

_WWW = re.compile(r"www[0-9]*+\.(?=[^./:]++\.)")
_INDEX_NAME = re.compile(
    r"/(?:(?:index|home|welcome)\.(?:x?html?|shtml|php|asp|aspx|jsp|cfm)|default\.(?:html?|aspx?))$", re.I
)


class Canonical:
    """Texts to canonical URLs under one configuration; the same text gives the same URL on every page, in any order."""

    def __init__(self, config: Url):
        rules = {  # in the order in which they are applied
            "session_ids": strip_session_ids,
            "tracking": make_tracking(config.tracking_parameters),
            "lowercase_path": lower_path,
            "www": strip_www,
            "index_names": strip_index_name,
        }
        self._rules = tuple(rule for name, rule in rules.items() if name in config.rules)
        # All that these two rules fold stands behind ? ; or (
        self._needs_marks = {"session_ids", "tracking"}.issuperset(config.rules)

    def __call__(self, text: str, base: str | None = None) -> str:
        """The URL of a text, relative to `base` if given. Raises NotCanonical where it has no canonical form."""
        return self.fold(canonicalise(text, base))

    def fold(self, url: str) -> str:
        """A canonical URL without what the rules remove."""
        if self._needs_marks and "?" not in url and ";" not in url and "(" not in url:
            return url
        for rule in self._rules:
            url = rule(url)
        return url


def strip_session_ids(url: str) -> str:
    address, mark, query = url.partition("?")
    if ";" in address or "(" in address:
        server = server_of(address)  # not changed: a host may hold such characters too
        path = "/".join(map(_strip_segment, address[len(server) :].split("/")))
        address = server + _ASP_NET.sub("", path)
    plain = query.lower()
    if "sid=" in plain or "sessionid" in plain or "cftoken=" in plain:  # most queries hold none of them
        return join_query(address, _strip_sessions(query.split("&")))
    return address + mark + query


def _strip_segment(segment: str) -> str:
    name, *parameters = segment.split(";")
    kept = [parameter for parameter in parameters if not _SESSION_IN_PATH.fullmatch(parameter)]
    if len(kept) == len(parameters) or not kept and name.lower() in _DOTS:  # '..;jsessionid=' must not become a step up
        return segment
    return ";".join([name, *kept])


def _strip_sessions(parameters: list[str]) -> list[str]:
    cold_fusion = [_COLD_FUSION.match(parameter) for parameter in parameters]
    if len({found[1].lower() for found in cold_fusion if found}) == 2:  # each alone may mean anything
        parameters = [parameter for parameter, found in zip(parameters, cold_fusion) if not found]
    return [parameter for parameter in parameters if not _SESSION_PARAMETER.fullmatch(parameter)]


def make_tracking(names: Iterable[str]) -> Callable[[str], str]:
    """The rule that drops parameters of these names from the query, in any case; 'utm_*' means names that begin so."""
    wanted = [name.strip().lower() for name in names]
    alternatives = [
        re.escape(name[:-1]) + "[^=&]*+" if name.endswith("*") else re.escape(name) for name in wanted if name
    ]
    if not alternatives:
        return lambda url: url
    tracking = re.compile(rf"(?:{'|'.join(sorted(alternatives))})(?:=|$)")
    present = re.compile(rf"[?&](?:{'|'.join(sorted(alternatives))})(?:[=&]|$)")

    def strip_tracking(url: str) -> str:
        if "?" not in url or not present.search(url.lower()):
            return url
        address, _, query = url.partition("?")
        return join_query(
            address, [parameter for parameter in query.split("&") if not tracking.match(parameter.lower())]
        )

    return strip_tracking


def join_query(address: str, parameters: list[str]) -> str:
    query = "&".join(parameters)
    return f"{address}?{query}" if query else address


def lower_path(url: str) -> str:
    """The path in lower case, escapes included. The query keeps its case, which often matters in values."""
    address, mark, query = url.partition("?")
    return address.lower() + mark + query  # scheme and host are in lower case already


def strip_www(url: str) -> str:
    """The host without www., www2. and the like in front, as long as a name with a dot remains."""
    scheme_end = url.index("//") + 2
    host_start = scheme_end
    while found := _WWW.match(url, host_start):
        host_start = found.end()
    return url[:scheme_end] + url[host_start:]


def strip_index_name(url: str) -> str:
    """The folder instead of the page that servers show for it."""
    address, mark, query = url.partition("?")
    found = _INDEX_NAME.search(address)
    return address[: found.start() + 1] + mark + query if found else url
