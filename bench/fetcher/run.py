"""The run: sets up web, names and scratch folder, measures each part, prints the tables."""

import os
import signal
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.fetcher import figures as calculation
from bench.fetcher.idle import run_beside, run_without
from bench.fetcher.naming import naming
from bench.fetcher.options import Scale, chosen_scale
from bench.fetcher.ours import Ours
from bench.fetcher.peers import WRK_CONNECTIONS, Scrapy, run_wrk
from bench.fetcher.polite import WINDOW, measure_polite
from bench.fetcher.shares import profile_shares
from bench.nginx import Host, Site, check_programs, make_sites, serving, write_hosts
from bench.pages import make_list, open_pages

PARTS = ("speed", "idle", "polite", "profile")
CORES = 2
IDLE_OFFERED = 1.05  # silent servers per idle socket wanted: see idle.py
SITES_BYTE, IDLE_BYTE = 0, 1  # pages on 127.0.x.y, silent servers on 127.1.x.y


def measure(arguments) -> dict:
    check_programs("nginx", "wrk")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # servers and scratch folder go too
    scale, parts = chosen_scale(arguments), arguments.only or PARTS
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)  # the children's too
    pages = open_pages(arguments.pages)
    figures = {
        "pages": scale.pages,
        "files": len(pages.paths),
        "mean_bytes": round(pages.mean_bytes),
        "repeats": scale.repeats,
    }
    with tempfile.TemporaryDirectory(prefix="bench-fetcher-", dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        print(
            f"{len(pages.paths)} HTML files, mean {pages.mean_bytes:,.0f} bytes; {scale.pages} URLs on {scale.names} "
            f"names and addresses; {len(cores)} cores for all; names by {arguments.names}; "
            f"output on {file_system(folder)}; {scale.repeats} repeats",
            flush=True,
        )
        if arguments.quick:
            print("a quick run: it shows that everything works, and its figures mean nothing", flush=True)
        sites, idle_sites = (
            make_sites("site", SITES_BYTE, scale.names),
            make_sites("silent", IDLE_BYTE, round(scale.idle_sockets * IDLE_OFFERED)),
        )
        hosts = folder / "hosts"
        write_hosts(hosts, sites + idle_sites)
        if set(parts) - {"polite"}:
            host = Host(pages.folder, [site.address for site in sites])
            with serving([host], folder / "nginx") as port, naming(arguments.names, hosts, folder) as name_setting:
                ours = Ours(folder, name_setting)
                urls = make_list(pages, [f"http://{site.name}:{port}" for site in sites], scale.pages)
                direct = make_list(pages, [f"http://{site.address}:{port}" for site in sites], scale.pages)
                if "speed" in parts:
                    figures |= measure_speed(scale, ours, urls, direct, pages.paths)
                if "idle" in parts:
                    figures |= measure_idle(scale, ours, urls, idle_sites)
                if "profile" in parts:
                    figures["shares"] = measure_shares(ours, urls)
        if "polite" in parts:
            figures |= measure_polite(scale, arguments.names, folder)
            print(
                f"polite: {scale.polite_servers} servers of 50 to 2,000 ms, pause {scale.polite_delay_s:g} s, "
                f"{scale.polite_s:g} s; utilisation = answers from {WINDOW[0]:.0%} to {WINDOW[1]:.0%} of the time / "
                "(window x sum of 1 / (pause + response time))\n"
                f"        = {figures['polite_answers']} / {figures['polite_possible']}; "
                f"the fetcher took {figures['polite_cpu_s']} s of CPU",
                flush=True,
            )
    print(*calculation.goal_lines(figures), sep="\n", flush=True)
    return figures


def measure_speed(scale: Scale, ours: Ours, urls: list[str], direct: list[str], paths: list[str]) -> dict:
    scrapy = Scrapy(direct, ours.folder)
    rates = scrapy.tune(min(scale.scrapy_trial_pages, len(direct)), scale.scrapy_concurrencies)
    print(
        "Scrapy, pages per second by reactor and concurrency: "
        + ", ".join(f"{setting.reactor} {setting.concurrency}: {rate:,.0f}" for setting, rate in rates.items()),
        flush=True,
    )
    ours.learn_start(urls[0])
    server = direct[0].removesuffix(paths[0])
    crawling = Scrapy(direct, ours.folder, "crawling", scrapy.setting)
    crawling.learn_start()
    taken: dict[str, list] = {"ours": [], "scrapy": [], "crawling": [], "wrk": []}
    scrapy_pages = min(scale.scrapy_pages, len(direct))
    for _ in range(scale.repeats):
        taken["ours"].append(calculation.rate_of(len(urls), *ours.run(urls)))
        taken["scrapy"].append(calculation.rate_of(scrapy_pages, *scrapy.run(scrapy_pages)))
        taken["crawling"].append(calculation.rate_of(scrapy_pages, *crawling.run(scrapy_pages)))
        taken["wrk"].append(run_wrk(server, paths, scale.wrk_s, ours.folder))
    figures = calculation.speed_figures(taken["ours"], taken["scrapy"], taken["crawling"], taken["wrk"])
    print(
        f"pages per second and CPU per page, nginx with 1 worker, medians of {scale.repeats} interleaved repeats; "
        "left out, as measured with one URL: "
        f"{ours.start.wall_s:.2f} s ({ours.start.cpu_s:.2f} s of CPU) to start and end the fetcher, "
        f"{scrapy.start.wall_s:.2f} s ({scrapy.start.cpu_s:.2f} s) Scrapy"
    )
    print(
        f"  fetcher, {len(urls)} pages                    {figures['pages_per_s']:7,} pages/s  "
        f"{figures['cpu_us_per_page']:6,} us"
    )
    print(f"  wrk, {WRK_CONNECTIONS} connections (the server's limit)  {figures['wrk_pages_per_s']:7,} pages/s")
    for build, key in (("lean", "scrapy"), ("crawling", "scrapy_crawling")):
        words = f"Scrapy {build}, {scrapy_pages} pages, {scrapy.setting.reactor} {scrapy.setting.concurrency}"
        print(
            f"  {words:41} {figures[key + '_pages_per_s']:7,} pages/s  {figures[key + '_cpu_us_per_page']:6,} us",
            flush=True,
        )
    return figures | {
        "start_s": round(ours.start.wall_s, 3),
        "start_cpu_s": round(ours.start.cpu_s, 3),
        "runs": taken,
        "scrapy_setting": f"{scrapy.setting.reactor} {scrapy.setting.concurrency}",
    }


def measure_idle(scale: Scale, ours: Ours, urls: list[str], idle_sites: list[Site]) -> dict:
    without, beside, waited = [], [], []
    for _ in range(scale.repeats):
        without.append(run_without(ours, urls).pages_per_s)
        rate, waiting = run_beside(ours, urls, idle_sites, scale.idle_sockets)
        beside.append(rate)
        waited.append(waiting)
    ratio = median(slow / fast for fast, slow in zip(without, beside))
    print(
        f"idle sockets: {median(without):,.0f} pages/s without, {median(beside):,.0f} while {scale.idle_sockets} or "
        f"more sockets are open to servers that accept and never answer; {median(waited):,.0f} pages left out, which "
        "came only after those had hung up",
        flush=True,
    )
    return {
        "idle_sockets_ratio": round(ratio, 3),
        "idle_sockets": scale.idle_sockets,
        "pages_per_s_beside_idle": round(median(beside)),
        "pages_waited_beside_idle": round(median(waited)),
    }


def measure_shares(ours: Ours, urls: list[str]) -> dict[str, float]:
    shares = profile_shares(ours, urls)
    print(
        "where the CPU time goes (a run of its own under cProfile, all threads; "
        "the profiler's mean cost per call is subtracted):"
    )
    for name, share in shares.items():
        print(f"  {share:6.1%}  {name}", flush=True)
    return {name: round(share, 4) for name, share in shares.items()}


def file_system(folder: Path) -> str:
    """The type of the file system that a folder is on."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    return max(
        (mount for mount in mounts if folder.resolve().is_relative_to(mount[0])), key=lambda mount: len(mount[0])
    )[1]
