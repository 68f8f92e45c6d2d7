"""The promises: what must hold at every instant, and what must hold when the supervisor says Done.

They are worked out from the log alone, by the right rules, whatever the protocol under test makes
of the same files: each entry's ghost says which pages, seeds or abandoned list it stands for.
"""

from .files import TORN
from .log import Violation
from .protocol import Protocol
from .web import block_of, closure, found, merge, outcomes, take_back


def check(world):
    """Holds at every instant, and so after every crash, of what is seen."""
    judge, look = Protocol(world.protocol.setting), world.look()
    check_manifests(look)
    state = judge.read_log(look)
    check_text(judge, look)
    check_seeds(look, state, world.promised)
    check_entries(judge, look, state)
    check_blocks(judge, look, state)
    check_kept_generations(judge, look, state)
    return judge, look, state


def check_done(world):
    """Holds when the supervisor has said Done: everything known, everything taken, nothing owed."""
    judge, look, state = check(world)
    known, given_up = set(), set()
    for block in range(state.n):
        generation, seen = state.live[block]
        if judge.slices(look, state, block, state.n, seen, len(state.entries)):
            raise Violation("pending", f"block {block} has rows to take after Done")
        for url, collected, attempts, _ in judge.generation(look, generation).rows:
            known.add(url)
            if not collected:
                given_up.add(url)
                if attempts < judge.setting.attempts_max:
                    raise Violation("waiting", f"url {url} waits after Done")
    seeds = [url for entry in state.entries if entry.kind == "seed" for url in entry.ghost]
    web = judge.web._replace(links={**judge.web.links, **dict.fromkeys(given_up, ())})
    if known != closure(web, seeds):
        raise Violation("lost", f"known {sorted(known)}, reachable {sorted(closure(web, seeds))}")
    if delivered(look):
        raise Violation("inbox", "not empty after Done")
    check_reported(world)


def check_reported(world):
    """Done was reported: a power cut must not take back what it stands on."""
    log = world.files.find("log", world.base)
    for name, node in world.files.tree[log].items():
        if name.isdigit() and world.files.disk[log].get(name) != node:
            raise Violation("unsynced", f"log/{name} was reported as committed, a power cut would lose it")


def delivered(look):
    return [name for name in look.names("inbox") if not name.startswith(".")]


def check_seeds(look, state, promised):
    """What bin/seed has reported is in the inbox or in the log, and in the log once."""
    names = [entry.seed for entry in state.entries if entry.seed]
    if len(names) != len(set(names)):
        raise Violation("seeds", f"taken in twice: {names}")
    if missing := promised - {*names, *delivered(look)}:
        raise Violation("seeds", f"lost: {sorted(missing)}")


def check_manifests(look, folder=""):
    """A manifest that is there names files that are there, whole."""
    for name in look.names(folder):
        path = f"{folder}/{name}" if folder else name
        if look.is_folder(path):
            check_manifests(look, path)
        elif name == "manifest":
            for file, content in whole_manifest(look, path):
                if not look.has(f"{folder}/{file}"):
                    raise Violation("named", f"{folder}/{file} is named by a manifest and not there")
                if look.read(f"{folder}/{file}") != content:
                    raise Violation("named", f"{folder}/{file} is not what its manifest says")


def check_text(judge, look):
    """So does a generation with its segments of text."""
    for made in judge.generations(look):
        for cycle in made.text:
            if not look.has(f"R/text/{cycle}") or look.read(f"R/text/{cycle}") != cycle:
                raise Violation("text", f"R/text/{cycle}, of generation {made.cycle} of {made.block}")


def whole_manifest(look, path):
    content = look.read(path)
    if content == TORN:
        raise Violation("torn", path)
    return content


def check_entries(judge, look, state):
    """Generations exist and say what their entries say; pages are kept."""
    for position, entry in enumerate(state.entries):
        if position in state.void:
            continue
        if entry.seen > position:
            raise Violation("seen", f"log/{position} has seen {entry.seen}")
        if entry.kind == "crawl" and not look.has(f"cycles/{entry.cycle}/fetcher/manifest"):
            raise Violation("pages", f"the pages of cycle {entry.cycle} are gone")
    for block, (generation, seen) in state.live.items():
        if generation is None:
            continue
        if not look.has(f"R/{block}/{generation[1]}/manifest"):
            raise Violation("generation", f"live generation {generation} is gone")
        if judge.generation(look, generation).seen != seen:
            raise Violation("seen", f"generation {generation} and its entry disagree")


def truth(judge, state):
    """All rows that the log stands for."""
    rows = ()
    for position, entry in sorted(enumerate(state.entries), key=order_of):
        if position in state.void:
            continue
        if entry.kind == "crawl":
            rows = merge(rows, outcomes(entry.ghost), found(judge.web, entry.ghost))
        elif entry.kind == "seed":
            rows = merge(take_back(rows, entry.ghost), [(url, 0, 0, 0) for url in entry.ghost])
        elif entry.kind == "reconsider":
            rows = take_back(rows, entry.ghost)
    return rows


def order_of(numbered):
    """What a turn has absorbed, up to `seen`, comes before the outcomes of its own cycle."""
    position, entry = numbered
    return entry.seen if entry.kind == "crawl" else position + 0.5


def check_blocks(judge, look, state):
    """Each block holds, or has pending, exactly its share of what the log stands for."""
    web, all_rows = judge.web, truth(judge, state)
    for url, collected, _, _ in all_rows:
        if collected > 1:
            raise Violation("collected", f"url {url} was committed {collected} times")
    for block in range(state.n):
        generation, seen = state.live[block]
        rows = judge.generation(look, generation).rows
        for row in rows:
            if block_of(web.keys[row[0]], state.n) != block:
                raise Violation("routing", f"url {row[0]} stands in block {block}")
        pending = judge.slices(look, state, block, state.n, seen, len(state.entries))
        share = tuple(row for row in all_rows if block_of(web.keys[row[0]], state.n) == block)
        decided = judge.decisions(look, state, seen, len(state.entries))
        if merge(take_back(rows, decided), pending) != share:
            raise Violation("rows", f"block {block} holds {rows}, pending {pending}, should have {share}")


def check_kept_generations(judge, look, state):
    """A superseded generation that is kept can still be taken up: the AUX that it lacks is there."""
    for block, n, seen in judge.kept_generations(look, state):
        for position in range(seen, len(state.entries)):
            entry = state.entries[position]
            if position in state.void or entry.kind != "crawl":
                continue
            out = found(judge.web, entry.ghost)
            # What lies in the cycle's own block went straight into its generation.
            own = judge.replay(state.entries[: position + 1])
            owed = [row for row in out if block_of(judge.web.keys[row[0]], own.n) != entry.block]
            if judge.in_block(owed, block, n) and not look.has(f"cycles/{entry.cycle}/verifier/manifest"):
                raise Violation("aux", f"AUX of log/{position}, not seen by a kept generation of {block}")
