"""Policies neural and neural-graph: their order, what a page passes on, and which weights a manifest names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.config import Config, Scheduler
from contract.crawl_folder import create
from contract.errors import BadConfiguration, BadInput
from contract.policies import POLICIES, describe
from contract.policies.neural import FILE_KEY, QRANK
from contract.policy_files import adopt, files_of, prepare_adoption, verify_files
from contract.qrank.weights import SHIPPED, Weights, pack, read_weights
from tests.unit.test_policies import KEYS, candidates, config_of, feature, order_of, urls_of


def other_weights() -> bytes:
    """The shipped network with another bias: the order of the levels is the same, the levels are not."""
    shipped = read_weights(SHIPPED)
    network = replace(shipped.network, output_bias=shipped.network.output_bias + np.float32(1))
    return pack(Weights(network, shipped.words))


def test_neural_is_the_order_of_levels_then_of_depths():
    of = candidates(config_of("neural"), qrank=[0, 255, 7, 7, 254, 7], depth=[0, 255, 1, 0, 0, 255])
    assert order_of(of) == [1, 4, 3, 2, 5, 0]


def test_neural_graph_adds_what_pages_passed_on():
    one = 1 << 16  # of a level
    of = candidates(config_of("neural-graph"), qrank=[1, 0, 2, 1, 0], inherited=[0, one - 1, 0, one + 1, 2**64 - 1])
    assert order_of(of) == [4, 3, 2, 0, 1]


def test_a_page_passes_on_all_that_it_has_and_never_more_than_a_column_holds():
    of = candidates(config_of("neural-graph"), qrank=[255, 3, 0], inherited=[2**64 - 1, 5, 0])
    amounts = POLICIES["neural-graph"].hands_on["inherited"](of)
    assert amounts.dtype == np.uint64 and amounts.tolist() == [2**64 - 1, (3 << 16) + 5, 0]


def test_the_feature_is_the_level_of_the_weights():
    urls = ["http://a.br/", "http://a.br/a/b/c/d/index.php?id=123456&session=ABCDEF", "https://www.a.br/casa/page"]
    given = urls_of(config_of("neural"), *urls, files={FILE_KEY: SHIPPED})
    assert feature("qrank", given) == read_weights(SHIPPED).levels(given.lines).tolist()


@pytest.fixture
def crawl(tmp_path):
    return create(tmp_path / "crawl", 1)


def config_with(weights_file: str = "", policy: str = "neural") -> Config:
    return replace(Config(), scheduler=Scheduler(policy, weights_file=weights_file))


def test_a_crawl_keeps_a_copy_of_the_shipped_weights_or_of_those_that_it_is_given(crawl, tmp_path):
    (tmp_path / "other.npz").write_bytes(other_weights())
    shipped, other = (adopt(crawl, config_with(name)) for name in ("", str(tmp_path / "other.npz")))
    for config, content in ((shipped, SHIPPED.read_bytes()), (other, other_weights())):
        copy = verify_files(crawl.path, config)[FILE_KEY]
        assert copy.parent == crawl.path / "files" and copy.suffix == ".npz" and copy.read_bytes() == content
        assert adopt(crawl, config) == config
    assert shipped.scheduler.weights_file != other.scheduler.weights_file


def test_a_manifest_names_the_weights(crawl, tmp_path):
    (tmp_path / "other.npz").write_bytes(other_weights())
    named = []
    for name in ("", str(tmp_path / "other.npz")):
        config = adopt(crawl, config_with(name))
        files = files_of(crawl.path, config)
        named.append(describe(config, files)["features"]["qrank"])
        assert QRANK.identity(config, files) == Path(config.scheduler.weights_file).name
    assert named[0] and named[1] and named[0] != named[1]
    graph = adopt(crawl, config_with(policy="neural-graph"))
    # A crawl that changes from one to the other computes no level again.
    assert describe(graph, files_of(crawl.path, graph))["features"] == {"qrank": named[0]}


def test_a_file_of_something_else_is_refused_with_its_name(crawl, tmp_path):
    (tmp_path / "ranks.txt").write_text("http://a.br/ 0.5\n")
    with pytest.raises(BadInput, match="ranks.txt: expected weights of QRank"):
        prepare_adoption(crawl.path, KEYS, config_with(str(tmp_path / "ranks.txt")))
    with pytest.raises(BadConfiguration, match="scheduler.weights_file: expected a file"):
        prepare_adoption(crawl.path, KEYS, config_with(str(tmp_path / "nowhere")))
    assert not (crawl.path / "files").exists() or not list((crawl.path / "files").iterdir())
