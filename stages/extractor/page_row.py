"""A row of MetadadosUrlsColetadas with named fields: the columns of contract.tables.METADATA, in their order."""

from typing import NamedTuple

from contract.tables import METADATA


class PageRow(NamedTuple):
    """What the table says of one answer; docs/formats.md explains each column."""

    domain_key: int
    url_key: int
    server_key: int
    url: str
    file: str
    offset: int
    length: int
    status: int
    type: str
    charset: str
    payload_digest: str
    content_digest: bytes
    fetched_at_ms: int
    waited_ms: int
    dns_ms: int
    connect_ms: int
    first_byte_ms: int
    total_ms: int
    bytes: int
    address: str
    etag: str
    last_modified: str
    redirect_to: str
    parsed: bool
    reader: str
    trouble: str
    title: str
    language: str
    canonical: str
    noindex: bool
    nofollow: bool
    links_inside: int
    links_outside: int
    links_own_domain: int
    links_other_domains: int
    revisit: bool
    duplicate: bool  # always False here: only the whole table shows which content repeats
    fingerprint: int


if list(PageRow._fields) != METADATA.names:
    raise TypeError(f"expected the columns {METADATA.names}, found the fields {list(PageRow._fields)}")
