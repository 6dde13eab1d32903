"""Every way of registering a name is understood, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.names.lint.sources import read_sources
from tests.names.lint.projects import names, project, write

FASTMCP = "from fastmcp import FastMCP\nmcp = FastMCP('x')\n"

STYLES = {
    "bare decorator": (FASTMCP + "@mcp.tool\ndef one(): ...", "tool", "one"),
    "called decorator": (FASTMCP + "@mcp.tool()\nasync def one(): ...", "tool", "one"),
    "positional name": (FASTMCP + "@mcp.tool('two')\ndef one(): ...", "tool", "two"),
    "name by keyword": (FASTMCP + "@mcp.tool(name='two')\ndef one(): ...", "tool", "two"),
    "no name after all": (FASTMCP + "@mcp.tool(name=None)\ndef one(): ...", "tool", "one"),
    "resource": (FASTMCP + "@mcp.resource('a://b/c')\ndef one(): ...", "resource", "a://b/c"),
    "resource by keyword": (
        FASTMCP + "@mcp.resource(uri='a://b/c')\ndef one(): ...", "resource", "a://b/c",
    ),
    "template": (FASTMCP + "@mcp.resource('a://b/{c}')\ndef one(c): ...", "template", "a://b/{c}"),
    "prompt": (FASTMCP + "@mcp.prompt\ndef one(): ...", "prompt", "one"),
    "named prompt": (FASTMCP + "@mcp.prompt(name='two')\ndef one(): ...", "prompt", "two"),
    "call with function": (FASTMCP + "def one(): ...\nmcp.tool(one)", "tool", "one"),
    "call with function and name": (
        FASTMCP + "def one(): ...\nmcp.tool(one, name='two')", "tool", "two",
    ),
    "decorator applied": (FASTMCP + "def one(): ...\nmcp.tool(name='two')(one)", "tool", "two"),
    "decorator applied, bare": (FASTMCP + "def one(): ...\nmcp.tool()(one)", "tool", "one"),
    "add_tool": (FASTMCP + "def one(): ...\nmcp.add_tool(one)", "tool", "one"),
    "add_tool with name": (
        FASTMCP + "def one(): ...\nmcp.add_tool(one, name='two')", "tool", "two",
    ),
    "a method": (FASTMCP + "mcp.tool(Thing().one)", "tool", "one"),
    "tools of the constructor": (
        "from fastmcp import FastMCP\ndef one(): ...\nmcp = FastMCP('x', tools=[one])",
        "tool", "one",
    ),
    "ready-made tool": (
        FASTMCP + "from fastmcp.tools import Tool\ndef one(): ...\n"
        "mcp.add_tool(Tool.from_function(one, name='two'))", "tool", "two",
    ),
    "ready-made resource": (
        FASTMCP + "from fastmcp.resources import TextResource\n"
        "mcp.add_resource(TextResource(uri='a://b/c', text=''))", "resource", "a://b/c",
    ),
    "decorator without a server": (
        "from fastmcp.tools import tool\n@tool(name='two')\ndef one(): ...", "tool", "two",
    ),
    "decorator without a server, added": (
        FASTMCP + "from fastmcp.tools import tool\n@tool\ndef one(): ...\nmcp.add_tool(one)",
        "tool", "one",
    ),
    "sdk 1": (
        "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef one(): ...",
        "tool", "one",
    ),
    "sdk 2": (
        "from mcp.server import MCPServer\nserver = MCPServer('x')\n@server.tool()\ndef one(): ...",
        "tool", "one",
    ),
    "sdk 2, by module": (
        "import mcp.server as sdk\ns = sdk.MCPServer('x')\n@s.tool()\ndef one(): ...",
        "tool", "one",
    ),
    "apps of the sdk": (
        ("from mcp.server.apps import Apps\napps = Apps()\n"
        "@apps.tool(resource_uri='ui://x/y')\ndef one(): ..."), "tool", "one",
    ),
    "low-level tool": (
        "from mcp import types\nasync def tools(): return [types.Tool(name='one')]", "tool", "one",
    ),
    "low-level tool by name": (
        "from mcp.types import Tool\nTOOLS = [Tool(name='one')]", "tool", "one",
    ),
    "low-level resource": (
        "import mcp_types as types\nR = types.Resource(uri='a://b/c')", "resource", "a://b/c",
    ),
    "low-level template": (
        "from mcp.types import ResourceTemplate\nR = ResourceTemplate(uriTemplate='a://b/{c}')",
        "template", "a://b/{c}",
    ),
    "low-level prompt": ("from mcp.types import Prompt\nP = Prompt(name='one')", "prompt", "one"),
    "server in an attribute": (
        ("from fastmcp import FastMCP\nclass A:\n    def __init__(self):\n"
        "        self.server = FastMCP('x')\n        self.server.tool(self.one)\n"
        "    def one(self): ..."), "tool", "one",
    ),
    "derived server": (
        "from fastmcp import FastMCP\nclass A(FastMCP): ...\na = A('x')\n@a.tool\ndef one(): ...",
        "tool", "one",
    ),
    "server that derives": (
        ("from fastmcp import FastMCP\nclass A(FastMCP):\n    def __init__(self):\n"
        "        @self.tool\n        def one(): ..."), "tool", "one",
    ),
    "server as a parameter": (
        "from fastmcp import FastMCP\ndef add(m: FastMCP):\n    @m.tool\n    def one(): ...",
        "tool", "one",
    ),
    "server by its parameter's name": (
        "def add(mcp):\n    @mcp.tool()\n    def one(): ...", "tool", "one",
    ),
    "server that a function returns": (
        ("from fastmcp import FastMCP\ndef make() -> FastMCP: ...\nm = make()\n"
        "@m.tool\ndef one(): ..."), "tool", "one",
    ),
    "server that a function makes": (
        ("from fastmcp import FastMCP\ndef make():\n    m = FastMCP('x')\n    return m\n"
        "app = make()\n@app.tool\ndef one(): ..."), "tool", "one",
    ),
    "server made from something": (
        "from fastmcp import FastMCP\nm = FastMCP.from_client(c)\n@m.tool\ndef one(): ...",
        "tool", "one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_registration_is_found_once(style: str, tmp_path: Path) -> None:
    text, kind, name = STYLES[style]
    assert names(tmp_path, text) == [(kind, name)]


UNRELATED = {
    "langchain": "from langchain_core.tools import tool\n@tool\ndef one(): ...",
    "an agent beside a server": (
        FASTMCP + "from pydantic_ai import Agent\nagent = Agent('m')\n@agent.tool\ndef one(): ..."
    ),
    "a function of ours": FASTMCP + "def tool(f): return f\n@tool\ndef one(): ...",
    "boto": FASTMCP + "import boto3\nboto3.resource('s3')",
    "a session": FASTMCP + "def f(session): session.resource('s3')",
    "something that may be a server": "def f(mcp_aws): mcp_aws.resource('s3')",
    "another Tool": "from anthropic.types import Tool\nTool(name='one')",
    "a class of ours": FASTMCP + "class Tool: ...\nTool(name='one')",
    "a method of our own class": (
        "class A:\n    def f(self):\n        @self.tool\n        def one(): ..."
    ),
    "a route": "from flask_restful import Api\napi = Api()\n@api.resource('/x')\nclass R: ...",
}


@pytest.mark.parametrize("case", UNRELATED)
def test_what_only_looks_like_a_registration_is_left_alone(case: str, tmp_path: Path) -> None:
    found = project(tmp_path, UNRELATED[case])
    assert (found.declared, found.notes) == ([], [])


def test_a_server_of_another_file_is_known(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "src/shop/__init__.py": "",
            "src/shop/app.py": "from fastmcp import FastMCP\nserver = FastMCP('shop')\n",
            "src/shop/tools/__init__.py": "",
            "src/shop/tools/orders.py": (
                "from ..app import server as it\n@it.tool\ndef relative(): ...\n"
            ),
            "src/shop/tools/items.py": (
                "from shop.app import server\n@server.tool\ndef absolute(): ...\n"
            ),
            "src/shop/tools/other.py": (
                "import shop.app\n@shop.app.server.tool\ndef dotted(): ...\n"
            ),
        },
    )
    found = read_sources([tmp_path])
    assert sorted(each.name for each in found.declared) == ["absolute", "dotted", "relative"]
    assert len({each.server for each in found.declared}) == 1


def test_a_server_of_a_file_that_is_not_read_is_likely_one(tmp_path: Path) -> None:
    text = "from .app import mcp\n@mcp.tool\ndef one(): ...\n"
    write(tmp_path, {"shop/__init__.py": "", "shop/tools.py": text})
    assert [each.name for each in read_sources([tmp_path / "shop/tools.py"]).declared] == ["one"]


RUN_TIME = {
    "a loop": FASTMCP + "for name in NAMES:\n    mcp.tool(name=name)(f)",
    "a function's argument": FASTMCP + "def add(name):\n    @mcp.tool(name=name)\n    def f(): ...",
    "what only one branch says": (
        FASTMCP + "if X: N = 'a'\nelse: N = 'b'\n@mcp.tool(name=N)\ndef f(): ..."
    ),
    "options": FASTMCP + "@mcp.tool(**options)\ndef f(): ...",
    "a lambda": FASTMCP + "mcp.tool(lambda: 1)",
    "a partial": FASTMCP + "import functools\nmcp.tool(functools.partial(f, 1))",
    "an OpenAPI description": "from fastmcp import FastMCP\nm = FastMCP.from_openapi(spec)",
    "a mounted server": FASTMCP + "mcp.mount(other, namespace='x')",
}


@pytest.mark.parametrize("case", RUN_TIME)
def test_what_only_running_would_tell_is_a_note_with_its_place(case: str, tmp_path: Path) -> None:
    found = project(tmp_path, RUN_TIME[case])
    assert found.declared == []
    assert len(found.notes) == 1
    assert found.notes[0].place.path == "server.py"
    assert found.notes[0].place.line > 1
