"""Names of the files of a crawl folder: the one module that knows them."""

from pathlib import Path

from storage.publish import MANIFEST

CRAWL_FILE = "crawl.json"
CONFIGURATION = "configuration.toml"
SUFFIX_LIST = "public_suffix_list.dat"
LOCK = "lock"
LOG_SUMMARY = "log_summary.json"  # a cache: what the log says up to a position
JOURNAL = "journal"  # what runs did and when; losing it loses nothing
LIVE = "live.json"  # what the present run is doing; replaced every two seconds
MESSAGES = "messages.log"  # one line per event of a run
SLOTS = "slots"
DICTIONARY = "dictionary.zdict"
LOG = "log"
INBOX = "inbox"
CYCLES = "cycles"
GENERATIONS = "R"
TEXT = "R/text"
CORRUPT = "corrupt"
GRAPH = "graph"  # the link graph, made from the tables of cycles; losing it loses nothing
FILES = "files"  # copies of files that a policy reads, by checksum

CRAWL_COMMAND, CYCLE_COMMAND, DEMO_COMMAND = "crawl", "run-cycle", "run-cycle --demo"
RUN_COMMANDS = (CRAWL_COMMAND, CYCLE_COMMAND, DEMO_COMMAND)  # that the journal and live.json name

PLAN = "plan.json"
HELD = "held.json"
VERIFIER_PLAN = "verifier.plan.json"

SCHEDULER = "scheduler"
FETCHER = "fetcher"
EXTRACTOR = "extractor"
VERIFIER = "verifier"
STAGES = (SCHEDULER, FETCHER, EXTRACTOR, VERIFIER)

URL_LIST = "Lista_de_URLs.parquet"
SERVERS = "Servidores.parquet"
PAGES = "Repositorio_de_Paginas"
COLLECTED = "UrlsColetadas.parquet"
EXTRACTED = "UrlsExtraidas.parquet"
METADATA = "MetadadosUrlsColetadas.parquet"
FAILURES = "Falhas.parquet"
LINKS = "Ligacoes.parquet"
TARGETS = "Alvos.parquet"
REJECTED = "UrlsRejeitadas.parquet"
AUX = "AUX.parquet"
RECONSIDERED = "Reconsideradas.parquet"
REFUSED_URLS = "UrlsRecusadas.parquet"
FORGOTTEN = "UrlsEsquecidas.parquet"
REPORT = "report.json"

NUMBER_END = 1 << 32  # of cycles, blocks and positions of the log: texts are found by cycles of 32 bits
NUMBER_DIGITS_MAX = 20

__all__ = ["MANIFEST"]


def log_entry(position: int) -> str:
    return f"{position:08d}.json"


def cycle(number: int) -> str:
    return f"{CYCLES}/{number:08d}"


def generation(block: int, number: int) -> str:
    return f"{GENERATIONS}/{block:04d}/{number:08d}"


def segment(number: int) -> str:
    return f"{number:08d}.zst"


def taken_in(inbox: str) -> str:
    """The copy of a file of inbox/ that stands beside the tables made from it."""
    return "inbox.parquet" if inbox.endswith(".parquet") else "inbox.txt"


def visible_files(folder: Path) -> list[Path]:
    """The files of a folder, without those whose names begin with a dot: they are being written."""
    return sorted(path for path in folder.glob("[!.]*") if path.is_file())


def numbered(folder: Path, suffix: str = "") -> list[int]:
    """The sorted numbers that are names in a folder; other names are skipped."""
    if not folder.is_dir():
        return []
    stems = (path.name.removesuffix(suffix) for path in folder.iterdir() if path.name.endswith(suffix))
    numbers = (int(stem) for stem in stems if stem.isascii() and stem.isdigit() and len(stem) <= NUMBER_DIGITS_MAX)
    return sorted(number for number in numbers if number < NUMBER_END)
