"""The many ways of writing one link: each gives a text that the WHATWG URL parser takes to the same target."""

from random import Random
from urllib.parse import quote

from synthweb.url import PATH_SAFE, Url, authority

# Forms that do not depend on where the page lies. "rooted" and "same-page" are the others that need no directory.
ABSOLUTE_FORMS = (
    "absolute", "shouted", "protocol-relative", "dots", "encoded-dots", "userinfo", "dot-host",
    "padded-port", "backslashes",
)  # fmt: skip
LOCAL_FORMS = ("rooted", "relative", "query-only", "same-page")
FORMS = ABSOLUTE_FORMS + LOCAL_FORMS
EXTRAS = ("fragment", "spaces", "newline", "empty-query", "bare-ampersand", "percent-encoded")

# Ordinary pages write as people do; the rare forms are rare, and oddities/links.py has one page with each.
COMMON_FORMS = ("relative", "relative", "relative", "rooted", "rooted", "absolute", "absolute", "protocol-relative")
RARE_SHARE = 0.12


def applies(form: str, target: Url, base: Url) -> bool:
    """Whether the form can express this target on a page with this base."""
    if form in ABSOLUTE_FORMS:
        return True
    if target.host != base.host:
        return False
    if form == "query-only":
        return target.path == base.path and bool(target.query)
    if form == "same-page":
        return target == base
    return True


def extra_applies(extra: str, form: str, target: Url) -> bool:
    if extra == "empty-query":
        # "?" after nothing would name the page itself, not the target.
        return not target.query and form not in ("same-page", "query-only")
    if extra == "bare-ampersand":
        return "&" in target.query and form != "same-page"
    if extra == "percent-encoded":
        return not target.path.isascii() and form not in ("same-page", "query-only")
    return form != "same-page"


def choose_form(target: Url, base: Url, portable: bool, rng: Random) -> str:
    if portable:
        forms = [*ABSOLUTE_FORMS, "rooted"] if target.host == base.host else list(ABSOLUTE_FORMS)
        return rng.choice(forms)
    form = rng.choice(FORMS if rng.random() < RARE_SHARE else COMMON_FORMS)
    return form if applies(form, target, base) else "absolute"


def choose_extra(form: str, target: Url, rng: Random) -> str:
    # Without this, half of the non-ASCII paths would never appear raw.
    chance = 0.3 if not target.path.isascii() or "&" in target.query else 0.12
    if rng.random() >= chance:
        return ""
    extra = rng.choice(EXTRAS)
    return extra if extra_applies(extra, form, target) else ""


def spell(target: Url, base: Url, port: int, form: str, extra: str = "") -> str:
    """The text of an href before HTML escaping; characters of the path are raw unless `extra` encodes them."""
    if form == "same-page":
        return "#topo"
    text = _FORMERS[form](target.host, target.path, base, port)
    if extra == "percent-encoded":
        text = quote(text, safe=PATH_SAFE + "\\")
    if target.query:
        text += f"?{target.query}"
    if extra == "empty-query":
        text += "?"
    elif extra == "fragment":
        text += "#parte-2"
    elif extra == "spaces":
        text = f" \n\t{text} \n"
    elif extra == "newline":
        middle = len(text) // 2
        text = f"{text[:middle]}\n\t{text[middle:]}"
    return text


def relative_path(path: str, base_path: str) -> str:
    """`path` as seen from the directory of `base_path`."""
    here = base_path.split("/")[1:-1]
    there = path.split("/")[1:]
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    return "../" * (len(here) - shared) + "/".join(there[shared:]) or "./"


def _with_dots(dot: str):
    def write(host: str, path: str, base: Url, port: int) -> str:
        start = "" if host == base.host else f"http://{authority(host, port)}"
        return f"{start}/{dot}/fora/{dot}{dot}{path}"

    return write


_FORMERS = {
    "absolute": lambda host, path, base, port: f"http://{authority(host, port)}{path}",
    "shouted": lambda host, path, base, port: f"HTTP://{authority(host.upper(), port)}{path}",
    "protocol-relative": lambda host, path, base, port: f"//{authority(host, port)}{path}",
    "dots": _with_dots("."),
    "encoded-dots": _with_dots("%2e"),
    "userinfo": lambda host, path, base, port: f"http://user:pw@{authority(host, port)}{path}",
    "dot-host": lambda host, path, base, port: f"http://{authority(host + '.', port)}{path}",
    # The parser reads the port as a number: leading zeros and an explicit default vanish.
    "padded-port": lambda host, path, base, port: f"http://{host}:0{port}{path}",
    "backslashes": lambda host, path, base, port: f"http:\\\\{authority(host, port)}{path.replace('/', chr(92))}",
    "rooted": lambda host, path, base, port: path,
    "relative": lambda host, path, base, port: relative_path(path, base.path),
    "query-only": lambda host, path, base, port: "",
}
