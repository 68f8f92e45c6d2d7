"""The rules of [url], one by one, and the kinds of case that the URL standard's own tests hold."""

import pytest

from contract.canonical import Canonical
from contract.config import URL_RULES, Url
from contract.url import OTHER_SCHEME, UNPARSABLE, NotCanonical, canonicalise

HEX = "0123456789abcdef0123456789ABCDEF"
ASP = "lit3py55t21z5v55vlm25s55"
SITE = "http://a.test"


def fold(rule: str, target: str) -> str:
    return Canonical(Url(rules=(rule,))).fold(SITE + target).removeprefix(SITE)


@pytest.mark.parametrize(
    "target, folded",
    [
        (f"/x;jsessionid={HEX}", "/x"),
        (f"/x;JSESSIONID={HEX}?y=1", "/x?y=1"),
        (f"/x;jsessionid={HEX}.node1/y", "/x/y"),
        (f"/x;a=1;jsessionid={HEX};b=2", "/x;a=1;b=2"),
        (f"/;jsessionid={HEX}", "/"),
        (f"/..;jsessionid={HEX}/y", f"/..;jsessionid={HEX}/y"),
        (f"/x;jsessionid={HEX}0", f"/x;jsessionid={HEX}0"),
        ("/x;jsessionid=short", "/x;jsessionid=short"),
        (f"/x-jsessionid={HEX}", f"/x-jsessionid={HEX}"),
        (f"/x?jsessionid={HEX}", "/x"),
        (f"/x?a=1&jsessionid={HEX}&b=2", "/x?a=1&b=2"),
        (f"/x?PHPSESSID={HEX}&a", "/x?a"),
        ("/x?PHPSESSID=9hukvr5mvfbkbqtgh3k3u1f1p7", "/x"),
        ("/x?PHPSESSID=9", "/x?PHPSESSID=9"),
        (f"/x?sid={HEX}&sid={HEX}", "/x"),
        (f"/x?osCsid={HEX}", "/x"),
        (f"/x?newsid={HEX}", f"/x?newsid={HEX}"),
        ("/x?sid=12345", "/x?sid=12345"),
        (f"/x?q=sid={HEX}", f"/x?q=sid={HEX}"),
        ("/x?ASPSESSIONIDAQBSDSRT=MCPLHKMDBGGHAJCAPPEBBJHO&b=2", "/x?b=2"),
        ("/x?CFID=1169580&CFTOKEN=48630702", "/x"),
        ("/x?a=1&cftoken=4&cfid=1&b=2", "/x?a=1&b=2"),
        ("/x?cfid=1&a=1", "/x?cfid=1&a=1"),
        ("/x?cfid=&cftoken=1", "/x?cfid=&cftoken=1"),
        ("/x?cfid=1&cfid=2&cftoken=3&cftoken=4", "/x"),
        (f"/(S({ASP}))/page.aspx", "/page.aspx"),
        (f"/app/(A(Tk_-1)S({ASP}))/page.aspx?id=1", "/app/page.aspx?id=1"),
        (f"/(S({ASP}))", f"/(S({ASP}))"),
        ("/Foo_(S(x))/", "/Foo_(S(x))/"),
        ("/a?b=(S(x))", "/a?b=(S(x))"),
        ("/x?b&&a", "/x?b&&a"),
    ],
)
def test_session_ids(target, folded):
    assert fold("session_ids", target) == folded


def test_a_host_that_looks_like_a_session_stays():
    for url in (f"http://a;jsessionid={HEX.lower()}/", f"http://(s({ASP}))/x;y"):
        assert Canonical(Url()).fold(url) == canonicalise(url) == url


@pytest.mark.parametrize(
    "target, folded",
    [
        ("/x?utm_source=a&id=1&utm_medium=b", "/x?id=1"),
        ("/x?utm_source=a", "/x"),
        ("/x?UTM_Source", "/x"),
        ("/x?fbclid=1&b=2&a=1", "/x?b=2&a=1"),
        ("/x?fbclids=1&xfbclid=2", "/x?fbclids=1&xfbclid=2"),
        ("/x?q=utm_source=1", "/x?q=utm_source=1"),
        ("/x?q=a?utm_source=1", "/x?q=a?utm_source=1"),
        ("/x?a&&utm_id=1", "/x?a&"),
        ("/x?&gclid=1", "/x"),
        ("/x;utm_source=1", "/x;utm_source=1"),
        ("/fbclid=1", "/fbclid=1"),
    ],
)
def test_tracking(target, folded):
    assert fold("tracking", target) == folded


