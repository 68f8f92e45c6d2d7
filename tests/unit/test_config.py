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
    ],
)
def test_mistakes_name_the_key(tmp_path, text, words):
    with pytest.raises(BadConfiguration) as caught:
        load(tmp_path, text)
    assert words in str(caught.value) and caught.value.exit_code == 78


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
