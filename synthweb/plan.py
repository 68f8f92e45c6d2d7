"""The plan of a web: which servers there are, what is odd about each, how large it is and how far from the seeds."""

from random import Random

from synthweb import robots
from synthweb.server import Server
from synthweb.words import tongue_of

# One of each first, so that even a small web has them; more of some as the web grows. (role, one more per so many)
SPECIAL_ROLES = (
    ("recovers-once", 100),
    ("recovers-twice", 100),
    ("too-many-requests", 100),
    ("fails-forever", 100),
    ("robots-late", None),
    ("robots-never", None),
    ("barred", 100),
    ("slow", 75),
    ("refused", 50),
    ("nameless", None),
    ("silent", None),
)

SERVERS_MIN = 3
SERVERS_MAX = 10_000  # addresses: 250 to a /24, and one /16 a web

# Sizes follow a power law of the rank; at 300 servers the sum is near 3,000 ordinary pages.
LARGEST_PAGES = 400
PAGES_PER_SERVER_SCALE = 800 / 300
SIZE_EXPONENT = 1.15
LARGE_PAGES = 40  # servers from here on lie near the seeds, so that their own depth fits below

SUBDOMAIN_LABELS = ("www", "blog", "forum", "wiki", "m")
SUBDOMAIN_EVERY = 12
SHARED_ADDRESS_EVERY = 60


def plan_servers(seed: int, count: int) -> list[Server]:
    """All servers without their pages; those with level_wished 0 are the seeds' servers."""
    if not SERVERS_MIN <= count <= SERVERS_MAX:
        raise ValueError(f"servers: expected {SERVERS_MIN} to {SERVERS_MAX}, found {count}")
    rng = Random(f"synthweb/{seed}/plan")
    specials = special_roles(count)
    roles = specials + ["ordinary"] * (count - len(specials))
    rng.shuffle(roles)
    ordinary = [index for index, role in enumerate(roles) if role == "ordinary"]
    sizes = dict(zip(rng.sample(ordinary, len(ordinary)), ordinary_sizes(len(ordinary), count)))
    seeds = set(ordinary[: max(1, min(6, count // 10))])
    ranks = {index: rank for rank, index in enumerate(ordinary)}
    servers = []
    for index, role in enumerate(roles):
        server = Server(
            host=f"s{index}.test",
            address=None if role == "nameless" else address_of(seed, index),
            role=role,
            tongue=tongue_of(rng),
            size=sizes.get(index) or rng.randint(2, 4),
            level_wished=0 if index in seeds else wish_level(role, sizes.get(index, 0), rng),
        )
        if role == "slow":
            server.delay_s = rng.choice((0.2, 0.3, 0.5, 0.8))
        server.robots = choose_robots(role, ranks.get(index, 0), rng)
        servers.append(server)
    _share_names([servers[index] for index in ordinary if index not in seeds], rng)
    _share_addresses([servers[index] for index in ordinary], count, rng)
    return servers


def special_roles(count: int) -> list[str]:
    """At most half of the servers are special, however small the web."""
    first = [role for role, _ in SPECIAL_ROLES]
    more = [role for role, per in SPECIAL_ROLES if per for _ in range(count // per - 1)]
    return (first + more)[: count // 2]


def ordinary_sizes(ordinary: int, count: int) -> list[int]:
    scale = PAGES_PER_SERVER_SCALE * count
    return [max(1, min(LARGEST_PAGES, int(scale * rank**-SIZE_EXPONENT))) for rank in range(1, ordinary + 1)]


def wish_level(role: str, size: int, rng: Random) -> int:
    """Depth of the home page; growth.py takes the nearest that it can give."""
    if size >= LARGE_PAGES:
        return rng.choice((1, 2))
    if role != "ordinary":
        return rng.choice((1, 2, 3, 4))
    return rng.choices((1, 2, 3, 4, 5), weights=(12, 24, 30, 22, 12))[0]


def address_of(seed: int, index: int) -> str:
    """Webs of different seeds lie in different /16 networks, so that two can be served at once on one port."""
    return f"127.{16 + seed % 200}.{index // 250}.{1 + index % 250}"


def choose_robots(role: str, rank: int, rng: Random) -> robots.Robots:
    if role == "robots-late":
        return robots.LATE
    if role == "robots-never":
        return robots.NEVER
    if role == "barred":
        return robots.BARRED
    if role == "ordinary":
        # Every third server in turn, so that each file occurs; the rest mostly have none, as on the real web.
        turn = robots.ORDINARY[rank // 3 % len(robots.ORDINARY)]
        return turn if rank % 3 == 0 else rng.choice(robots.ORDINARY[:3])
    return robots.ABSENT


def _share_names(ordinary: list[Server], rng: Random) -> None:
    """Turn some servers into sub-domains of others, half of them on the other's address."""
    turned: set[str] = set()
    for number in range(len(ordinary) // SUBDOMAIN_EVERY):
        parent, child = rng.sample([server for server in ordinary if server.host not in turned], 2)
        label = SUBDOMAIN_LABELS[number % len(SUBDOMAIN_LABELS)]
        if parent.host.count(".") > 1 or any(server.host == f"{label}.{parent.host}" for server in ordinary):
            continue
        child.host = f"{label}.{parent.host}"
        if number % 2 == 0:
            child.address = parent.address
        turned |= {child.host}


def _share_addresses(ordinary: list[Server], count: int, rng: Random) -> None:
    """Give pairs of unrelated domains one address: politeness holds per address too."""
    domains = [server for server in ordinary if server.host.count(".") == 1]
    pairs = min(max(1, count // SHARED_ADDRESS_EVERY), len(domains) // 2)
    chosen = rng.sample(domains, 2 * pairs)
    for one, other in zip(chosen[::2], chosen[1::2]):
        other.address = one.address
