"""The configuration: defaults are those of pipeline.toml, and every mistake names the key and what was expected."""

import pytest

from contract import config, config_file
from contract.errors import BadConfiguration, Usage


def load(tmp_path, text, overrides=()):
    path = tmp_path / "some.toml"
    path.write_text(text)
    return config_file.load(path, list(overrides))


def test_pipeline_toml_holds_the_defaults():
    assert config_file.load() == config.Config()


def test_overrides(tmp_path):
    assert load(tmp_path, "", ["fetcher.delay_s=2"]).fetcher.delay_s == 2.0
    assert load(tmp_path, "", ["fetcher.agent=mine"]).fetcher.agent == "mine"
    assert load(tmp_path, "", ['scope.accept_suffixes=["br"]']).scope.accept_suffixes == ("br",)


@pytest.mark.parametrize(
    "text, words",
    [
        ("[fetcher]\ndelay = 3", "[fetcher] delay: no such key; did you mean delay_s?"),
        ("[fetcher]\ncontct = 'a@b'", "[fetcher] contct: no such key; did you mean contact?"),
        ("[scope]\ncontact = 'a@b'", "[scope] contact: no such key; did you mean fetcher.contact?"),
        ("contact = 'a@b'", "[contact] is no section; did you mean fetcher.contact?"),
        ("[fetch]\ndelay_s = 3", "[fetch] is no section; did you mean fetcher?"),
        ("[xyzzy]\ndelay_s = 3", "[xyzzy] is no section; expected one of blocks, scheduler"),
        ("[blocks]\nxyzzy = 3", "[blocks] xyzzy: no such key; expected one of first, servers_max"),
        ("[fetcher]\ndelay_s = 'x'", "[fetcher] delay_s: expected a number, found 'x'"),
        ("[fetcher]\ndelay_s = true", "expected a number"),
        ("[fetcher]\ndelay_s = nan", "expected a number"),
        ("[fetcher]\ndelay_s = inf", "expected 0 to"),
        ("[blocks]\nfirst = 0", "expected 1 to"),
        ("[blocks]\nfirst = 2.5", "expected a whole number"),
        ("[scope]\naccept_suffixes = 'br'", "expected a list of strings"),
        ("[scope]\naccept_suffixes = [1]", "expected a list of strings"),
        ("[fetcher]\nwarc_compression = 'lz4'", "expected one of"),
        ("[fetcher]\nallow_private_addresses = 1", "expected true or false"),
        ("fetcher = 3", "expected a table"),
        ("[fetcher", "line 1, column 9: expected a section in brackets, as in [fetcher]; found: [fetcher"),
        (
            "[verifier]\nprescheduled_max = 5",
            "verifier.prescheduled_refill = 10 must not be above verifier.prescheduled_max = 5",
        ),
        ("[fetcher]\nconnect_timeout_s = 100", "must not be above fetcher.total_timeout_s"),
        (
            "[fetcher]\ndelay_s = 30\ncycle_max_s = 20",
            "fetcher.delay_s = 30.0 must not be above fetcher.cycle_max_s = 20.0",
        ),
        ("[xyzzy]\ndelay_s = 3", "revisit, fetcher, extractor, url, scope, verifier, supervisor, priority, budget"),
    ],
)
def test_mistakes_name_the_key(tmp_path, text, words):
    with pytest.raises(BadConfiguration) as caught:
        load(tmp_path, text)
    assert words in str(caught.value) and caught.value.exit_code == 78


