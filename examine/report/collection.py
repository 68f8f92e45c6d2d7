"""Sections about what was collected: kinds of pages, sizes, servers, links, depth, visits, duplicates, seeds."""

from collections import Counter

from contract.tables import STATES
from examine.link_sources import KEY
from examine.report.charts import bars
from examine.report.figures import Figures
from examine.report.known import Seed
from examine.report.sections import Part, Section, bins_part, plain, share_part, shorten
from examine.report.words import Words

SHOWN = 15  # words of a distribution; the rest is one row
SEED_ROWS_MAX = 50
COLLECTED, NOT_ASKED, NOT_ASKED_YET = "collected", ("waiting", "prescheduled"), "not asked yet"
NEW_DOMAINS = "new-domains"  # the policy that decides whether a domain is followed deeper
DEAD_FROM = 400  # status


def show_kinds(of: Figures, words: Words) -> Section:
    answers = of.answers
    about = (
        ("statuses", "Status codes of all answers", "status", "answers", answers.statuses),
        ("types", "Media types", "type", "pages", answers.types),
        ("charsets", "Character encodings", "encoding", "pages", answers.charsets),
        ("languages", "Languages, as pages declare them", "language", "pages", answers.languages),
        ("troubles", "Answers that were not read whole", "trouble", "pages", answers.troubles),
    )
    parts = [
        share_part(name, words(caption), words(header), words(quantity), tally.most_common(SHOWN), words)
        for name, caption, header, quantity, tally in about
    ]
    text = words("Status codes count every answer; the rest counts each collected page once, by its last full answer.")
    return Section("kinds", words("Status codes, types, encodings, languages"), text, parts)


def show_sizes(of: Figures, words: Words) -> Section:
    # Page files hold the answers of link sources too.
    cycles, pages = of.cycles, of.status["fetched"]["answered"] + of.status[KEY]["fetched"]["answered"]
    about = (
        ("bodies, decoded", cycles.decoded_bytes),
        ("bodies, as received", cycles.stored_bytes),
        ("page files, with headers", cycles.disk_bytes),
    )
    rows = [
        (
            words(name),
            words.size(number),
            words.size(number / pages) if pages else "-",
            words.share(number / cycles.decoded_bytes) if cycles.decoded_bytes else "-",
        )
        for name, number in about
    ]
    headers = [words(name) for name in ("what", "size", "per answer", "share of the decoded size")]
    chart = bars([(row[0], number / 1e6) for row, (_, number) in zip(rows, about)], "MB", words) if pages else None
    parts = [
        Part("compression", words("Compression"), headers, rows, chart),
        bins_part(
            "sizes", words("Sizes of bodies as received"), words("size"), words("pages"), of.answers.sizes.rows(), words
        ),
    ]
    return Section("sizes", words("Sizes and compression"), "", parts)


def show_servers(of: Figures, words: Words) -> Section:
    servers, domains, pages = of.known.servers.rows(), of.known.domains.rows(), words("pages")
    return Section(
        "servers",
        words("Servers, domains and suffixes"),
        words("Those with the most collected pages. Suffix: what follows the registered domain's own label."),
        [
            Part(
                "servers",
                words("Servers with the most pages"),
                [words(name) for name in ("server", "pages", "known URLs", "mean response time, ms")],
                servers,
                bars([(shorten(row[0]), row[1]) for row in servers], pages, words) if servers else None,
            ),
            Part(
                "top-domains",
                words("Domains with the most pages"),
                [words(name) for name in ("domain", "pages", "known URLs", "servers")],
                domains,
                bars([(shorten(row[0]), row[1]) for row in domains], pages, words) if domains else None,
            ),
            Part(
                "slowest",
                words("Slowest servers"),
                [words(name) for name in ("server", "mean response time, ms", "requests")],
                of.known.slowest.rows(),
                bars([(shorten(row[0]), row[1]) for row in of.known.slowest.rows()], words("mean, ms"), words)
                if of.known.slowest.rows()
                else None,
            ),
            share_part(
                "suffixes",
                words("Shares of suffixes"),
                words("suffix"),
                pages,
                of.known.suffixes.most_common(SHOWN),
                words,
            ),
        ],
    )


def show_links(of: Figures, words: Words) -> Section:
    linked, pages = of.known.linked.rows(), words("pages")
    out, into = of.answers.links_out, of.known.links_in
    text = words("Mean links per page: {out} out, {into} in.").format(
        out="-" if out.mean is None else words.number(out.mean),
        into="-" if into.mean is None else words.number(into.mean),
    )
    parts = [
        bins_part("links-out", words("Links out of a page"), words("links"), pages, out.rows(), words),
        bins_part("links-in", words("Pages that link to a collected page"), words("links"), pages, into.rows(), words),
        Part(
            "linked",
            words("URLs that most pages link to"),
            ("URL", words("links")),
            linked,
            bars([(shorten(url), links) for url, links in linked], words("links"), words) if linked else None,
        ),
    ]
    return Section("links", words("Degrees"), text, parts)


def show_ranks(of: Figures, words: Words) -> Section:
    ranks, best = of.ranks, of.ranks.best if of.ranks else []
    told = (
        "Ranks of a file of bin/graph rank."
        if ranks
        else "To see ranks here, run bin/graph build and bin/graph rank, or give a file with --ranks."
    )
    parts = [
        Part(
            "ranks",
            words("URLs with the highest ranks"),
            ("URL", words("rank")),
            best,
            bars([(shorten(url), rank) for url, rank in best], words("rank"), words) if best else None,
        ),
        bins_part(
            "rank-distribution",
            words("Distribution of ranks"),
            words("rank"),
            "URLs",
            ranks.rows() if ranks else [],
            words,
        ),
    ]
    head = f" {words('Its head says: {head}.').format(head='; '.join(ranks.head))}" if ranks and ranks.head else ""
    return Section("ranks", words("Ranks"), words(told) + head, parts)


