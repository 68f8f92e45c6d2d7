"""Signs in the text of a URL that a server makes such URLs without end; pure.

Every function looks for one sign, in time linear in the length of the URL. A sign must be clear, because URLs of
content hold dates, hashes, numbers and host names too; so each function says what it lets pass. docs/scope.md has
examples.
"""

import re
from collections import Counter
from itertools import islice

RUN_MAX_SEGMENTS = 8  # longer runs are not looked for; three of them pass any sensible path_depth_max
RUN_REPEATS = 3  # a/b/a/b is seen on good sites, a/b/a/b/a/b is not
LABEL_REPEATS = 3  # www.www.example.org is a mistake that ends, www.www.www.example.org one without end
WEB_BEGAN = 1990  # a query for an earlier date asks a program, not an archive of pages
VALUES_MAX = 16  # values of a query that are examined as dates: each costs a search of the query
NAME_MAX_CHARACTERS = 64  # of a parameter's name that are examined
SESSION_LEAST_CHARACTERS = 24  # of ASP.NET; those of others are longer

_DATE_IN_PATH = re.compile(r"/([12]\d{3})[/-](0?[1-9]|1[0-2])(?:[/-][0-3]?\d)?(?![0-9A-Za-z])(/?$)?", re.A)
_CALENDAR = re.compile(r"(?<![a-z])(?:calend|kalender|agenda|(?:eventos?|events?|cal)(?![a-z]))", re.I)
# After a parameter's name: a year; 2087-05..., 20870514, 14/05/2087, 05/2087. Six digits are as often 14.05.87.
_DATED_VALUE = re.compile(
    r"=(?:([1-9]\d{3})(?=&|$)|([1-9]\d{3})(?:[-/.]|%2F)(?:0?[1-9]|1[0-2])(?!\d)"
    r"|([12]\d{3})(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?:[0-3]?\d(?:[-/.]|%2F))?[01]?\d(?:[-/.]|%2F)([1-9]\d{3})(?!\d))",
    re.A,
)
_NAMED = r"(?:(?<![a-z])|(?<=%5B))(?:{})(?![a-z])"  # a word by itself or in brackets: date, start_date, date%5Byear%5D
_YEAR_NAME = re.compile(_NAMED.format("year|ano|anno|jahr|yr"), re.I)
_DATE_NAME = re.compile(_NAMED.format("date|data|dia|day|month|mes|fecha|datum|cal|calendar|calendario"), re.I)
_MONTH = re.compile(_NAMED.format("month|mes|mese|monat") + r"[^=&]{0,32}=(?:0?[1-9]|1[0-2])(?=&|$)", re.I | re.A)
# The word for a session and its token in one segment.
_SESSION_SEGMENT = re.compile(
    r"(?<![a-z])(?:(?:j|php)?sess(?:ion|ao)?_?(?:id|key)?|aspsessionid[a-z]*+|sid)[=_.:~-]"
    rf"(?=[0-9]*+[a-z])(?=[a-z]*+[0-9])[0-9a-z]{{{SESSION_LEAST_CHARACTERS},}}+(?=[/;.!]|$)",
    re.I | re.A,
)
_SESSION_PARAMETER = re.compile(r";(?:jsessionid|phpsessid|sid)=", re.I)
_SESSION_BRACKETS = re.compile(r"/\((?:[AFS]\([\w-]++\))++\)(?=/|$)", re.I | re.A)
_BROKEN_URL = re.compile(r"/https?(?::(?:/(?!/)|$)|//)", re.I)
_WWW = re.compile(r"/(www[0-9]*+(?:\.[a-z0-9_-]++)++)\.?(?=[/:]|$)", re.I)
# www.example.html is a page.
_FILE_NAMES = "asp aspx cfm css gif htm html jpg js jsp pdf php png shtml txt xhtml xml"
_FILE_ENDINGS = frozenset(_FILE_NAMES.split())

# The letters are spelt out because that is searched faster than with re.I.
_MARK = re.compile(r"/(?:[12]\d{3}[/-]|[hH][tT][tT][pP]|[wW][wW][wW]|\([AFSafs]\()", re.A)
_SID = re.compile(r"sid[=_.:~-]")

# Finds the first mark of a date, a host or an ASP.NET session in a path. Most paths have none.
find_mark = _MARK.search


def may_hide_session(path: str) -> bool:
    """Whether a path has a mark of sessions other than those of ASP.NET."""
    if ";" in path:
        return True
    if len(path) <= SESSION_LEAST_CHARACTERS:
        return False
    plain = path.lower()
    return "sess" in plain or "sid" in plain and _SID.search(plain) is not None  # not universidade, presidente


