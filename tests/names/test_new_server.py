"""A new server is complete: it passes its own tests and the linter, and can be asked."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml

from benchmarks.rivals import FASTMCP, NotInstalled, installed
from folkmoot.core import errors as e
from folkmoot.names.listing import Config, read_file
from folkmoot.names.new_server import SDKS, Sdk, check_server, server_files, write_files
from folkmoot.relay.upstream.inventory import take_inventory
from tests.forge import forked
from tests.harness import run

OFFERED = """
mynotes:create_task mynotes:list_tasks mynotes:complete_task mynotes:delete_task mynotes:plan_day
mynotes://reports/open-tasks.md mynotes://tasks/{task_id}
"""
FILES = """
.gitignore .pre-commit-config.yaml CHANGELOG.md NAMESPACES.md README.md UPGRADING.md pyproject.toml
src/my_notes/__init__.py src/my_notes/__main__.py src/my_notes/names.py src/my_notes/server.py
src/my_notes/tasks.py tests/test_names.py tests/test_server.py tests/test_tasks.py
"""


def make(folder: Path, sdk: Sdk = "mcp") -> Path:
    write_files(folder, server_files(check_server("my-notes", None, sdk)))
    return folder


def texts(root: Path) -> dict[str, str]:
    """Every file below a folder by its path."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.requirement("names.example-server", "names.pre-commit", "names.upgrading-md")
@pytest.mark.parametrize("sdk", SDKS)
def test_a_new_project_has_every_file_and_its_names_are_written_down(tmp_path, sdk):
    root = make(tmp_path / "my-notes", sdk)
    files = texts(root)
    assert set(files) == set(FILES.split())
    hooks = yaml.safe_load(files[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == ["folkmoot names lint NAMESPACES.md"]
    assert "`mynotes:create_task` is now `mynotes:add_task`" in files["UPGRADING.md"]
    settings = tomllib.loads(files["pyproject.toml"])
    assert settings["project"]["dependencies"] == [SDKS[sdk]]
    assert settings["project"]["scripts"] == {"my-notes": "my_notes.__main__:main"}
    own = {"namespace": "mynotes", "command": [".venv/bin/my-notes"]}
    assert settings["tool"]["folkmoot"]["names"] == own
    found = read_file(str(root / "NAMESPACES.md"), Config())
    assert {it.name for it in found.declared} == set(OFFERED.split())
    assert "Runtime validation enabled (see `src/my_notes/names.py`)" in files["NAMESPACES.md"]


@pytest.mark.long
@pytest.mark.requirement("names.example-server")
def test_a_new_server_passes_its_own_tests_and_the_linter_and_lists_its_names(tmp_path):
    check_whole(make(tmp_path / "my-notes"))


@pytest.mark.long
@pytest.mark.requirement("names.example-server")
@pytest.mark.timeout(600)
def test_a_new_server_made_with_fastmcp_does_so_too(tmp_path):
    try:
        python = installed(FASTMCP, "python")
    except NotInstalled as error:
        pytest.skip(str(error))
    check_whole(make(tmp_path / "my-notes", "fastmcp"), python)


# Runs the tests of a folder with the packages of its own Python, and ours after them.
PYTEST = """import sys
sys.path.append(sys.argv.pop(1))
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider"]))
"""


def check_whole(root: Path, python: str = sys.executable) -> None:
    """Its tests, the linter and a client, each in a process as people run them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ = {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "80"}
    command = [python, "-c", PYTEST, sysconfig.get_path("purelib")]
    tests = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    server = [python, "-m", "my_notes"]
    program = root / ".venv/bin/my-notes"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nPYTHONPATH=src exec {shlex.join(server)}\n")
    program.chmod(0o755)
    for command in (["lint"], ["lint", "NAMESPACES.md"], ["doc", "--check"]):
        ran = forked.run(["names", *command], cwd=root, env=environ)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    listed = run(take_inventory(server, env={"PYTHONPATH": str(root / "src")}))
    assert listed.server["name"] == "my-notes"
    names = {it["name"] for it in (*listed.tools, *listed.prompts)}
    uris = {it["uri"] for it in listed.resources} | {it["uriTemplate"] for it in listed.templates}
    assert names | uris == set(OFFERED.split())
    assert listed.faults == ()


@pytest.mark.parametrize("name", ["My-Server", "my_server", "-a", "a--b", "1st", "", "a" * 65, "é"])
def test_a_name_that_is_no_slug_is_refused(name):
    with pytest.raises(e.ProjectUnusable, match="is no name for a server"):
        check_server(name, None, "mcp")


@pytest.mark.parametrize("name", ["json", "mcp", "fastmcp", "folkmoot", "async"])
def test_a_package_that_would_hide_a_module_is_refused(name):
    with pytest.raises(e.ProjectUnusable, match=f"{name}-server, for instance"):
        check_server(name, None, "mcp")


def test_a_name_that_makes_no_namespace_needs_one():
    with pytest.raises(e.ProjectUnusable, match="--namespace, for instance malpn"):
        check_server("my-awesome-long-project-name", None, "mcp")
    assert check_server("my-awesome-long-project-name", "malp", "mcp").namespace == "malp"
    with pytest.raises(e.InvalidName):
        check_server("notes", "room", "mcp")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(e.ProjectUnusable, match="not an empty folder"):
        make(tmp_path)
    assert texts(tmp_path) == {"mine.txt": "mine"}
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty")


def test_a_project_that_cannot_be_written_whole_leaves_nothing_behind(tmp_path):
    files = {"a/b.txt": "b", "c.txt": "c", "c.txt/d.txt": "a file is no folder"}
    with pytest.raises(e.ProjectUnusable, match="nothing was written"):
        write_files(tmp_path / "new/one", files)
    assert list(tmp_path.iterdir()) == []