def show_depth(of: Figures, words: Words) -> Section:
    depths, deepest = (
        [(str(n), int(m)) for n, m in enumerate(trim(a))] for a in (of.known.depths, of.known.domain_depths)
    )
    cycles = of.cycles
    decided = [(words("followed deeper"), cycles.domains_deeper), (words("closed"), cycles.domains_closed)]
    own_links = sorted(cycles.own_domain_links.items(), key=lambda item: int(item[0].partition("-")[0]))
    text = words("Depth is the least number of links from a seed. A domain counts once, at its deepest collected page.")
    parts = [
        bins_part("depths", words("Pages by depth"), words("depth"), words("pages"), depths, words),
        bins_part("deepest", words("How deep domains were followed"), words("depth"), words("domains"), deepest, words),
    ]
    if of.status["policy"] == NEW_DOMAINS or cycles.own_domain_links:
        parts += [
            share_part(
                "new-domains",
                words("Whether domains were followed deeper"),
                words("what"),
                words("decisions"),
                decided,
                words,
            ),
            bins_part(
                "own-links", words("Links to the page's own domain"), words("links"), words("pages"), own_links, words
            ),
        ]
    return Section("depth", words("Depth"), text, parts)


def trim(counts) -> list:
    """Without the zeros at its end."""
    return counts[: max((n + 1 for n, count in enumerate(counts) if count), default=0)].tolist()


def show_visits(of: Figures, words: Words) -> Section:
    known, pages = of.known, words("pages")
    about = (
        ("visits", "Visits per page", "visits", known.visits),
        ("changes", "Changes that were found per page", "changes", known.changes),
        ("freshness", "Freshness: days since the last visit", "days", known.ages),
    )
    parts = [
        bins_part(name, words(caption), words(label), pages, bins.rows(), words) for name, caption, label, bins in about
    ]
    return Section("visits", words("Visits, changes and freshness"), "", parts)


def show_duplicates(of: Figures, words: Words) -> Section:
    found = of.duplicates
    sizes = Counter(found.sizes.tolist()) if found else Counter()
    rows: list = []
    if found:
        rows = [
            (words("pages with known content"), found.pages),
            (words("distinct contents"), found.distinct),
            (words("groups of pages with the same content"), found.clusters),
            (words("pages in such groups"), found.in_clusters),
        ]
    parts = [
        Part(
            "duplicates",
            words("Pages with the same content"),
            (words("what"), words("number")),
            rows,
            bars(rows, words("number"), words) if rows and found.pages else None,
        ),
        Part(
            "largest-groups",
            words("The largest groups"),
            (words("pages in the group"), words("groups")),
            sorted(sizes.items(), reverse=True),
        ),
    ]
    return Section("duplicates", words("Duplicates"), "", parts)


def show_seeds(of: Figures, words: Words) -> Section:
    results = [(seed, *judge(seed, of.answers.seed_words.get(seed.key, ""))) for seed in of.known.seeds]
    by_host: Counter = Counter((is_dead, seed.server, result) for seed, result, is_dead in results)
    ordered = sorted(by_host.items(), key=lambda item: (not item[0][0], -item[1], item[0]))
    rows = [
        (server, tell(result, words), words("dead") if is_dead else "", number)
        for (is_dead, server, result), number in ordered
    ]
    by_result = Counter(tell(result, words) for _, result, _ in results)
    dead = sorted((seed.url, result) for seed, result, is_dead in results if is_dead)
    note = words("The first {shown} of {all} rows.").format(shown=SEED_ROWS_MAX, all=words.number(len(rows)))
    dead_note = words("The first {shown} of {all} rows.").format(shown=SEED_ROWS_MAX, all=words.number(len(dead)))
    left_out = of.known.seeds_left_out
    parts = [
        share_part("seeds", words("Seeds by result"), words("result"), words("seeds"), by_result.most_common(), words),
        Part(
            "seeds-by-host",
            words("Seeds by server and result, dead ones first"),
            [words(name) for name in ("server", "result", "dead", "seeds")],
            rows[:SEED_ROWS_MAX],
            note=note if len(rows) > SEED_ROWS_MAX else "",
        ),
        Part(
            "dead-seeds",
            words("Dead seeds"),
            ("URL", words("result")),
            [(url, tell(result, words)) for url, result in dead[:SEED_ROWS_MAX]],
            note=dead_note if len(dead) > SEED_ROWS_MAX else "",
        ),
    ]
    text = words("A seed is dead if its last answer has a status of 400 or more, or if it failed or was refused.")
    if left_out:
        text += " " + words("{number} more seeds are not counted here.").format(number=words.number(left_out))
    return Section("seeds", words("Seeds"), text, parts)


def tell(result: str, words: Words) -> str:
    """A state in the words of the report; a status or a reason as it is."""
    return words(result.replace("_", " ")) if result in (*STATES, NOT_ASKED_YET) else result


def judge(seed: Seed, word: str) -> tuple[str, bool]:
    """What became of a seed: its last status or reason, else its state; and whether it is dead."""
    if not word:
        return (NOT_ASKED_YET, False) if seed.state in NOT_ASKED else (seed.state, seed.state != COLLECTED)
    return plain(word), not word.isdigit() or int(word) >= DEAD_FROM
