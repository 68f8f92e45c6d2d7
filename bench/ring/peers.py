"""The peers: wget, Scrapy, spider-rs and Crawlee, each told to follow links on the seeds' hosts and to store pages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.processes import Child, Spent, run_child
from bench.ring.web import Web
from contract.config import Scope
from contract.errors import BadConfiguration

LIMIT_S = 600.0
SPIDER_LIMIT_S = 240.0  # it sleeps while the machine has other work, and so may take minutes for what takes seconds
NODE_FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench-node"
NODE_SCRIPTS = Path(__file__).resolve().parent / "node"
# spider-rs is pinned to the newest version whose compiled part was published for Linux.
NODE_PACKAGES = (
    "@spider-rs/spider-rs@0.0.157",
    "@spider-rs/spider-rs-linux-x64-gnu@0.0.157",
    "@crawlee/cheerio@3.18.1",
)
WGET_TAGS = "a,area,base,frame,iframe,meta"  # links between pages: no pictures, styles or scripts


def run_wget(web: Web, folder: Path, at_once: int) -> Spent:
    """wget -r in so many processes, which share the seeds; robots.txt obeyed, as it is by default."""
    make_empty(folder)
    options = [
        "--no-config",
        "--recursive",
        "--level=inf",
        f"--follow-tags={WGET_TAGS}",
        f"--reject={','.join(Scope().reject_extensions)}",
        "--wait=0",
        "--tries=1",
        "--timeout=20",
        "--no-verbose",
        "--no-hsts",
        "--user-agent=wget",
        f"--directory-prefix={folder}",
    ]
    children = []
    try:
        for number in range(at_once):
            log = folder / f"{number}.log"
            seeds = web.direct_seeds[number::at_once]
            children.append(Child(["wget", *options, f"--output-file={log}", *seeds], log, limit_s=LIMIT_S))
        # Exit code 8: an error was the answer to some URL, and manuals have broken links.
        spent = [child.wait((0, 8)) for child in children]
    finally:
        for child in children:
            child.kill()
    return Spent(max(one.wall_s for one in spent), sum(one.cpu_s for one in spent))


def run_scrapy(web: Web, folder: Path) -> Spent:
    """Scrapy with its queue and its set of seen URLs on disk."""
    seeds = write_seeds(web, folder)
    concurrency = max(16, len(web.sites))
    command = [sys.executable, "-P", "-m", "bench.ring.scrapy_peer", seeds, folder / "bodies", folder / "job"]
    return run_child([*command, concurrency], folder / "scrapy.log", limit_s=LIMIT_S)


def run_spider(web: Web, folder: Path) -> Spent:
    """spider-rs, all hosts at once."""
    return run_node("spider.cjs", web, folder, SPIDER_LIMIT_S)


def run_crawlee(web: Web, folder: Path) -> Spent:
    """Crawlee's CheerioCrawler, with its request queue on disk."""
    return run_node("crawlee.cjs", web, folder, LIMIT_S)


def run_node(script: str, web: Web, folder: Path, limit_s: float) -> Spent:
    """A script that takes seeds, where to put bodies, how much to do at once, and the extensions to leave out."""
    seeds, at_once = write_seeds(web, folder), len(web.sites)
    extensions = ",".join(Scope().reject_extensions)
    environment = [f"NODE_PATH={NODE_FOLDER / 'node_modules'}", f"CRAWLEE_STORAGE_DIR={folder / 'storage'}"]
    command = ["env", *environment, "node", NODE_SCRIPTS / script, seeds, folder / "bodies", at_once, extensions]
    return run_child(command, folder / "node.log", folder / "node.out", limit_s)


def install_node_packages() -> None:
    """npm packages, by name and version, below build/; done once."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise BadConfiguration("node and npm: not installed; apt-get install nodejs npm")
    stamp = NODE_FOLDER / "installed"
    if stamp.exists() and stamp.read_text() == "\n".join(NODE_PACKAGES):
        return
    NODE_FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"installing {', '.join(NODE_PACKAGES)} ...", flush=True)
    command = ["npm", "install", "--prefix", NODE_FOLDER, "--no-audit", "--no-fund", "--no-save", *NODE_PACKAGES]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ))
    if result.returncode:
        said = result.stderr.strip().splitlines() or ["it printed nothing"]
        raise BadConfiguration(f"npm could not install {' '.join(NODE_PACKAGES)}: {said[-1]}")
    stamp.write_text("\n".join(NODE_PACKAGES))


def write_seeds(web: Web, folder: Path) -> Path:
    make_empty(folder)
    seeds = folder / "seeds"
    seeds.write_text("".join(f"{url}\n" for url in web.direct_seeds))
    return seeds


def make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
