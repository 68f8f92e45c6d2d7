"""Judges the links of one page: each occurrence falls in exactly one class, and the classes add up to all of them.

The order of judgement of an occurrence:
  1. unparsable, other_scheme: its text leads to no http or https URL. It has no target, and each such occurrence counts.
  2. repeated_in_page: its target has another occurrence in this page that counts for it. One occurrence counts for a
     target: the first that would be followed, or, where none would, the first.
  3. kind_not_followed: its kind is not in [extractor] follow.
  4. nofollow: it is marked so, or its page is, and [extractor] obey_nofollow holds.
  5. out_of_scope, then trap: a rule of [scope] rejects the target.
  6. followed.
"""

from functools import lru_cache
from typing import NamedTuple

from contract.config import Extractor
from contract.config import LINK_KINDS
from contract.url import OTHER_SCHEME, UNPARSABLE, Keys, NotCanonical, canonicalise, server_of
from stages.extractor.scope import TRAPS, Scope

REPEATED, KIND, NOFOLLOW, OUT_OF_SCOPE, TRAP, FOLLOWED = (
    "repeated_in_page", "kind_not_followed", "nofollow", "out_of_scope", "trap", "followed"
)
CLASSES = (UNPARSABLE, OTHER_SCHEME, REPEATED, KIND, NOFOLLOW, OUT_OF_SCOPE, TRAP, FOLLOWED)
TARGETS_REMEMBERED = 1 << 16  # pages of one site share their menus, so most targets were resolved before
TEXT_REMEMBERED_MAX_CHARACTERS = 1_000  # images in data: URLs would fill the memory


class Target(NamedTuple):
    """Where a text leads: a URL with the rule of the scope that it breaks, or no URL and the reason why."""

    url: str
    key: int
    server: str
    rejected: str


class Judged(NamedTuple):
    """The links of one page: targets in scope as columns, distinct; all occurrences as numbers of their classes."""

    urls: list[str]
    keys: list[int]
    kinds: list[int]
    nofollow: list[bool]
    followed: list[bool]
    classes: dict[str, int]
    rejected: dict[str, int]
    inside: int  # distinct targets on the page's own server, in scope or not
    outside: int


class LinkJudge:
    def __init__(self, config: Extractor, scope: Scope, keys: Keys):
        self._follow = kinds_named(config.follow)
        self._obey_nofollow = config.obey_nofollow
        self._scope = scope
        self._keys = keys
        self._target = lru_cache(maxsize=TARGETS_REMEMBERED)(self._find_target)

    def judge(self, url: str, base: str | None, links: dict[tuple[int, str, bool], int], nofollow: bool) -> Judged:
        """Judges the links of the page at `url`; `base` and `links` are texts as they stand in the page."""
        classes = dict.fromkeys(CLASSES, 0)
        targets: dict[str, list] = {}  # url: target, kinds, all are nofollow, class of the first, one may be followed
        base_url = self.base_of(url, base)
        base_root = server_of(base_url) + "/"
        base_folder = base_url.partition("?")[0].rpartition("/")[0] + "/"
        for (kind, text, marked), count in links.items():
            target = self.target_of(text, base_url, base_root, base_folder)
            if not target.url:
                classes[target.rejected] += count
                continue
            marked = marked or nofollow
            found = KIND if kind not in self._follow else NOFOLLOW if marked and self._obey_nofollow else FOLLOWED
            known = targets.get(target.url)
            if known is None:
                targets[target.url] = [target, 1 << kind, marked, found, found == FOLLOWED]
                classes[REPEATED] += count - 1
            else:
                known[1] |= 1 << kind
                known[2] = known[2] and marked
                known[4] = known[4] or found == FOLLOWED
                classes[REPEATED] += count
        return self._close(url, list(targets.values()), classes)

    def _close(self, url: str, targets: list[list], classes: dict[str, int]) -> Judged:
        own_server = server_of(url)
        judged = Judged([], [], [], [], [], classes, {}, sum(known[0].server == own_server for known in targets), 0)
        for target, kinds, nofollow, first, may_follow in targets:
            rule = target.rejected
            if rule:
                decided = first if first != FOLLOWED else TRAP if rule in TRAPS else OUT_OF_SCOPE
                if first == FOLLOWED:
                    judged.rejected[rule] = judged.rejected.get(rule, 0) + 1
            else:
                decided = FOLLOWED if may_follow else first
                judged.urls.append(target.url)
                judged.keys.append(target.key)
                judged.kinds.append(kinds)
                judged.nofollow.append(nofollow)
                judged.followed.append(may_follow)
            classes[decided] += 1
        return judged._replace(outside=len(targets) - judged.inside)

    @staticmethod
    def base_of(url: str, base: str | None) -> str:
        """What the page's links are relative to: its <base href>, itself relative to the page, or the page."""
        try:
            return canonicalise(base, url) if base is not None else url
        except NotCanonical:
            return url

    def target_of(self, text: str, base_url: str, base_root: str, base_folder: str) -> Target:
        """Where a text leads. Only what it depends on is remembered with it, so that pages of one site, or of all, share."""
        first = text[:1]
        if len(text) > TEXT_REMEMBERED_MAX_CHARACTERS:
            return self._find_target(text, base_url)
        if first == "/":
            return self._target(text, base_root)
        if first == "#":
            return self._target("", base_url)
        if text.startswith(("http://", "https://")):
            return self._target(text, None)
        return self._target(text, base_folder if first.isalnum() and ":" not in text else base_url)

    def _find_target(self, text: str, base: str | None) -> Target:
        try:
            url = canonicalise(text, base)
        except NotCanonical as error:
            return Target("", 0, "", error.reason)
        return Target(url, self._keys.of(url), server_of(url), self._scope.judge(url))


def kinds_named(follow: tuple[str, ...]) -> frozenset[int]:
    return frozenset(LINK_KINDS.index(kind) for kind in follow)
