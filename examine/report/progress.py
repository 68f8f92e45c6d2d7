"""Sections about the crawl as work: the summary, progress over time, waits, stages, limits, and what is wrong."""

from itertools import accumulate

from contract import names
from contract.log import CRAWL
from contract.units import moment
from examine.link_sources import KEY, is_any
from examine.report.charts import bars, gantt, lines
from examine.report.cycles import FETCHED
from examine.report.figures import Figures
from examine.report.sections import Part, Section, bins_part, plain, share_part, thin_out
from examine.report.words import Words

DAY_S = 86_400


def summarise(of: Figures, words: Words) -> Section:
    """The table of the thesis of VEUNI (UFMG, 2011), and what else an operator asks first."""
    status, answers = of.status, of.answers
    servers, domains = status["servers"], status["domains"]
    if is_any(status[KEY]):  # manifests count those of link sources too
        servers, domains = of.known.servers_counted, of.known.domains_counted
    period = "-"
    if answers.first_ms is not None:
        length = words.duration((answers.last_ms - answers.first_ms) / 1000)
        period = f"{moment(answers.first_ms)} \N{EN DASH} {moment(answers.last_ms)} ({length})"
    rows = [
        (words("collected pages"), status["collected"]),
        (words("static pages (no query in the URL)"), answers.pages - answers.dynamic),
        (words("dynamic pages (with a query)"), answers.dynamic),
        (words("waiting URLs"), status["waiting"]),
        (words("known URLs"), status["known"]),
        *show_link_sources(status, words),
        (words("domains that answered"), answers.domains),
        (words("known domains"), domains),
        (words("period, first to last request"), period),
        (words("effective time, some stage at work"), effective_time(of, words)),
        (words("answers, with later visits"), status["fetched"]["answered"]),
        (words("failed requests"), status["fetched"]["failed"]),
        (words("refused URLs"), status["fetched"]["refused"]),
        (words("servers"), servers),
        (words("blocks"), status["blocks"]),
        (words("cycles that fetched pages"), sum(row["kind"] == CRAWL for row in of.cycles.rows)),
        (words("commits, by kind"), tell_commits(status, words)),
        (words("policy"), plain(status["policy"] or "-")),
        (words("a run is at work"), words("yes") if status["running"] else words("no")),
        (words("estimate"), tell_estimate(status["estimate"], words)),
    ]
    part = Part("summary", words("The crawl in numbers"), (words("what"), words("value")), rows)
    return Section("summary", words("Summary"), "", [part])


def tell_commits(status: dict, words: Words) -> str:
    """As bin/status counts them: kinds by their names in the log."""
    kinds = ", ".join(f"{words.number(number)} {kind}" for kind, number in status["entries"].items())
    return words.number(status["commits"]) + (f" ({kinds})" if kinds else "")


def tell_estimate(estimate: dict, words: Words) -> str:
    return words(estimate["form"]).format(**{name: words.value(text) for name, text in estimate["values"].items()})


def show_link_sources(status: dict, words: Words) -> list[tuple[str, int]]:
    """What the other rows leave out, where there is any."""
    theirs = status[KEY]
    return [(words("link sources, left out of all counts"), theirs["known"])] if is_any(theirs) else []


def effective_time(of: Figures, words: Words) -> str:
    if of.work.since_ms is None:
        return words("not known: there is no journal")
    told = words.duration(of.work.effective_s)
    if of.work.since_ms - of.status["began_at_ms"] < DAY_S * 1000:
        return told
    return f"{told} ({words('since')} {moment(of.work.since_ms)})"


def show_progress(of: Figures, words: Words) -> Section:
    rows = of.answers.visits.rows()
    pages = list(accumulate(row["pages"] for row in rows))
    domains = list(accumulate(row["new_domains"] for row in rows))
    series = [(moment(row["at_ms"]), int(page), int(domain)) for row, page, domain in zip(rows, pages, domains)]
    shown, note = thin_out(series, words)
    at_ms = [row["at_ms"] for row in rows]
    drawn = [
        lines({words(name): list(zip(at_ms, values))}, words(name), words) if rows else None
        for name, values in (("pages", pages), ("domains", domains))
    ]
    headers = words("time"), words("pages"), words("domains")
    text = words("All answers up to a time, later visits included, and registered domains that had answered.")
    parts = [
        Part("pages", words("Pages over time"), headers[:2], [row[:2] for row in shown], drawn[0], note),
        Part(
            "domains",
            words("Domains over time"),
            (headers[0], headers[2]),
            [(a, d) for a, _, d in shown],
            drawn[1],
            note,
        ),
    ]
    return Section("progress", words("Pages and domains over time"), text, parts)


def show_rate(of: Figures, words: Words) -> Section:
    rows, step_s, limit = of.answers.visits.rows(), of.answers.visits.step_s, of.bandwidth_max_bytes_per_s
    at_ms = [row["at_ms"] for row in rows]
    paces = [row["pages"] / step_s for row in rows]
    speeds = [row["bytes"] / step_s / 1000 for row in rows]
    table, note = thin_out([(moment(at), pace, speed) for at, pace, speed in zip(at_ms, paces, speeds)], words)
    pace = lines({words("pages/s"): list(zip(at_ms, paces))}, words("pages/s"), words) if rows else None
    told = words("limit: {rate} kB/s").format(rate=words.number(limit / 1000)) if limit else words("no limit is set")
    speed = None
    if rows:
        series = {"kB/s": list(zip(at_ms, speeds))}
        speed = lines(series, "kB/s", words, limit=limit / 1000 if limit else None, limit_name=told)
    text = words("Each point is the mean over {step}. Bandwidth counts bodies as received, without headers.")
    parts = [
        Part("rate", words("Pages per second"), (words("time"), words("pages/s")), [r[:2] for r in table], pace, note),
        Part(
            "bandwidth",
            f"{words('Bandwidth against its limit')} ({told})",
            (words("time"), "kB/s"),
            [(at, value) for at, _, value in table],
            speed,
            note,
        ),
    ]
    return Section("rate", words("Rate and bandwidth"), text.format(step=words.duration(step_s)), parts)


