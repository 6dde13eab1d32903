"""What is mended, byte for byte, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.names.generate import namespaces_md
from folkmoot.names.lint.sources import read_sources
from tests.names.lint.projects import lint, rules, write

SETTINGS = "[tool.folkmoot.names]\nnamespace = 'shop'\n"
HEAD = "from fastmcp import FastMCP\nmcp = FastMCP('shop')\n"

MENDED = {
    "a literal": ("@mcp.tool(name='buy')", "@mcp.tool(name='shop:buy')"),
    "a literal in other quotes": ('@mcp.tool("buy")', '@mcp.tool("shop:buy")'),
    "a bare decorator": ("@mcp.tool", '@mcp.tool(name="shop:pay")'),
    "an empty call": ("@mcp.tool()", '@mcp.tool(name="shop:pay")'),
    "an empty call over lines": ("@mcp.tool(\n)", '@mcp.tool(\nname="shop:pay")'),
    "arguments": ("@mcp.tool(tags={'ä'})", "@mcp.tool(name=\"shop:pay\", tags={'ä'})"),
    "arguments over lines": (
        "@mcp.tool(  # ü\n    tags={'ä'},\n)",
        "@mcp.tool(  # ü\n    name=\"shop:pay\",\n    tags={'ä'},\n)",
    ),
    "behind other letters": (
        "'ÄÖÜ'; X = mcp.tool(name='buy')(g)\n@mcp.prompt",
        "'ÄÖÜ'; X = mcp.tool(name='shop:buy')(g)\n@mcp.prompt(name=\"shop:pay\")",
    ),
}


def mended(root: Path, text: bytes) -> bytes:
    """A source as it is after the fixes."""
    write(root, {"pyproject.toml": SETTINGS})
    (root / "server.py").write_bytes(text)
    lint(root).fixes().apply()
    return (root / "server.py").read_bytes()


@pytest.mark.parametrize("case", MENDED)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_missing_namespace_is_put_in_and_nothing_else_changes(
    case: str, end: str, mark: str, tmp_path: Path
) -> None:
    before, after = MENDED[case]
    whole = f"{mark}{HEAD}{{}}\ndef pay(): 'é'  # ✓"
    wanted = whole.format(after).replace("\n", end).encode()
    assert mended(tmp_path, whole.format(before).replace("\n", end).encode()) == wanted
    assert [rule for rule, _ in rules(lint(tmp_path)) if rule != "register-missing"] == []


LEFT = {
    "a name that needs judgement": "@mcp.tool(name='createOrder')",
    "a name from elsewhere": "N = 'buy'\n@mcp.tool(name=N)",
    "an f-string": "@mcp.tool(name=f'buy')",
    "literals beside each other": "@mcp.tool(name='b' 'uy')",
    "a plain string for a resource": "@mcp.resource('/x/y')",
    "a foreign namespace": "@mcp.tool(name='store:buy')",
    "what is to be ignored": "@mcp.tool  # folkmoot: ignore",
}


@pytest.mark.parametrize("case", LEFT)
def test_what_needs_judgement_is_left_alone(case: str, tmp_path: Path) -> None:
    text = f"{HEAD}{LEFT[case]}\ndef pay(): ...\n".encode()
    assert mended(tmp_path, text) == text


def test_a_standalone_server_keeps_its_names(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": SETTINGS, "s.py": HEAD + "@mcp.tool\ndef pay(): ...\n"})
    assert lint(tmp_path, standalone=True).fixes().changes == []


def test_a_namespace_that_is_only_used_is_not_put_before_other_names(tmp_path: Path) -> None:
    text = "@mcp.tool('shop:a_b')\ndef g(): ...\n@mcp.tool\ndef pay(): ...\n"
    write(tmp_path, {"s.py": HEAD + text})
    linting = lint(tmp_path)
    assert ("missing-namespace", "pay") in rules(linting)
    assert linting.fixes().changes == []


def test_a_file_in_another_encoding_is_left_alone(tmp_path: Path) -> None:
    text = f"# coding: latin-1\n# ä\n{HEAD}@mcp.tool\ndef pay(): ...\n".encode("latin-1")
    assert mended(tmp_path, text) == text
    assert ("missing-namespace", "pay") in rules(lint(tmp_path))


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    write(
        tmp_path, {"pyproject.toml": SETTINGS, "a/real.txt": HEAD + "@mcp.tool\ndef pay(): ...\n"}
    )
    (tmp_path / "server.py").symlink_to("a/real.txt")
    lint(tmp_path).fixes().apply()
    assert (tmp_path / "server.py").is_symlink()
    assert 'name="shop:pay"' in (tmp_path / "a/real.txt").read_text()


def test_the_register_is_made_anew_from_the_mended_names(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": SETTINGS, "s.py": HEAD + "@mcp.tool\ndef buy(): ...\n"})
    page = namespaces_md.render(read_sources([tmp_path])).replace("shop:buy", "shop:old")
    write(tmp_path, {"NAMESPACES.md": "# Ours\r\n\r\n" + page.replace("\n", "\r\n")})
    lint(tmp_path).fixes().apply()
    text = (tmp_path / "NAMESPACES.md").read_bytes().decode()
    assert "shop:buy" in text
    assert "shop:old" not in text
    assert text.startswith("# Ours\r\n")
    assert "\n" not in text.replace("\r\n", "")
    assert rules(lint(tmp_path)) == []


def test_a_register_that_someone_wrote_by_hand_stays_theirs(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": SETTINGS,
            "s.py": HEAD + "@mcp.tool('shop:buy')\ndef buy(): ...\n",
            "NAMESPACES.md": "# Names\n\n**Namespace:** `shop`\n",
        },
    )
    linting = lint(tmp_path)
    assert rules(linting) == [("register-outdated", "")]
    assert linting.fixes().changes == []
