"""`NAMESPACES.md`: the register of a project's names, written for people and read back.

What stands between the two marks is ours and made anew; everything around them is kept.
"""

from __future__ import annotations

import re

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.registry import ALWAYS, SECTIONS, Registry, registry_of
from folkmoot.names.generate.tables import cell, plain, read_table, table
from folkmoot.names.lint.model import Project

BEGIN = "<!-- folkmoot:begin -->"
END = "<!-- folkmoot:end -->"
TITLE = "# MCP Namespace Registry"
CONVENTION = "Chora MCP Conventions v1.0"
CONVENTION_URL = (
    "https://github.com/liminalcommons/chora-base/blob/main/docs/standards/"
    "CHORA_MCP_CONVENTIONS_v1.0.md"
)
FIELD = re.compile(r"\*\*(Project|Namespace|Status):\*\*[ \t]*(.*?)[ \t\\]*$", re.MULTILINE)
HEADING = re.compile(r"^##[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
EMPTY = "None yet."


def read(text: str) -> Registry:
    """What a page says, with our marks or without: also one that a person wrote by hand."""
    ours = between(text).replace("\r\n", "\n")
    fields = {name.lower(): plain(value) for name, value in FIELD.findall(ours)}
    parts = HEADING.split(ours)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    tables = {}
    for name, section in SECTIONS.items():
        titles, rows = read_table(sections.get(section.title, "").splitlines())
        places = [titles.index(title) if title in titles else -1 for title in section.columns]
        tables[name] = [tuple(row[at] if at >= 0 else "" for at in places) for row in rows]
    return Registry(**fields, tables=tables)


def render(project: Project, text: str | None = None, *, helper: str | None = None) -> str:
    """The whole page for a project; `text` is the page as it is, and kept around our part.

    `helper` is the module that checks names, for the page to point to. Raises `ProjectUnusable`
    for a page without our marks, in which nobody knows what is whose.
    """
    if text is None or not text.strip():
        registry = registry_of(project)
        return f"{TITLE}\n\n{BEGIN}\n{body(registry, helper)}{END}\n"
    if not marked(text):
        raise ProjectUnusable(
            f"{project.namespaces_file} has no lines '{BEGIN}' and '{END}' around the part "
            "that may be rewritten. Add them, or use --force to replace the whole file."
        )
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{body(registry_of(project, read(text)), helper)}{END}{tail}"


def replace(project: Project, text: str | None, *, helper: str | None = None) -> str:
    """A whole new page, which keeps nothing of the present one but its versions."""
    registry = registry_of(project, read(text) if text else None)
    return f"{TITLE}\n\n{BEGIN}\n{body(registry, helper)}{END}\n"


def differences(project: Project, text: str) -> list[str]:
    """What of a page is no longer so, a sentence each; nothing when it is up to date."""
    said = read(text)
    true = registry_of(project, said)
    found = []
    if project.namespace and said.namespace != true.namespace:
        found.append(f"The namespace is {true.namespace}, not {said.namespace or 'left out'}.")
    for name, section in SECTIONS.items():
        rows = {row[section.key]: row for row in true.tables[name]}
        former = {row[section.key]: row for row in said.tables[name]}
        found += [f"The {section.what} {key} is missing." for key in rows.keys() - former.keys()]
        found += [
            f"The {section.what} {key} is in it, but not in the project."
            for key in former.keys() - rows.keys()
        ]
        for key in rows.keys() & former.keys():
            columns = zip(section.columns, rows[key], former[key], strict=True)
            changed = [title for title, new, old in columns if new != old]
            if changed:
                found.append(f"The {section.what} {key} has another {joined(changed)} now.")
    return sorted(found)


def joined(words: list[str]) -> str:
    """Titles of columns as a sentence lists them."""
    return " and ".join(word.lower() for word in words)


def marked(text: str) -> bool:
    """Whether both marks are there, once each and in order."""
    once = text.count(BEGIN) == 1 and text.count(END) == 1
    return once and text.index(BEGIN) < text.index(END)


def between(text: str) -> str:
    """The part between the marks; everything where they are not."""
    if not marked(text):
        return text
    return text.partition(BEGIN)[2].partition(END)[0]


def body(registry: Registry, helper: str | None) -> str:
    """Our part of the page."""
    checks = f" (see `{helper}`)" if helper else ""
    rules = [
        f"- **Format:** `{registry.namespace}:{{tool_name}}` for tools",
        f"- **Format:** `{registry.namespace}://{{type}}/{{id}}` for resources",
        f"- **Validation:** Runtime validation enabled{checks}"
        if helper
        else "- **Validation:** `folkmoot names lint`",
    ]
    parts = [
        [
            f"**Project:** {cell(registry.project)}\\",
            f"**Namespace:** `{registry.namespace}`\\",
            f"**Convention:** {CONVENTION}\\",
            f"**Status:** {cell(registry.status)}",
        ],
        *(
            [f"## {section.title}", "", *(table(section.columns, rows) if rows else [EMPTY])]
            for name, section in SECTIONS.items()
            if (rows := registry.tables[name]) or name in ALWAYS
        ),
        ["## Namespace Rules", "", *rules],
        ["## References", "", f"- [{CONVENTION}]({CONVENTION_URL})"],
    ]
    return "\n\n---\n\n".join("\n".join(part) for part in parts) + "\n"