def test_tracking_parameters_are_configured():
    mine = Canonical(Url(tracking_parameters=("ref", "A.b*", "", " x ")))
    assert mine.fold(SITE + "/?ref=1&a.bc=2&aXb=3&utm_source=4&x=5") == SITE + "/?aXb=3&utm_source=4"
    assert Canonical(Url(tracking_parameters=())).fold(SITE + "/?utm_source=4") == SITE + "/?utm_source=4"


@pytest.mark.parametrize(
    "rule, url, folded",
    [
        ("lowercase_path", "http://a.test/A/%C3%87?Q=%C3", "http://a.test/a/%c3%87?Q=%C3"),
        ("www", "http://www.a.test/www.x", "http://a.test/www.x"),
        ("www", "https://www12.a.test:81/?x", "https://a.test:81/?x"),
        ("www", "http://www.www2.a.test/", "http://a.test/"),
        ("www", "http://www.com/x.y", "http://www.com/x.y"),
        ("www", "http://www.www.com/", "http://www.com/"),
        ("www", "http://www..com/", "http://www..com/"),
        ("www", "http://wwwa.b.test/", "http://wwwa.b.test/"),
        ("index_names", "http://a.test/x/index.html", "http://a.test/x/"),
        ("index_names", "http://a.test/Default.aspx?id=1", "http://a.test/?id=1"),
        ("index_names", "http://a.test/home.htm", "http://a.test/"),
        ("index_names", "http://a.test/index.html/", "http://a.test/index.html/"),
        ("index_names", "http://a.test/myindex.html", "http://a.test/myindex.html"),
        ("index_names", "http://a.test/x?/index.html", "http://a.test/x?/index.html"),
    ],
)
def test_rules_that_are_off_by_default(rule, url, folded):
    assert Canonical(Url(rules=(rule,))).fold(url) == folded
    assert Canonical(Url()).fold(url) == url == Canonical(Url(rules=())).fold(url)


def test_rules_together_and_from_a_text():
    every = Canonical(Url(rules=tuple(reversed(URL_RULES))))
    assert every(f"Index.PHP;jsessionid={HEX}?utm_id=1#top", "HTTP://WWW.Á.test/A/") == "http://xn--1ca.test/a/"
    with pytest.raises(NotCanonical) as caught:
        every("mailto:x")
    assert caught.value.reason == OTHER_SCHEME


BASE = "https://base.test/dir/page?q#f"


