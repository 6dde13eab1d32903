"""The entry of `UPGRADING.md`, and the script that clients run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from folkmoot.names.generate.filling import fill
from folkmoot.names.generate.plan import with_ends_of
from folkmoot.names.generate.rename import rewriting
from folkmoot.names.generate.rename.alias import Deprecating
from folkmoot.names.generate.rename.renaming import METHODS, Renaming
from folkmoot.names.generate.tables import table
from folkmoot.names.wire import safe_name

FILE = "UPGRADING.md"
FOLDER = "migrations"
VARIABLE = re.compile(r"\{[^}]*\}")
RIGHT = "Right at a gateway"
CALLS = {
    "tool": 'await client.call_tool("{}", arguments)',
    "prompt": 'await client.get_prompt("{}", arguments)',
    "resource": 'await client.read_resource("{}")',
    "template": 'await client.read_resource("{}")  # with the variables filled in',
    "namespace": 'await client.call_tool("{}:{tool}", arguments)',
}
"""What a client's code looks like."""


def script_name(renaming: Renaming) -> str:
    """What the clients' script is called."""
    words = (re.sub(r"\W+", "_", name).strip("_") for name in (renaming.old, renaming.new))
    return f"{FOLDER}/rename_{'_to_'.join(words)}.py"


def script_text(renaming: Renaming) -> str:
    """A script that rewrites the files of clients, and needs nothing but Python."""
    source = Path(rewriting.__file__).read_text(encoding="utf-8")
    rules = "".join(f"    ({json.dumps(old)}, {json.dumps(new)}),\n" for old, new in renaming.rules)
    words = {
        "old": renaming.old,
        "new": renaming.new,
        "rules": rules,
        "rewriting": source.partition("import tokenize\n")[2].strip(),
    }
    return fill("migration.py", words)


def entry(renaming: Renaming, version: str, when: Deprecating | None) -> str:
    """What changes for those who use the server, with code, a table and how to change it."""
    code = CALLS[renaming.what]
    names = shlex.join((renaming.old, renaming.new))
    tool = renaming.tools[0] if renaming.tools else "create_task"
    before, after = (code.replace("{tool}", tool).format(it) for it in (renaming.old, renaming.new))
    return "\n".join(
        [
            f"## {version}: `{renaming.old}` is now `{renaming.new}`",
            "",
            *explained(renaming, when),
            "",
            "Before:",
            "",
            "```python",
            before,
            "```",
            "",
            "After:",
            "",
            "```python",
            after,
            "```",
            "",
            *table(("Where", "Before", "After"), rows(renaming)),
            "",
            "The files of a client are changed by either of these; look at the difference first:",
            "",
            "```sh",
            f"python {script_name(renaming)} --diff PATH",
            f"folkmoot names rename {names} --clients PATH --diff",
            "```",
            "",
        ]
    )


def explained(renaming: Renaming, when: Deprecating | None) -> list[str]:
    """What happens to the old name."""
    if renaming.what == "namespace":
        return ["Every name of this server begins with another namespace. The old names are gone."]
    word = "resource" if renaming.what == "template" else renaming.what
    same = f"The {word} has another name; what it takes and what it answers are the same."
    if when is None:
        return [same, "The old name is gone."]
    return [
        same,
        "",
        f"The old name is deprecated since {when.since}: it works, and its use is logged as a",
        "warning. In the release after that it is no longer documented, and its use is logged as",
        f"an error. It is removed in {when.removed_in}.",
    ]


def rows(renaming: Renaming) -> list[tuple[str, str, str]]:
    """What stands where, before and after."""
    old, new = renaming.old, renaming.new
    if renaming.what == "namespace":
        found = [
            ("Tools", f"{old}:{{tool}}", f"{new}:{{tool}}"),
            ("Tools, safe spelling", f"{old}_{{tool}}", f"{new}_{{tool}}"),
            ("Resources", f"{old}://…", f"{new}://…"),
            ("Gateway", f"[backends.{old}]", f"[backends.{new}]"),
            (RIGHT, f"mcp.request.tools/call:{old}:*", f"mcp.request.tools/call:{new}:*"),
            (RIGHT, f"mcp.request.resources/*:{old}://*", f"mcp.request.resources/*:{new}://*"),
        ]
    else:
        old, new = renaming.full
        found = [("Name", old, new)]
        if renaming.what in {"tool", "prompt"}:
            found.append(("Safe spelling", safe_name(old), safe_name(new)))
        kind = f"mcp.request.{METHODS[renaming.what]}"
        before, after = (VARIABLE.sub("*", name) for name in (old, new))
        found.append((RIGHT, f"{kind}:{before}", f"{kind}:{after}"))
        if renaming.what == "tool":
            found.append((f"Tools of [backends.{renaming.namespace}]", *renaming.own))
    return [(where, f"`{before}`", f"`{after}`") for where, before, after in found]


def with_entry(text: str | None, made: str) -> str:
    """The page with the entry before all others."""
    if not text or not text.strip():
        return f"# Upgrading\n\nWhat clients have to change, release by release.\n\n{made}"
    plain = text.replace("\r\n", "\n")
    if made.splitlines()[0] in plain.splitlines():
        return text
    first = re.search(r"^## ", plain, re.MULTILINE)
    if first is None:
        return with_ends_of(text, f"{plain.rstrip()}\n\n{made}")
    return with_ends_of(text, f"{plain[: first.start()]}{made}\n{plain[first.start() :]}")