def has_repeats(segments: list[str], repeats_max: int) -> bool:
    """Whether a segment occurs more than `repeats_max` times, or a run (a/b/a/b/a/b) that often in a row."""
    if len(set(segments)) == len(segments):
        return False
    if len(segments) > repeats_max and Counter(segments).most_common(1)[0][1] > repeats_max:
        return True
    repeats = max(repeats_max, RUN_REPEATS)
    return any(
        _has_run(segments, length, repeats) for length in range(2, min(RUN_MAX_SEGMENTS, len(segments) // repeats) + 1)
    )


def _has_run(segments: list[str], length: int, repeats: int) -> bool:
    same = 0
    for first, second in zip(segments, segments[length:]):
        same = same + 1 if first == second else 0
        if same == length * (repeats - 1):
            return True
    return False


def has_far_date(path: str, query: str, year: int, years_max: int) -> bool:
    """Whether the first date of the path, or a date of the query, is more than `years_max` years from `year`.

    A date in the future counts everywhere. A date in the past counts where there is a calendar: the path names one and
    ends with the date (/agenda/2015/03/, but not /agenda/2015/03/congresso, nor a blog's /2015/03/), or the query asks
    for a month of one. In other queries a month counts only if it is before the web began, because catalogues and laws
    have years. A year alone in a path never counts.
    """
    first, last = year - years_max, year + years_max
    found = _DATE_IN_PATH.search(path)
    if found:
        dated, month, ends_path = int(found[1]), found[2], found[3] is not None
        if dated > last and (len(month) == 2 or _CALENDAR.search(path)):  # /2087/5 is rather page 5 of thread 2087
            return True
        if dated < first and ends_path and _CALENDAR.search(path):
            return True
    values = islice(_DATED_VALUE.finditer(query), VALUES_MAX) if query else ()
    return any(_is_far_value(path, query, value, first, last) for value in values)


def _is_far_value(path: str, query: str, value: re.Match[str], first: int, last: int) -> bool:
    dated, is_year, start = int(value[value.lastindex or 0]), value.lastindex == 1, value.start()
    if first <= dated <= last:
        return False
    name = query[max(query.rfind("&", 0, start) + 1, start - NAME_MAX_CHARACTERS) : start]
    if not (_YEAR_NAME if is_year else _DATE_NAME).search(name):
        return False
    if dated > last:
        return True
    if is_year and not _MONTH.search(query):
        return False
    return dated < WEB_BEGAN or _CALENDAR.search(path) is not None or _CALENDAR.search(query) is not None


def has_session_segment(path: str) -> bool:
    """Whether a segment holds a session behind a word for one. Hashes, UUIDs and tokens without such a word pass."""
    if "(" in path and _SESSION_BRACKETS.search(path):
        return True
    return may_hide_session(path) and bool(_SESSION_PARAMETER.search(path) or _SESSION_SEGMENT.search(path))


def has_host(path: str, host: str) -> bool:
    """Whether a path holds a host name by mistake: the server's own, one that begins with www., or a broken http:/.

    /web/2020/http://www.example.org/ passes: a whole URL of another host is how archives of the web name their pages.
    """
    if "." in host and "/" + host in path and any(segment.partition(":")[0] == host for segment in path.split("/")):
        return True
    if _BROKEN_URL.search(path):
        return True
    for found in _WWW.finditer(path):
        labels = found[1].lower().split(".")
        if len(labels) > 2 and labels[-1] not in _FILE_ENDINGS and not path.endswith(":/", 0, found.start()):
            return True
    return False


def has_endless_labels(host: str, labels_max: int) -> bool:
    """Whether a host name has more than `labels_max` labels, or one label three times."""
    labels = host.split(".")
    return len(labels) > labels_max or len(labels) > LABEL_REPEATS and max(Counter(labels).values()) >= LABEL_REPEATS


def goes_deeper(page_folder: str, target_folder: str, repeats_max: int) -> bool:
    """Whether a target lies below its page's folder, by segments that the folder has `repeats_max` times each."""
    if not target_folder.startswith(page_folder) or len(target_folder) == len(page_folder):
        return False
    had = Counter(page_folder.split("/")[3:])  # without scheme and host
    added = [segment for segment in target_folder[len(page_folder) :].split("/") if segment]
    return bool(added) and all(had[segment] >= repeats_max for segment in added)
