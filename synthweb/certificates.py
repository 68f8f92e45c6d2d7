"""Certificates made at run time: one that is good, and one for each way to be bad; the only importer of trustme."""

import ssl
from datetime import UTC, datetime, timedelta

import trustme

DAY = timedelta(days=1)


class Certificates:
    """`contexts` by name, for a server; `authority_pem` is what a client must trust to accept the good one."""

    def __init__(self, *names: str):
        authority, stranger = trustme.CA(), trustme.CA()
        now = datetime.now(UTC)
        issued = {
            "good": authority.issue_cert(*names),
            "expired": authority.issue_cert(*names, not_before=now - 30 * DAY, not_after=now - DAY),
            "not-yet": authority.issue_cert(*names, not_before=now + DAY, not_after=now + 30 * DAY),
            "wrong-name": authority.issue_cert("another.test"),
            "unknown-authority": stranger.issue_cert(*names),
        }
        self.authority_pem: bytes = authority.cert_pem.bytes()
        self.contexts: dict[str, ssl.SSLContext] = {}
        for name, certificate in issued.items():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            self.contexts[name] = context
        self.contexts["self-signed"] = _load_own(trustme.CA())


def _load_own(authority: trustme.CA) -> ssl.SSLContext:
    """The authority's own certificate shown as a server's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with trustme.Blob(authority.private_key_pem.bytes() + authority.cert_pem.bytes()).tempfile() as path:
        context.load_cert_chain(path)
    return context