@pytest.mark.parametrize(
    "text, url",
    [
        # hosts in every number form
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://2130706433", "http://127.0.0.1/"),
        ("http://017700000001", "http://127.0.0.1/"),
        ("http://127.1", "http://127.0.0.1/"),
        ("http://0x7F.0.0x0.01", "http://127.0.0.1/"),
        ("http://1.2.3", "http://1.2.0.3/"),
        ("http://１２７.0.0.1", "http://127.0.0.1/"),
        ("http://%31%32%37.0.0.1/", "http://127.0.0.1/"),
        ("http://4294967295", "http://255.255.255.255/"),
        ("http://0x.0x.0", "http://0.0.0.0/"),
        ("http://[0:0::1]", "http://[::1]/"),
        ("http://[::127.0.0.1]", "http://[::7f00:1]/"),
        ("http://[2001:DB8:0:0:1::]:80/", "http://[2001:db8:0:0:1::]/"),
        ("http://1.2.3.4.com", "http://1.2.3.4.com/"),
        # internationalised names
        ("http://MÜNCHEN.de", "http://xn--mnchen-3ya.de/"),
        ("http://faß.de", "http://xn--fa-hia.de/"),
        ("http://ａ。ｂ", "http://a.b/"),
        ("http://são-paulo.br", "http://xn--so-paulo-rza.br/"),
        ("http://XN--MNCHEN-3YA.de", "http://xn--mnchen-3ya.de/"),
        ("http://a\u00adb.test", "http://ab.test/"),
        ("http://☃.net", "http://xn--n3h.net/"),
        ("http://%C3%BC.de/", "http://xn--tda.de/"),
        # dots
        ("http://a.test/a/./b/../c", "http://a.test/a/c"),
        ("http://a.test/%2e/%2E%2e/x", "http://a.test/x"),
        ("http://a.test/..", "http://a.test/"),
        ("http://a.test/a/..", "http://a.test/"),
        ("http://a.test/a/.", "http://a.test/a/"),
        ("http://a.test/...", "http://a.test/..."),
        ("http://a.test/a%2fb", "http://a.test/a%2fb"),
        ("http://a.test//a///", "http://a.test//a///"),
        ("http://a.test.", "http://a.test/"),
        ("..", "https://base.test/"),
        ("./", "https://base.test/dir/"),
        ("../../../x", "https://base.test/x"),
        ("x/..", "https://base.test/dir/"),
        # ports
        ("http://a.test:80", "http://a.test/"),
        ("https://a.test:443", "https://a.test/"),
        ("http://a.test:443", "http://a.test:443/"),
        ("http://a.test:00080/", "http://a.test/"),
        ("http://a.test:", "http://a.test/"),
        ("http://a.test:65535", "http://a.test:65535/"),
        ("http://a.test:0", "http://a.test:0/"),
        # userinfo
        ("http://u:p@a.test/", "http://a.test/"),
        ("http://u@v@a.test", "http://a.test/"),
        ("http://:@a.test:81", "http://a.test:81/"),
        ("http://a.test/x@y", "http://a.test/x@y"),
        ("http://a.test?u@b", "http://a.test/?u@b"),
        # tabs, newlines, blanks
        ("ht\ntp://a.te\tst/\rx", "http://a.test/x"),
        (" \t http://a.test/x \n", "http://a.test/x"),
        ("http://a.test/a b", "http://a.test/a%20b"),
        ("\x00\x1fhttp://a.test", "http://a.test/"),
        ("http://a.test/\x00x\x00", "http://a.test/%00x"),
        ("//\na.test/x", "https://a.test/x"),
        # back-slashes
        ("http:\\\\a.test\\b\\c?d\\e", "http://a.test/b/c?d\\e"),
        ("\\x\\..\\y", "https://base.test/y"),
        ("\\\\a.test\\x", "https://a.test/x"),
        ("http://u\\@a.test/", "http://u/@a.test/"),
        # percent signs and characters of paths and queries
        ("http://a.test/%", "http://a.test/%"),
        ("http://a.test/%zz%4", "http://a.test/%zz%4"),
        ("http://a.test/%41%c3", "http://a.test/%41%c3"),
        ("http://a.test/ç?ç", "http://a.test/%C3%A7?%C3%A7"),
        ('http://a.test/`{}<>"', "http://a.test/%60%7B%7D%3C%3E%22"),
        ("http://a.test/?'`{}<>\"", "http://a.test/?%27`{}%3C%3E%22"),
        ("http://a.test/\U0001f4a9", "http://a.test/%F0%9F%92%A9"),
        # what relative texts, schemes and fragments do
        ("", "https://base.test/dir/page?q"),
        ("#x", "https://base.test/dir/page?q"),
        ("?", "https://base.test/dir/page"),
        ("?a", "https://base.test/dir/page?a"),
        ("https:x", "https://base.test/dir/x"),
        ("http:x", "http://x/"),
        ("///a.test", "https://a.test/"),
        ("https:///a.test", "https://a.test/"),
        ("HTTP://A.TEST", "http://a.test/"),
        ("http://a.test#?x", "http://a.test/"),
        ("//a.test", "https://a.test/"),
        ("a:b", None),
    ],
)
def test_cases_of_the_url_standard(text, url):
    if url is None:
        with pytest.raises(NotCanonical, match=OTHER_SCHEME):
            canonicalise(text, BASE)
    else:
        assert canonicalise(text, BASE) == url == canonicalise(url)


@pytest.mark.parametrize(
    "text",
    [
        "http://",
        "http://a.test:65536",
        "http://a.test:8o",
        "http://a b",
        "http://[::1",
        "http://[::g]",
        "http://[1::2::3]",
        "http://256.1.1.1",
        "http://1.2.3.4.5",
        "http://0x100000000",
        "http://a.1",
        "http://%",
        "http://a%00b",
        "http://a<b",
        "http://\u00ad",
        "http://@/x",
        "http://a^b",
        "http://a|b",
        "http://1.2.3.08",
        "http://[::1]x",
        "http://:80",
        "https://?x",
        "http://\ufffd.test",
    ],
)
def test_what_the_url_standard_refuses(text):
    with pytest.raises(NotCanonical, match=UNPARSABLE):
        canonicalise(text)
