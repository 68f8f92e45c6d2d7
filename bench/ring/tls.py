"""Large pages over TLS, a new connection per host: pages per second and core.

A crawl of a billion pages that was published in 2025 reports 57 pages of some 240 KB per second and core, with parsing
on the same machines. Here each host has an address and few pages, so that handshakes count.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from urllib.parse import unquote

from bench.nginx import Host, Site, check_programs, serving, write_hosts
from bench.pages import choose_pages
from bench.ring.options import Scale
from bench.ring.ours import Ours
from bench.ring.web import MANUALS, Web, unpack_manuals

SECOND_BYTE = 61  # 127.61.DOMAIN.HOST
CORES = 2
ELSEWHERE = b"http://elsewhere.example/"


def measure_tls(scale: Scale, folder: Path) -> dict:
    check_programs("nginx", "openssl")
    with serving_large(scale, folder / "tls-web") as (web, authority):
        ours = Ours(folder / "tls", prefix=("env", f"SSL_CERT_FILE={authority}"))
        position = web.position()
        spent = ours.run(web)
        asked = web.asked_since(position)
    expected = scale.tls_domains * scale.tls_hosts * scale.tls_pages
    per_core = asked.found / spent.wall_s / CORES
    print(
        f"tls: {asked.found} pages of {scale.tls_page_bytes / 1000:.0f} KB on {len(web.sites)} hosts in "
        f"{spent.wall_s:.1f} s, server on the same {CORES} cores; {spent.cpu_s * 1000 / max(1, asked.found):.2f} ms of "
        "CPU per page, nginx not counted" + (f"; expected {expected} pages" if asked.found != expected else ""),
        flush=True,
    )
    return {
        "tls.pages_per_s_per_core": round(per_core, 1),
        "tls.pages_per_cpu_s": round(asked.found / spent.cpu_s, 1),
        "tls.pages": asked.found,
        "tls.pages_expected": expected,
    }


@contextmanager
def serving_large(scale: Scale, folder: Path) -> Iterator[tuple[Web, Path]]:
    """The web, and the file of the authorities that a client must trust: the certificates themselves."""
    folder.mkdir()
    root = folder / "pages"
    write_pages(root, scale.tls_pages, scale.tls_page_bytes)
    sites, hosts, authorities = [], [], []
    for domain in range(scale.tls_domains):
        certificate = make_certificate(folder, f"large-{domain:02d}.test")
        authorities.append(certificate.with_suffix(".crt").read_text())
        for number in range(scale.tls_hosts):
            site = Site(f"www{number:02d}.large-{domain:02d}.test", f"127.{SECOND_BYTE}.{1 + domain}.{1 + number}")
            sites.append(site)
            hosts.append(Host(root, [site.address], site.name, certificate=certificate))
    write_hosts(folder / "hosts", sites)
    (folder / "authorities.pem").write_text("".join(authorities))
    with serving(hosts, folder / "nginx", folder / "access.log") as port:
        yield Web(sites, port, folder / "access.log", folder / "hosts", "https"), folder / "authorities.pem"


def write_pages(root: Path, pages: int, size_bytes: int) -> None:
    """Real pages joined up to the wanted size; the first one has links to the others.

    The links of the real pages lead out of scope: they are read and judged, and nothing is missing here.
    """
    root.mkdir()
    sources = choose_pages(*unpack_manuals(MANUALS[:1]))
    texts = cycle(
        (sources.folder / unquote(path).lstrip("/")).read_bytes().replace(b'href="', b'href="' + ELSEWHERE)
        for path in sources.paths
    )
    for page in range(pages):
        links = "".join(f'<a href="{other}.html">{other}</a>\n' for other in range(1, pages)) if not page else ""
        body = links.encode()
        while len(body) < size_bytes:
            body += next(texts)
        (root / ("index.html" if not page else f"{page}.html")).write_bytes(body[:size_bytes])


def make_certificate(folder: Path, domain: str) -> Path:
    """A PEM file with certificate and key (ECDSA P-256) for the hosts of a domain; beside it the certificate alone."""
    key, certificate, both = (folder / f"{domain}.{ending}" for ending in ("key", "crt", "pem"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "30", "-subj", f"/CN={domain}", "-addext", f"subjectAltName=DNS:*.{domain}"]
    subprocess.run(
        [*command, *names, "-keyout", key, "-out", certificate],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    return both
