"""The configuration: defaults are those of pipeline.toml, and every mistake names the key and what was expected."""

import pytest

from contract import config
from contract.errors import BadConfiguration, Usage


def load(tmp_path, text, overrides=()):
    path = tmp_path / "some.toml"
    path.write_text(text)
    return config.load(path, list(overrides))


def test_pipeline_toml_holds_the_defaults():
    assert config.load() == config.Config()


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
        ("[fetcher", "expected TOML"),
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
        config.load(tmp_path / "none.toml")
    with pytest.raises(Usage, match="expected section.key=value"):
        load(tmp_path, "", ["delay_s"])
    with pytest.raises(Usage, match="did you mean fetcher.contact"):
        load(tmp_path, "", ["contact=a@b"])
    with pytest.raises(BadConfiguration, match="no such key"):
        load(tmp_path, "", ["fetcher.nothing=1"])
