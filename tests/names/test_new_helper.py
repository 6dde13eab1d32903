"""The generated helper module stands alone, and agrees with the library."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.names import canonical
from folkmoot.names.new_server import check_server, server_files
from tests.names.test_grammar import EVERY

HELPER = server_files(check_server("my-project", None, "mcp"))["src/my_project/names.py"]


@pytest.fixture(scope="module")
def helper() -> ModuleType:
    made = ModuleType("helper")
    exec(HELPER, made.__dict__)
    return made


@pytest.mark.requirement("names.generated-helpers")
def test_the_helper_makes_names_as_the_conventions_show_them(helper):
    assert helper.NAMESPACE == "myproject"
    assert helper.make_tool_name("create_task") == "myproject:create_task"
    assert helper.make_tool_name("create_task", style="safe") == "myproject_create_task"
    uri = helper.make_resource_uri
    assert uri("templates", "daily-report.md") == "myproject://templates/daily-report.md"
    assert uri("docs", "123", {"format": "json", "limit": "10"}) == (
        "myproject://docs/123?format=json&limit=10"
    )
    assert uri("docs", "1", {"q": "a b&c/é"}) == "myproject://docs/1?q=a%20b%26c%2F%C3%A9"
    assert uri("docs", "{doc_id}") == "myproject://docs/{doc_id}"


@pytest.mark.requirement("names.generated-helpers")
@pytest.mark.parametrize(
    ("what", "validate"), [("tool", "validate_tool_name"), ("uri", "validate_resource_uri")]
)
def test_the_helper_accepts_and_refuses_what_the_library_does(helper, what, validate):
    ours, theirs = getattr(helper, validate), getattr(canonical, validate)
    for kind, rule, name in EVERY:
        # The helper is short: it bounds no length, and decodes no value of a query.
        if kind == what and len(name) < 100 and rule not in {"query-repeated", "query-value"}:
            assert refused(ours, name) == refused(theirs, name), (rule, name)


def refused(validate: Any, name: str) -> str:
    """How a refusal begins; empty where there is none."""
    try:
        validate(name)
    except (ValueError, e.InvalidName) as error:
        return str(error).partition(":")[0]
    return ""


@pytest.mark.requirement("names.generated-helpers")
def test_the_helper_refuses_a_name_of_another_namespace(helper):
    with pytest.raises(ValueError, match=r"Expected: myproject:\*, got: other:create_task"):
        helper.validate_tool_name("other:create_task", "myproject")
    with pytest.raises(ValueError, match=r"Expected: myproject://\*, got: other://docs/1"):
        helper.validate_resource_uri("other://docs/1", "myproject")
    with pytest.raises(ValueError, match="Invalid tool name: myproject:Create"):
        helper.make_tool_name("Create")


@pytest.mark.parametrize(
    ("running", "level"),
    [(None, "WARNING"), ("1.2.3", "WARNING"), ("1.3.0", "ERROR"), ("2.0.0", "ERROR")],
)
def test_the_mark_of_the_helper_logs_as_the_release_demands(
    helper, running, level, monkeypatch, caplog
):
    monkeypatch.setattr(helper, "running_version", lambda: running)
    mark = helper.deprecated(since="1.2.0", removed_in="1.4.0", use="myproject:add_task")

    @mark
    async def create_task(title: str) -> str:
        return title

    @mark
    def make_task(title: str, *, loud: bool = False) -> str:
        return title.upper() if loud else title

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(create_task("a")) == "a"
        assert make_task("a", loud=True) == "A"
    going = "is deprecated since 1.2.0 and is removed in 1.4.0. Use myproject:add_task."
    assert [(it.levelname, it.message) for it in caplog.records] == [
        (level, f"create_task {going}"), (level, f"make_task {going}"),
    ]  # fmt: skip


def test_the_helper_needs_nothing_but_python(tmp_path):
    (tmp_path / "names.py").write_text(HELPER)
    program = "import names, sys; names.make_tool_name('a_b'); assert 'folkmoot' not in sys.modules"
    subprocess.run([sys.executable, "-S", "-c", program], cwd=tmp_path, check=True)
