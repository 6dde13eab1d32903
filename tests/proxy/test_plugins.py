"""Interceptors of others, installed as any package is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.core.verdict import Block
from folkmoot.proxy.plugins import load_plugin, load_plugins
from tests.harness import run
from tests.proxy.rules.support import Way, blocks, call, envelope, refusal

MODULE = """
from folkmoot.core.errors import BlockedByInterceptor, SettingsError
from folkmoot.core.verdict import CONTINUE, Block


class Curfew:
    guards = True

    def __init__(self, options):
        self.name = "curfew"
        self.tool = options.pop("tool", "never")
        if options:
            raise SettingsError(f"unknown options {sorted(options)}")

    async def intercept(self, envelope):
        if envelope.message.params.get("name") == self.tool:
            return Block(BlockedByInterceptor("After hours."))
        return CONTINUE


def broken(options):
    raise ValueError("no luck")


def nothing(options):
    return object()
"""
ENTRIES = """
[folkmoot.interceptors]
curfew = {module}:Curfew
broken = {module}:broken
nothing = {module}:nothing
absent = {module}_absent:x
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with interceptors, as an installer leaves it."""
    module = "folkmoot_test_curfew"
    (tmp_path / f"{module}.py").write_text(MODULE)
    info = tmp_path / "curfew-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: curfew\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES.format(module=module))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.mark.usefixtures("installed")
def test_an_installed_interceptor_is_used_by_name_with_its_options():
    way = Way('[[rule]]\nname = "late"\nuse = "plugin:curfew"\noptions = { tool = "party" }\n')
    ruling = way.judge(call("party"))
    assert (ruling.by, refusal(ruling).message) == ("late", "After hours.")
    assert not blocks(way, call("work"))
    (alone,) = load_plugins(["curfew"])
    assert isinstance(run(alone.intercept(envelope(call("never")))), Block)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nobody", "No interceptor 'nobody' is installed; installed are: .*curfew"),
        ("broken", "'broken' could not be made: no luck"),
        ("nothing", "'nothing' has no 'name', 'guards' or 'intercept'"),
        ("absent", "'absent' cannot be loaded: No module named"),
    ],
)
def test_one_that_cannot_be_had_is_told_in_a_sentence(name, expected):
    with pytest.raises(e.RulesInvalid, match=expected):
        load_plugin(name)


@pytest.mark.usefixtures("installed")
def test_one_that_refuses_its_options_is_told_with_the_rule():
    with pytest.raises(
        e.RulesInvalid, match=r"rule 1 'late' .*refuses its options: unknown options"
    ):
        Way('[[rule]]\nname = "late"\nuse = "plugin:curfew"\noptions = { x = 1 }\n')