def show_waits(of: Figures, words: Words) -> Section:
    rows = [row for row in of.answers.visits.rows() if row["pages"]]
    wait, request = words("waiting for politeness"), words("request")
    series = {
        name: [(row["at_ms"], row[column] / row["pages"]) for row in rows]
        for name, column in ((wait, "waited_ms"), (request, "total_ms"))
    }
    pages = sum(row["pages"] for row in rows)
    phases = [
        (wait, "waited_ms"),
        (words("name look-up"), "dns_ms"),
        (words("connection"), "connect_ms"),
        (words("first byte"), "first_byte_ms"),
        (words("whole request"), "total_ms"),
    ]
    means = [(name, sum(row[column] for row in rows) / pages if pages else None) for name, column in phases]
    chart = lines(series, words("mean, ms"), words) if rows else None
    text = words("How long a page waited until its server could be asked again, and how long its request took.")
    return Section(
        "waits",
        words("Waiting time per page"),
        text,
        [
            Part("waits", words("Mean times over time"), (words("phase"), words("mean, ms")), means, chart),
            bins_part(
                "wait-distribution",
                words("Waiting for politeness"),
                words("time"),
                words("answers"),
                of.answers.waits.rows(),
                words,
            ),
        ],
    )


def show_stages(of: Figures, words: Words) -> Section:
    work = of.work
    shown = [(f"{bar['cycle']} (R_{bar['block']})", bar["stage"], bar["begin_ms"], bar["end_ms"]) for bar in work.bars]
    chart = gantt(shown, names.STAGES, words) if shown else None
    headers = ("stage", "attempts", "failed attempts", "total time, s", "mean, s", "longest, s", "CPU time, s")
    headers = tuple(words(header) for header in (*headers, "largest memory", "share of the effective time"))
    rows = [
        (stage.stage, stage.attempts, stage.failed, stage.total_s, stage.mean_s, stage.longest_s, stage.cpu_s)
        + (words.size(stage.memory_peak_bytes), words.share(stage.share))
        for stage in work.stages
    ]
    text = words("Which stage of the newest cycles worked when. The table counts all that the journal has.")
    text += f" {words('Effective time')}: {effective_time(of, words)}."
    caption = words("Stages of the newest cycles (S scheduler, F fetcher, E extractor, V verifier)")
    return Section("stages", words("Stage times"), text, [Part("stages", caption, headers, rows, chart)])


def show_cycles(of: Figures, words: Words) -> Section:
    rows = of.cycles.rows
    figures = ("known", "collected", "waiting")
    series = {words(name): [(row["commit"], row[name]) for row in rows] for name in figures}
    chart = lines(series, "URLs", words, by=words("commit")) if rows else None
    columns_shown = ("commit", "cycle", "kind", "block", *FETCHED, *figures)
    table, note = thin_out([tuple(row[name] for name in columns_shown) for row in rows], words)
    headers = [words(name.replace("_", " ")) for name in columns_shown]
    text = words(
        "URLs in all blocks after each cycle. After a block was split, collected and waiting URLs of its halves are "
        "estimated until the next cycle of each."
    )
    part = Part("cycles", words("Known, collected and waiting URLs by cycle"), headers, table, chart, note)
    states = [(state.replace("_", " "), number) for state, number in of.status["states"].items()]
    now = share_part(
        "states",
        words("URLs by state now"),
        words("state"),
        "URLs",
        [(words(state), number) for state, number in states] if of.status["known"] else [],
        words,
    )
    return Section("cycles", words("Known, collected, waiting"), text, [part, now])


def show_errors(of: Figures, words: Words) -> Section:
    errors = of.status["errors"]
    counts = [(plain(row["reason"]), row["urls"]) for row in errors if row["urls"]]
    headers = ("reason", "URLs", "servers failing", "servers given up", "example", "message")
    counted = ("urls", "servers_failing", "servers_given_up")
    rows = [
        (plain(row["reason"]), *(row[name] for name in counted), plain(row["example"]), plain(row["message"]))
        for row in errors
    ]
    chart = bars(counts, "URLs", words) if counts else None
    text = words("Why URLs were not answered. A URL counts once per cycle that listed it.")
    part = Part("errors", words("Errors by kind"), [words(header) for header in headers], rows, chart)
    return Section("errors", words("Errors"), text, [part])


def show_problems(of: Figures, words: Words) -> Section:
    rows = [(plain(problem["what"]), plain(problem["do"])) for problem in of.status["problems"]]
    part = Part("problems", words("What is wrong, and what to do"), (words("what is wrong"), words("what to do")), rows)
    return Section("problems", words("Problems"), "" if rows else words("Nothing is wrong."), [part])
