"""The robots.txt files of the web, and what they mean for the agent `coletor` (RFC 9309)."""

import re
from dataclasses import dataclass, field

from synthweb.page import FOREVER

AGENT = "coletor"

Rule = tuple[bool, str]  # allow?, pattern


@dataclass(frozen=True)
class Group:
    agents: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    crawl_delay_s: float | None = None


@dataclass(frozen=True)
class Robots:
    """One robots.txt: its groups, and `probes`, request targets (path, query) that show whether it is obeyed."""

    name: str
    groups: tuple[Group, ...] | None = None  # None: there is no such file, 404
    probes: tuple[tuple[str, str], ...] = ()
    failures: float = 0  # so many first requests get 503
    line_end: str = "\n"
    noise: tuple[str, ...] = field(default=())

    def is_reachable(self) -> bool:
        return self.failures != FOREVER

    def allows(self, target: str) -> bool:
        """The longest pattern that matches decides, allow wins a tie; groups of one agent count as one."""
        decision = (-1, True)
        for allow, pattern in self._rules_for(AGENT):
            if pattern and _matches(pattern, target):
                decision = max(decision, (len(pattern), allow))
        return decision[1]

    def text(self) -> str:
        lines = list(self.noise)
        for group in self.groups or ():
            lines += [f"User-agent: {agent}" for agent in group.agents]
            lines += [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in group.rules]
            if group.crawl_delay_s is not None:
                lines.append(f"Crawl-delay: {group.crawl_delay_s}")
            lines.append("")
        return self.line_end.join(lines)

    def _rules_for(self, agent: str) -> list[Rule]:
        groups = self.groups or ()
        own = [group for group in groups if agent in (name.lower() for name in group.agents)]
        return [rule for group in own or [g for g in groups if "*" in g.agents] for rule in group.rules]


def _matches(pattern: str, target: str) -> bool:
    anchored = pattern.endswith("$")
    body = pattern[:-1] if anchored else pattern
    regex = ".*".join(re.escape(piece) for piece in body.split("*"))
    return re.match(regex + ("$" if anchored else ""), target) is not None


ABSENT = Robots("absent")
EMPTY = Robots("empty", ())

# Every probe lies outside the paths of ordinary pages, so that a robots.txt cuts off nothing but its probes.
ORDINARY = (
    ABSENT,
    EMPTY,
    Robots("allows-all", (Group(("*",), ((False, ""),)),), (("/livre/a", ""),)),
    Robots(
        "longest-match",
        (Group(("*",), ((False, "/privado/"), (True, "/privado/aberto/"), (False, "/privado/aberto/nao"))),),
        (("/privado/a", ""), ("/privado/aberto/b", ""), ("/privado/aberto/nao-c", ""), ("/privado", "")),
    ),
    Robots(
        "wildcards",
        (Group(("*",), ((False, "/*.cgi$"), (False, "/busca*pg="))),),
        (("/exec/ver.cgi", ""), ("/exec/ver.cgi", "x=1"), ("/busca", "q=1&pg=2"), ("/busca", "q=1")),
    ),
    Robots(
        "agent-over-star",
        (Group(("*",), ((False, "/"),)), Group(("Coletor",), ((False, "/sem-coletor/"),))),
        (("/sem-coletor/a", ""), ("/com-coletor/b", "")),
    ),
    Robots(
        "star-over-others",
        (Group(("outro", "mais-um"), ((False, "/"),)), Group(("*",), ((False, "/ninguem"),))),
        (("/ninguem-aqui", ""), ("/todos/a", "")),
    ),
    Robots("tie", (Group(("*",), ((False, "/igual"), (True, "/igual"))),), (("/igual/a", ""),)),
    Robots(
        "crawl-delay",
        (Group(("*",), ((False, "/lento/"),), crawl_delay_s=0.05),),
        (("/lento/a", ""), ("/rapido/b", "")),
    ),
    Robots(
        "merged-groups",
        (
            Group(("coletor",), ((False, "/um/"),)),
            Group(("*",), ((False, "/tres/"),)),
            Group(("outro", "coletor"), ((False, "/dois/"),)),
        ),
        (("/um/a", ""), ("/dois/b", ""), ("/tres/c", "")),
        line_end="\r\n",
        noise=("# regras da casa", "Sitemap: /sitemap.xml", "nonsense without a colon", ""),
    ),
)

LATE = Robots("503-once", (Group(("*",), ((False, "/atrasado/"),)),), (("/atrasado/a", ""),), failures=1)
NEVER = Robots("503-forever", (), failures=FOREVER)
BARRED = Robots("barred", (Group((AGENT,), ((False, "/"),)), Group(("*",), ((True, "/"),))))
