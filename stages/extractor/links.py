"""Judges the links of one page: each occurrence falls in exactly one class, and the classes add up to all of them.

The order of judgement of an occurrence:
  1. unparsable, other_scheme: its text leads to no http or https URL. It has no target, and each such occurrence counts.
  2. repeated_in_page: its target has another occurrence in this page that counts for it. One occurrence counts for a
     target: the first that would be followed were its target in scope, or, where none would, the first.
  3. kind_not_followed: its kind is not in [extractor] follow.
  4. nofollow: it is marked so, or its page is, and [extractor] obey_nofollow holds.
  5. out_of_scope, then trap: a rule of [scope] rejects the target.
  6. followed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from contract.config import LINK_KINDS, Extractor
from contract.url import OTHER_SCHEME, UNPARSABLE, server_of
from stages.extractor.answer import Answer
from stages.extractor.charset import UTF_8
from stages.extractor.document import Document
from stages.extractor.scope import TRAPS, Scope
from stages.extractor.targets import Base, Target, Targets, base_at

REPEATED, KIND, NOFOLLOW, OUT_OF_SCOPE, TRAP, FOLLOWED = (
    "repeated_in_page", "kind_not_followed", "nofollow", "out_of_scope", "trap", "followed"
)
CLASSES = (UNPARSABLE, OTHER_SCHEME, REPEATED, KIND, NOFOLLOW, OUT_OF_SCOPE, TRAP, FOLLOWED)


class Judged(NamedTuple):
    """The links of one page: distinct targets as columns; all occurrences as numbers of their classes."""

    urls: list[str]
    keys: list[int]
    kinds: list[int]
    nofollow: list[bool]
    followed: list[bool]
    in_scope: list[bool]
    anchors: list[str]  # empty where they are not kept
    classes: dict[str, int]
    rejected: dict[tuple[str, str], list]  # (rule, server): links, and the first of their targets
    inside: int  # distinct targets on the page's own server, in scope or not
    outside: int


class Known:
    """What is known so far of one target of a page."""
    __slots__ = ("target", "kinds", "is_nofollow", "first", "may_follow", "anchor")

    def __init__(self, target: Target, kind: int, is_nofollow: bool, first: str, anchor: str):
        self.target, self.kinds, self.is_nofollow, self.first, self.anchor = target, 1 << kind, is_nofollow, first, anchor
        self.may_follow = first == FOLLOWED


class LinkJudge:
    def __init__(self, config: Extractor, scope: Scope, targets: Targets):
        self._follow = kinds_named(config.follow)
        self._obey_nofollow = config.obey_nofollow
        self._keeps_all = config.keep_links == "all"
        self._keeps_anchors = config.anchor_text
        self._scope = scope
        self._targets = targets

    def judge(self, url: str, depth: int, answer: Answer) -> Judged:
        """Judges the links of the answer for `url`, which is so many hops from a seed."""
        document = answer.document
        classes = dict.fromkeys(CLASSES, 0)
        known: dict[str, Known] = {}
        self._gather(document.links.items(), self._targets.base_of(url, document.base), answer.charset, document, classes, known)
        if answer.header_links:  # which are in UTF-8, whatever the page is in
            self._gather([(link, 1) for link in answer.header_links], base_at(url), UTF_8, document, classes, known)
        return self._close(url, depth, known, classes)

    def _gather(self, links: Iterable[tuple[tuple[int, str, bool], int]], base: Base, charset: str, document: Document,
                classes: dict[str, int], known: dict[str, Known]) -> None:
        find, all_nofollow, anchors = self._targets.find, document.nofollow, document.anchors
        for (kind, text, marked), count in links:
            target = find(text, base, charset)
            if not target.url:
                classes[target.rejected] += count
                continue
            marked = marked or all_nofollow
            found = KIND if kind not in self._follow else NOFOLLOW if marked and self._obey_nofollow else FOLLOWED
            same = known.get(target.url)
            if same is None:
                known[target.url] = Known(target, kind, marked, found, anchors.get(text, "") if anchors else "")
                classes[REPEATED] += count - 1
            else:
                same.kinds |= 1 << kind
                same.is_nofollow = same.is_nofollow and marked
                same.may_follow = same.may_follow or found == FOLLOWED
                same.anchor = same.anchor or (anchors.get(text, "") if anchors else "")
                classes[REPEATED] += count

    def _close(self, url: str, depth: int, known: dict[str, Known], classes: dict[str, int]) -> Judged:
        own_server = server_of(url)
        page_rule, is_suspect = self._scope.judge_depth(depth), self._scope.is_suspect(url)
        judged = Judged([], [], [], [], [], [], [], classes, {}, sum(one.target.server == own_server for one in known.values()), 0)
        for one in known.values():
            target = one.target
            rule = target.rejected or page_rule or (self._scope.judge_from(url, target.url) if is_suspect else "")
            if not rule:
                decided = FOLLOWED if one.may_follow else one.first
            elif one.may_follow:
                decided = TRAP if rule in TRAPS else OUT_OF_SCOPE
                count_rejected(judged.rejected, rule, target)
            else:
                decided = one.first
            classes[decided] += 1
            if not rule or self._keeps_all:
                judged.urls.append(target.url)
                judged.keys.append(target.key)
                judged.kinds.append(one.kinds)
                judged.nofollow.append(one.is_nofollow)
                judged.followed.append(decided == FOLLOWED)
                judged.in_scope.append(not rule)
                if self._keeps_anchors:
                    judged.anchors.append(one.anchor)
        return judged._replace(outside=len(known) - judged.inside)


def count_rejected(rejected: dict[tuple[str, str], list], rule: str, target: Target) -> None:
    seen = rejected.setdefault((rule, target.server), [0, target.url])
    seen[0] += 1


def kinds_named(follow: tuple[str, ...]) -> frozenset[int]:
    return frozenset(LINK_KINDS.index(kind) for kind in follow)
