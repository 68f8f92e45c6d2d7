"""The example of docs/ordering.md is a policy that works, and its test passes."""

import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from contract import config, policies
from tests.unit import test_policies

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs/ordering.md").read_text()
NAME = "secure-first"


def read_code(begin: str) -> str:
    """The first indented block behind a text."""
    lines = PAGE.partition(begin)[2].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    "))
    last = next(number for number, line in enumerate(lines[first:], first) if line and not line.startswith("    "))
    return textwrap.dedent("\n".join(lines[first:last]))


@pytest.fixture
def example(monkeypatch):
    module: dict = {"__name__": "contract.policies.secure_first"}
    exec(compile(read_code("contract/policies/secure_first.py:"), "docs/ordering.md", "exec"), module)
    line = read_code("The line, in `POLICIES`")
    monkeypatch.setattr(
        policies,
        "POLICIES",
        {**policies.POLICIES, **eval(f"{{{line}}}", {"secure_first": SimpleNamespace(POLICY=module["POLICY"])})},
    )
    monkeypatch.setitem(policies.FEATURES, "secure", module["SECURE"])
    monkeypatch.setitem(test_policies.COLUMNS, "secure", "u1")
    return module["POLICY"]


def test_the_example_passes_its_test(example):
    test: dict = vars(test_policies).copy()
    exec(compile(read_code("Its test, in"), "docs/ordering.md", "exec"), test)
    test["test_secure_first_is_https_then_the_order_of_depths"]()
    assert policies.POLICIES[NAME] is example


def test_the_page_has_every_policy_and_every_key():
    assert [name for name in policies.POLICIES if f"\n| `{name}` |" not in PAGE] == []
    keys = [*vars(config.Scheduler()), *vars(config.Revisit()), *vars(config.Priority()), *vars(config.Budget())]
    table = PAGE.partition("## The keys")[2].partition("\n## ")[0]
    assert [key for key in keys if f"{key}`" not in table] == []
    assert [name for name in vars(example_policy()) if f"| `{name}` |" not in PAGE] == []


def example_policy():
    return policies.POLICIES["fifo"]