RULE = "[[priority]]\nsurt = 'br,'\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("[scheduler]\npolicy = 'in-link'", "[scheduler] policy: 'in-link' is no policy; did you mean in-links?"),
        ("[scheduler]\npolicy = 'newdomains'", "did you mean new-domains?"),
        ("[scheduler]\npolicy = 'xyzzy'", "'xyzzy' is no policy; expected one of fifo, breadth-first, shortest-path"),
        ("[scheduler]\npolicy = ''", "[scheduler] policy: '' is no policy; expected one of fifo, breadth-first"),
        ("[scheduler]\npolicy = 'FIFO'", "'FIFO' is no policy; expected one of fifo, breadth-first"),
        ("[scheduler]\npolicy = 'shortest_path'", "'shortest_path' is no policy; did you mean shortest-path?"),
        ("[scheduler]\npolicy = 'pagerank'", "scheduler.ranks_file: expected a file of ranks for the policy pagerank"),
        ("[scheduler]\norder = 'cash'", "[scheduler] order: no such key; it was replaced by scheduler.policy"),
        ("[verifier]\nprescheduled_by = 'depth'", "no such key; it was replaced by scheduler.policy"),
        ("policy = 'fifo'", "[policy] is no section; did you mean scheduler.policy?"),
        ("[scheduler]\nslow_share = 1.5", "[scheduler] slow_share: expected 0 to 1, found 1.5"),
        ("[scheduler]\nseed = -1", "[scheduler] seed: expected 0 to"),
        ("[scheduler]\nbonus_patterns = ['[']", "[scheduler] bonus_patterns: expected regular expressions, found '['"),
        ("[scheduler]\npenalty_patterns = ['a)|(b']", "penalty_patterns: expected regular expressions, found 'a)|(b'"),
        ("[scheduler]\npenalty_patterns = ['(?=x)']", "invalid perl operator"),
        ("[revisit]\npolicy = 'optimum'", "[revisit] policy: expected one of ('none', 'uniform', 'proportional', 'opt"),
        ("[revisit]\nshorten = 0", "[revisit] shorten: expected 0.01 to 1, found 0"),
        ("[revisit]\nlengthen = 0.5", "[revisit] lengthen: expected 1 to 100"),
        ("[revisit]\nshare_max = nan", "[revisit] share_max: expected a number, found nan"),
        (
            "[revisit]\ninterval_s = 3600",
            "revisit.interval_min_s = 86400.0 must not be above revisit.interval_s = 3600",
        ),
        ("[revisit]\ninterval_max_s = 90000", "revisit.interval_s = 604800.0 must not be above revisit.interval_max_s"),
        ("[revisit]\nforget_after_days = 90", "forget_after_days = 90 needs revisits, which say what still has links"),
        ("[revisit]\nforget_after_days = 1.5", "[revisit] forget_after_days: expected a whole number"),
        (
            "[revisit]\npolicy = 'optimal'\nforget_after_days = 90",
            "twice the time between two visits of a page, found [revisit] interval_max_s = 7.776e+06 s, which is",
        ),
        (
            f"{RULE}interval_s = 864000\n[revisit]\npolicy = 'uniform'\nforget_after_days = 19",
            "found [[priority]], rule 1, interval_s = 864000 s, which is 10 days",
        ),
        (
            "[[priority]]\n",
            "[[priority]], rule 1: expected either a surt or a pattern, found \"surt '' and pattern ''\"",
        ),
        (f"{RULE}pattern = 'x'\n", "[[priority]], rule 1: expected either a surt or a pattern, found"),
        (f"{RULE}{RULE}wieght = 2\n", "[[priority]], rule 2 wieght: no such key; did you mean weight?"),
        (f"{RULE}weight = 0\n", "[[priority]], rule 1 weight: expected 0.001 to 1000, found 0"),
        (f"{RULE}weight = nan\n", "[[priority]], rule 1 weight: expected a number, found nan"),
        (f"{RULE}interval_s = 60\n", "[[priority]], rule 1: interval_s = 60 needs revisits, found [revisit] policy"),
        ("[[priority]]\nsurt = 'http://www.ufmg.br/'\n", "[[priority]], rule 1: surt: expected SURT prefixes, as in"),
        ("[[priority]]\npattern = '['\n", "[[priority]], rule 1: pattern: expected regular expressions, found '['"),
        ("[priority]\nsurt = 'br,'\n", "[[priority]]: expected at most 255 tables under this name, found {'surt': 'b"),
        ("priority = 'br,'\n", "[[priority]]: expected at most 255 tables under this name, found 'br,'"),
        ("priority = ['br,']\n", "[[priority]], rule 1: expected a table, found 'br,'"),
        (RULE * 256, "[[priority]]: expected at most 255 tables under this name"),
        ("[[priorities]]\nsurt = 'br,'\n", "[priorities] is no section; did you mean priority?"),
        ("[[budget]]\nsurt = 'br,'\nurls = -1\n", "[[budget]], rule 1 urls: expected 0 to"),
        ("[[budget]]\nurls = 5\n", "[[budget]], rule 1: expected either a surt or a pattern"),
    ],
)
def test_mistakes_in_policies_and_rules_name_what_was_expected(tmp_path, text, words):
    with pytest.raises(BadConfiguration) as caught:
        load(tmp_path, text)
    assert words in str(caught.value) and caught.value.exit_code == 78, str(caught.value)
    assert len(str(caught.value)) < 500


def test_rules_of_a_file(tmp_path):
    text = f"{RULE}weight = 2\ninterval_s = 60\n[[priority]]\npattern = 'x'\n[[budget]]\nsurt = 'br,'\nurls = 5\n"
    read = load(tmp_path, text, ["revisit.policy=uniform"])
    assert read.priority == (config.Priority(surt="br,", weight=2.0, interval_s=60.0), config.Priority(pattern="x"))
    assert read.budget == (config.Budget(surt="br,", urls=5),)
    assert len(load(tmp_path, RULE * 255).priority) == 255
    with pytest.raises(BadConfiguration, match="interval_s = 60 needs revisits"):
        load(tmp_path, text, ["revisit.policy=none"])


