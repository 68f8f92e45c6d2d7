"""Judges the links of one page: each occurrence falls in exactly one class, and the classes add up to all of them.

The order of judgement of an occurrence:
  1. unparsable, other_scheme: its text leads to no http or https URL. It has no target; each such occurrence counts.
  2. repeated_in_page: another occurrence in this page counts for its target. One occurrence counts per target: the
     first that would be followed if its target is in scope, or, where there is none, the first.
  3. kind_not_followed: its kind is neither in [extractor] follow nor in requisites.
  4. nofollow: it is marked nofollow, or its page is, and [extractor] obey_nofollow is on.
  5. out_of_scope, then trap: a rule of [scope] rejects the target. Fewer rules judge requisites.
  6. followed. With [extractor] follow_duplicates off, these are duplicate_page where the content of the page is known
     already; extraction.py decides that, which sees all pages.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, compress
from typing import NamedTuple

from contract import trouble
from contract.config import LINK_KINDS, Extractor
from contract.scope.requisites import Requisites, bits_of
from contract.scope.rules import PAGE_LINKS, TRAPS, Scope
from contract.url import OTHER_SCHEME, UNPARSABLE, server_of
from stages.extractor.answer import Answer
from stages.extractor.document import A, Document, without_fragment
from stages.extractor.targets import Near, Target, Targets, base_at

REPEATED, KIND, NOFOLLOW, OUT_OF_SCOPE, TRAP, DUPLICATE, FOLLOWED = (
    "repeated_in_page",
    "kind_not_followed",
    "nofollow",
    "out_of_scope",
    "trap",
    "duplicate_page",
    "followed",
)
CLASSES = (UNPARSABLE, OTHER_SCHEME, REPEATED, KIND, NOFOLLOW, OUT_OF_SCOPE, TRAP, DUPLICATE, FOLLOWED)


class Judged(NamedTuple):
    """The links of one page: distinct targets as columns, and the number of occurrences per class."""

    urls: list[str]
    keys: list[int]
    kinds: list[int]
    nofollow: list[bool]
    followed: list[bool]
    anchors: list[str]  # empty where they are not kept
    lastmod_s: list[int]  # what a sitemap says of the target, or 0; empty where it says nothing of any
    classes: dict[str, int]
    rejected: dict[tuple[str, str], list]  # (rule, server): number of links, and the first target
    inside: int  # distinct targets on the page's own server, in scope or not
    outside: int
    own_domain: int  # distinct targets on the page's registered domain, in scope or not
    other_domains: int  # distinct targets on others, in scope or not: of kinds to follow, and not marked nofollow
    trouble: str  # trouble.PAGE_LINKS where targets were dropped because they were too many


class Gathered:
    """The distinct targets of a page so far, as columns, and the number of occurrences that have a class already."""

    def __init__(self):
        self.rows: dict[str, int] = {}  # URL -> row
        self.targets: list[Target] = []
        self.kinds: list[int] = []
        self.nofollow: list[bool] = []
        self.verdicts: list[str] = []  # FOLLOWED where one occurrence would be followed, else the class of the first
        self.anchors: list[str] = []
        self.lastmod_s: list[int] = []
        self.classes = dict.fromkeys(CLASSES, 0)

    def begin(self, targets: list[Target], occurrences: int, kind: int, marked: bool, verdict: str) -> None:
        """Takes the first links, `occurrences` of one kind, which lead to these targets; column by column."""
        distinct = {target.url: target for target in targets}
        count = len(distinct)
        self.rows = dict(zip(distinct, range(count)))
        self.targets = list(distinct.values())
        self.kinds, self.nofollow, self.verdicts = [1 << kind] * count, [marked] * count, [verdict] * count
        self.classes[REPEATED] += occurrences - count

    def add(self, target: Target, kind: int, marked: bool, verdict: str, count: int) -> int:
        """Takes `count` occurrences of a link; returns the row of its target."""
        row = self.rows.setdefault(target.url, len(self.targets))
        if row == len(self.targets):
            self.targets.append(target)
            self.kinds.append(1 << kind)
            self.nofollow.append(marked)
            self.verdicts.append(verdict)
            self.classes[REPEATED] += count - 1
        else:
            self.kinds[row] |= 1 << kind
            self.nofollow[row] = self.nofollow[row] and marked
            if verdict == FOLLOWED:
                self.verdicts[row] = FOLLOWED
            self.classes[REPEATED] += count
        return row


class LinkJudge:
    def __init__(self, config: Extractor, scope: Scope, targets: Targets, requisites: Requisites):
        follow = bits_of(config.follow + config.requisites)
        self._follow = bits_of(config.follow)
        # The class of an occurrence if its target is in scope, by its kind and whether it is marked nofollow.
        self._verdicts = {
            (kind, marked): KIND
            if not follow >> kind & 1
            else NOFOLLOW
            if marked and config.obey_nofollow
            else FOLLOWED
            for kind in range(len(LINK_KINDS))
            for marked in (False, True)
        }
        self._keeps_all = config.keep_links == "all"
        self._keeps_anchors = config.anchor_text
        self._scope = scope
        self._targets = targets
        self._requisites = requisites

    def judge(self, url: str, depth: int, answer: Answer) -> Judged:
        """Judges the links of the answer for `url`, which is `depth` hops from a seed."""
        document, gathered = answer.document, Gathered()
        near = self._targets.near(self._targets.base_of(url, document.base), answer.charset)
        if self._keeps_anchors:
            self._gather([((A, text, False), 1) for text in document.hrefs], near, document, gathered)
        else:
            self._begin(document.hrefs, near, document.nofollow, gathered)
        self._gather(document.others.items(), near, document, gathered)
        if answer.header_links:  # headers are in UTF-8, whatever the encoding of the page
            self._gather(
                [(link, 1) for link in answer.header_links], self._targets.near(base_at(url)), document, gathered
            )
        if document.lastmods:
            self._date(document.lastmods, near, gathered)
        return self._close(url, depth, gathered)

    def _date(self, lastmods: dict[str, int], near: Near, gathered: Gathered) -> None:
        gathered.lastmod_s = [0] * len(gathered.targets)
        for text, seconds in lastmods.items():
            row = gathered.rows.get(near[without_fragment(text) if "#" in text else text].url)
            if row is not None:
                gathered.lastmod_s[row] = max(gathered.lastmod_s[row], seconds)

    def _begin(self, hrefs: list[str], near: Near, nofollow: bool, gathered: Gathered) -> None:
        """What _gather() does, for the most frequent links, in a fifth of the time."""
        texts, occurrences = dict.fromkeys(hrefs), len(hrefs)  # half of them repeat others
        targets = list(map(near.__getitem__, texts))
        if not all([target.url for target in targets]):
            for count, target in zip(Counter(hrefs).values(), targets):
                if not target.url:
                    gathered.classes[target.rejected] += count
                    occurrences -= count
            targets = [target for target in targets if target.url]
        gathered.begin(targets, occurrences, A, nofollow, self._verdicts[A, nofollow])

    def _gather(
        self, links: Iterable[tuple[tuple[int, str, bool], int]], near: Near, document: Document, gathered: Gathered
    ) -> None:
        for (kind, text, marked), count in links:
            target = near[without_fragment(text) if "#" in text else text]
            if not target.url:
                gathered.classes[target.rejected] += count
                continue
            marked = marked or document.nofollow
            row = gathered.add(target, kind, marked, self._verdicts[kind, marked], count)
            if self._keeps_anchors:
                keep_anchor(gathered.anchors, row, document.anchors.get(text, ""))

    def _close(self, url: str, depth: int, gathered: Gathered) -> Judged:
        targets, verdicts, classes = gathered.targets, gathered.verdicts, gathered.classes
        rules = self._find_rules(url, depth, gathered)
        server = server_of(url)
        servers = [target.server for target in targets]
        inside = servers.count(server)
        own_domain, other_domains = inside, 0
        if inside < len(servers):
            own_domain, other_domains = self._count_domains(server, servers, gathered)
        broken = [row for row, rule in enumerate(rules) if rule]
        rejected: dict[tuple[str, str], list] = {}
        for row in broken:
            if verdicts[row] == FOLLOWED:
                verdicts[row] = TRAP if rules[row] in TRAPS else OUT_OF_SCOPE
                count_rejected(rejected, rules[row], targets[row])
        for verdict in set(verdicts):
            classes[verdict] += verdicts.count(verdict)
        columns = (
            list(gathered.rows),
            [target.key for target in targets],
            gathered.kinds,
            gathered.nofollow,
            [verdict == FOLLOWED for verdict in verdicts],
            gathered.anchors,
            gathered.lastmod_s,
        )
        if dropped := [row for row in broken if not self._keeps_all or rules[row] == PAGE_LINKS]:
            is_kept = [True] * len(targets)
            for row in dropped:
                is_kept[row] = False
            columns = tuple([list(compress(column, is_kept)) for column in columns])
        is_cut = trouble.PAGE_LINKS if PAGE_LINKS in rules else ""
        outside = len(targets) - inside
        return Judged(*columns, classes, rejected, inside, outside, own_domain, other_domains, is_cut)

    def _count_domains(self, server: str, servers: list[str], gathered: Gathered) -> tuple[int, int]:
        """How many targets lie on the server's registered domain, and how many links to follow lead to others.

        REQUIRES: `servers` are those of the targets; verdicts are those before a rule rejects a target.
        """
        domain, follow = self._targets.domain_of(server), self._follow
        others = {other for other in set(servers) if self._targets.domain_of(other) != domain}
        if not others:
            return len(servers), 0
        rows = [row for row, other in enumerate(servers) if other in others]
        kinds, verdicts = gathered.kinds, gathered.verdicts
        followed = sum([kinds[row] & follow > 0 and verdicts[row] == FOLLOWED for row in rows])
        return len(servers) - len(rows), followed

    def _find_rules(self, url: str, depth: int, gathered: Gathered) -> list[str]:
        """Per target the rule that rejects it, or nothing; rules about the target come before rules about the page."""
        rules = self._find_rules_but_size(url, depth, gathered.targets)
        if kinds_needed := self._requisites.kinds_from(url, depth):
            for row, kinds in enumerate(gathered.kinds):
                if kinds & kinds_needed and rules[row]:
                    rules[row] = self._requisites.judge(gathered.targets[row].url, url, depth)
        most_bytes = self._scope.page_links_max_bytes
        if sum(map(len, gathered.rows)) > most_bytes:
            ends = accumulate(map(len, gathered.rows))
            rules = [PAGE_LINKS if end > most_bytes else rule for rule, end in zip(rules, ends)]
        return rules

    def _find_rules_but_size(self, url: str, depth: int, targets: list[Target]) -> list[str]:
        if page_rule := self._scope.judge_depth(depth):
            return [target.rejected or page_rule for target in targets]
        if self._scope.is_suspect(url):
            return [target.rejected or self._scope.judge_from(url, target.url) for target in targets]
        return [target.rejected for target in targets]


def keep_anchor(anchors: list[str], row: int, words: str) -> None:
    """Keeps the first anchor text of a target that is not empty."""
    if row == len(anchors):
        anchors.append(words)
    else:
        anchors[row] = anchors[row] or words


def count_rejected(rejected: dict[tuple[str, str], list], rule: str, target: Target) -> None:
    seen = rejected.setdefault((rule, target.server), [0, target.url])
    seen[0] += 1
