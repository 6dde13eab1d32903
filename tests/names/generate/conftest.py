"""Small projects on disk."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

SERVER = '''
    from mcp.server import MCPServer

    from notes.names import make_resource_uri, make_tool_name

    mcp = MCPServer("notes")


    @mcp.tool(name=make_tool_name("create_note"))
    def create_note(text: str, *, pinned: bool = False) -> str:
        """Create a note.

        Tool name: notes:create_note
        """
        return text


    @mcp.tool(name="notes:list_notes")
    async def list_notes() -> list[str]:
        """List | count all
        notes."""
        return []


    @mcp.resource(make_resource_uri("pages", "daily.md"), mime_type="text/markdown")
    def daily() -> str:
        """The page of today."""
        return ""
'''
PYPROJECT = """
    [project]
    name = "notes"
    version = "1.2.0"

    [tool.folkmoot.names]
    namespace = "notes"
"""


def write(root: Path, files: dict[str, str]) -> Path:
    """Files below a folder; their texts may be indented."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def texts(root: Path) -> dict[str, str]:
    """Every file below a folder by its path."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Make a project of these files; one with `notes` in it has a helper and a server."""

    def make(files: dict[str, str] | None = None) -> Path:
        from folkmoot.names.generate.server import helper_text

        usual = {
            "pyproject.toml": PYPROJECT,
            "src/notes/__init__.py": "",
            "src/notes/names.py": helper_text("notes", "notes"),
            "src/notes/server.py": SERVER,
        }
        return write(tmp_path / "project", usual if files is None else files)

    return make
