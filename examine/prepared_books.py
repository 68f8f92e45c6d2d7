"""The books of what lists are ordered by: features of rows, and what the table of servers says of its rows.

A list reads no text and adds up no rows. A column that is wrong here shows in no other book: URLs only come in another
order, or never.
"""

from pathlib import Path

import numpy as np

from contract import names
from contract.generation import Generation, read_generation_manifest, read_lines
from contract.plan import read_plan
from contract.policies import FEATURES, identify
from contract.policies.policy import Urls
from contract.policy_files import verify_files
from contract.tables import COLLECTED_STATE, PRESCHEDULED, STATES, WAITING
from examine.findings import Findings
from storage.tables import column

SERVERS = "servers count the rows that they have"
TESTED = "tested lastmod dates of a server: true ones <= all <= later visits of its pages"
CLOSED = "a domain is closed with all of its servers, and nothing of it waits"
FEATURES_CLAIM = "features of R are those of its texts"
STATES_OF = {"collected": (COLLECTED_STATE,), "waiting": (WAITING, PRESCHEDULED), "prescheduled": (PRESCHEDULED,)}
OF_THEIR_TIME = ("added", "spread")  # they depend on when a URL came


def check_servers(generation: Generation, folder: Path, forgotten: np.ndarray, findings: Findings) -> None:
    """`forgotten`: keys of the domains that had URLs which were forgotten."""
    servers, owner = generation.servers, generation.server_index
    state, count = np.asarray(generation.rows["state"]), len(servers)
    counts = np.bincount(owner.astype(np.int64) * len(STATES) + state, minlength=count * len(STATES))
    counts = counts.reshape(count, len(STATES))
    for name, states in STATES_OF.items():
        wrong = column(servers, name) != counts[:, states].sum(axis=1)
        findings.rows(SERVERS, folder, wrong, f"another number of URLs in {name}")
    mentions = np.bincount(owner, np.asarray(generation.rows["mentions"]), minlength=count).astype(np.uint64)
    findings.rows(SERVERS, folder, column(servers, "mentions") != mentions, "other mentions than its URLs have")
    check_claims(generation, folder, forgotten, findings)
    domain_key, closed = column(servers, "domain_key"), column(servers, "closed").astype(bool)
    findings.rows(CLOSED, folder, np.isin(domain_key, domain_key[closed]) & ~closed, "open, in a closed domain")
    findings.rows(CLOSED, folder, closed & (counts[:, STATES_OF["waiting"]].sum(axis=1) > 0), "closed, and URLs wait")


def check_claims(generation: Generation, folder: Path, forgotten: np.ndarray, findings: Findings) -> None:
    """A visit tests one claim of a sitemap at most, and the first one tests none. Visits of forgotten pages are not
    kept, while what they found out about their server is.
    """
    servers, visits = generation.servers, generation.side["visits"]
    owner = generation.server_index[generation.collected_rows]
    claims, true = column(servers, "lastmod_claims"), column(servers, "lastmod_true")
    later = np.bincount(owner, np.maximum(visits.astype(np.int64) - 1, 0), minlength=len(servers))
    is_full = visits == np.iinfo(visits.dtype).max  # such a page may have had any number of visits
    has_more = np.bincount(owner[is_full], minlength=len(servers)) > 0
    has_more |= np.isin(column(servers, "domain_key"), forgotten)
    findings.rows(TESTED, folder, true > claims, "more true than tested dates")
    findings.rows(
        TESTED, folder, (claims > later) & ~has_more, "more tested dates than visits after the first one of each page"
    )


def check_features(crawl: Path, generation: Generation, folder: Path, findings: Findings) -> None:
    """Computes features again by the configuration of the turn, as far as the generation is prepared by that one.

    After a split it may not be: the halves are prepared as their parent was.
    """
    manifest = read_generation_manifest(folder)
    if not (crawl / names.cycle(manifest["cycle"]) / names.PLAN).is_file():
        return  # another book names it
    prepared, config = manifest["prepared"]["features"], read_plan(crawl, manifest["cycle"]).config
    files = verify_files(crawl, config)
    wanted = identify(config, files)
    owner = generation.server_index
    urls = Urls(
        read_lines(crawl, generation, np.arange(len(generation))),
        np.asarray(generation.rows["key"]),
        column(generation.servers, "domain_key")[owner],
        column(generation.servers, "server_key")[owner],
        manifest["cycle"],
        config,
        files,
    )
    for name, one in FEATURES.items():
        values = np.asarray(generation.rows[name])
        if name not in prepared:
            findings.rows(FEATURES_CLAIM, folder, values != 0, f"{name}, which the manifest does not list")
        elif prepared[name] == wanted.get(name) and name not in OF_THEIR_TIME:
            findings.rows(FEATURES_CLAIM, folder, values != one.compute(urls), f"another {name} than that of its URL")