@pytest.mark.parametrize("override", ["priority=[]", "priority.weight=2", "budget.urls=3", 'priority=[{surt = "br,"}]'])
def test_rules_are_no_part_of_set(tmp_path, override):
    with pytest.raises(Usage, match=r"rules are tables of their own: write \[\[\w+\]\] into a file for --config"):
        load(tmp_path, RULE, [override])


def test_a_policy_of_set(tmp_path):
    assert load(tmp_path, "", ["scheduler.policy=new-domains"]).scheduler.policy == "new-domains"
    with pytest.raises(BadConfiguration, match="with --set: .* did you mean spread?"):
        load(tmp_path, "", ["scheduler.policy=spraed"])
    assert load(tmp_path, "", ["scheduler.policy=pagerank", "scheduler.ranks_file=/r"]).scheduler.ranks_file == "/r"


def test_patterns_that_are_too_large_together(tmp_path):
    patterns = ", ".join(rf"'{number}\pL{{200}}'" for number in range(400))
    with pytest.raises(BadConfiguration, match=r"\[scheduler\] bonus_patterns: expected fewer or shorter regular"):
        load(tmp_path, f"[scheduler]\nbonus_patterns = [{patterns}]")


def test_a_missing_file_and_a_malformed_override(tmp_path):
    with pytest.raises(BadConfiguration, match="no such configuration file"):
        config_file.load(tmp_path / "none.toml")
    with pytest.raises(Usage, match="expected section.key=value"):
        load(tmp_path, "", ["delay_s"])
    with pytest.raises(Usage, match="did you mean fetcher.contact"):
        load(tmp_path, "", ["contact=a@b"])
    with pytest.raises(BadConfiguration, match="no such key"):
        load(tmp_path, "", ["fetcher.nothing=1"])


@pytest.mark.parametrize(
    "text, words",
    [
        (
            "[fetcher]\ndelay_s 5",
            "line 2, column 9: expected an equals sign after the key, as in delay_s = 5.0; found: d",
        ),
        (
            "[fetcher]\n\ndelay_s = five",
            "line 3, column 11: expected a value: text in quotes, a number, true, false, or a",
        ),
        ("[fetcher]\ndelay_s =", "line 2, column 10: expected a value"),
        (
            "[fetcher]\ndelay_s = 5 s",
            "line 2, column 13: expected the end of the line after the value; found: delay_s = 5 s",
        ),
        (
            '[fetcher]\nagent = "me\nretries_max = 1',
            "line 2, column 12: expected the quote that ends the text; found: ag",
        ),
        ('[fetcher]\nagent = "me', "line 2, column 12: expected the quote that ends the text; found: agent ="),
        ("[fetcher]\nagent = 'me", "line 2, column 12: expected the quote that ends the text; found: agent = 'me"),
        ('[fetcher]\nagent = """me', "line 2, column 14: expected the quote that ends the text; found: agent ="),
        ('[fetcher]\nagent = "C:\\me"', "expected \\\\ for a backslash, or single quotes around the text"),
        ('[scope]\naccept_suffixes = ["br"\n', "expected a comma or the ] that ends the list"),
        ("[scope]\n[scope]", "line 2, column 7: expected each section only once; found: [scope]"),
        ("[fetcher]\ndelay_s = 1\ndelay_s = 2", "line 3, column 12: expected each key only once; found: delay_s = 2"),
        ("delay_s; 5", "line 1, column 8: expected an equals sign after the key"),
        ("= 5", "line 1, column 1: expected a section, as in [fetcher], or a key with its value"),
        ("a = { b = 1", "expected a comma or the } that ends the table"),
        ('a = "\\u12"', "expected \\\\ for a backslash"),
        ('a = "\x01"', "line 1, column 6: expected text without control characters"),
        ("a = 1 # \x01", "line 1, column 9: expected text without control characters"),
        ("a = 2026-02-30", "line 1, column 5: expected a value"),
        ("a = " + "9" * 5000, "expected a number of fewer digits"),
        ("a = " + "[" * 100_000, "expected TOML, found too many brackets inside each other"),
        ("# é\n\udcff", "line 2: expected text in UTF-8, found the byte 0xff"),
    ],
)
def test_a_syntax_error_names_line_and_column_in_plain_words(tmp_path, text, words):
    path = tmp_path / "my.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadConfiguration) as caught:
        config_file.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and words in message and len(message) < 300, message
    assert "(at" not in message and caught.value.exit_code == 78


def test_a_file_that_the_configuration_names_must_be_there(tmp_path):
    given = load(tmp_path, '[fetcher]\nhosts_file = "hosts"')
    with pytest.raises(BadConfiguration, match=f"fetcher.hosts_file: expected a file, found none: {tmp_path}/hosts"):
        config.require_files(given)
    (tmp_path / "hosts").write_text("127.0.0.1 a.test\n")
    config.require_files(given)
    config.require_files(config.Config())
