"""Why a URL has no page: the words that records, tables and counts use, and what follows from each."""

HTTP_5XX, HTTP_429 = "http_5xx", "http_429"
HTTP_304 = "http_304"  # to a request that did not ask for changes only: nothing says which page it stands for
DNS, DNS_TIMEOUT = "dns", "dns_timeout"  # the name has no address; no name server answered in time
CONNECTION_REFUSED, UNREACHABLE, TIMEOUT_CONNECT, TLS = "connection_refused", "unreachable", "timeout_connect", "tls"
TIMEOUT_TOTAL, TOO_SLOW, DISCONNECT, EMPTY = "timeout_total", "too_slow", "disconnect", "empty"
BAD_HTTP, TOO_LONG_HEADERS = "bad_http", "too_long_headers"
FORBIDDEN_ADDRESS, EXCLUDED_TYPE, TOO_BIG = "forbidden_address", "excluded_type", "too_big"
REJECT_DOMAINS, REJECT_EXTENSIONS = "reject_domains", "reject_extensions"
KILLED_FETCHER = "killed_fetcher"  # suspects.py says when

# Messages for failures that libcurl has no words for.
WORDS = {
    EMPTY: "the connection was closed without a byte",
    DISCONNECT: "the connection was closed before the head was whole",
    HTTP_304: "304 Not Modified, to a request without conditions",
    TOO_LONG_HEADERS: "a header line is longer than libcurl takes",
}

# Refusals are our own doing: the URL is not asked again, and no server is charged.
REFUSALS = frozenset((FORBIDDEN_ADDRESS, EXCLUDED_TYPE, TOO_BIG, REJECT_DOMAINS, REJECT_EXTENSIONS))

# Failures that may be over in a minute. One that used up its time is left to a later cycle, and so is a failed look-up.
TEMPORARY = frozenset((CONNECTION_REFUSED, UNREACHABLE, TIMEOUT_CONNECT, DISCONNECT, EMPTY, HTTP_429, HTTP_5XX))

# Ends of an exchange that show that the network works, the good end among them.
SIGNS_OF_LIFE = frozenset(
    (
        "",
        HTTP_304,
        HTTP_429,
        HTTP_5XX,
        CONNECTION_REFUSED,
        TLS,
        EMPTY,
        BAD_HTTP,
        TOO_LONG_HEADERS,
        EXCLUDED_TYPE,
        TOO_BIG,
    )
)

# Failures of one address that another address of the same host may not share.
OF_ADDRESS = frozenset((CONNECTION_REFUSED, UNREACHABLE, TIMEOUT_CONNECT))
