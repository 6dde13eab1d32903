"""`NAMESPACES.md`: the register of a project's names, written for people and read back.

What stands between the two marks is made anew; everything around them is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.names.deprecation import stage
from folkmoot.names.limits import MAX_CELL
from folkmoot.names.project import NAMED, Declared, Project

ESCAPED = re.compile(r"[\\|<]")
UNESCAPED = re.compile(r"\\([\\|<])")
BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?)?\s*")
CELL = re.compile(r"(?:[^\\|]|\\.)*", re.DOTALL)


def cell(text: str) -> str:
    """A text as one cell: one line of bounded length that neither ends the cell nor begins HTML."""
    flat = BLANK.sub(" ", text).strip()
    if len(flat) > MAX_CELL:
        flat = flat[: MAX_CELL - 1].rstrip() + "…"
    return ESCAPED.sub(r"\\\g<0>", flat)


def plain(text: str) -> str:
    """The text of a cell; code marks around the whole of it are not part of it."""
    bare = UNESCAPED.sub(r"\1", text.strip())
    code = len(bare) > 2 and bare[0] == bare[-1] == "`" and "`" not in bare[1:-1]
    return bare[1:-1] if code else bare


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = "|".join("-" * (len(title) + 2) for title in titles)
    shown = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return [f"| {' | '.join(titles)} |", f"|{rule}|", *shown]


def read_table(lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of the first table among the lines; nothing where there is none."""
    for number in range(len(lines) - 1):
        if "|" in lines[number] and RULE.fullmatch(lines[number + 1].strip()):
            titles = cells(lines[number])
            rows = []
            for line in lines[number + 2 :]:
                if "|" not in line:
                    break
                row = cells(line)
                rows.append([*row, *[""] * (len(titles) - len(row))][: len(titles)])
            return titles, rows
    return [], []


def cells(line: str) -> list[str]:
    """The cells of one line of a table."""
    inner = line.strip().removeprefix("|")
    found: list[str] = []
    at = 0
    while at <= len(inner):
        match = CELL.match(inner, at)
        end = match.end() if match else len(inner)
        # A backslash that nothing follows belongs to the last cell.
        if end < len(inner) and inner[end] == "\\":
            end = len(inner)
        found.append(plain(inner[at:end]))
        at = end + 1
    return found[:-1] if inner.rstrip().endswith("|") and found and not found[-1] else found


Row: TypeAlias = tuple[str, ...]


class Section(NamedTuple):
    """One table of the register; `key` is the column that names a row."""

    title: str
    columns: tuple[str, ...]
    key: int
    what: str
    """What a row is called in a sentence."""
    kept: tuple[int, ...] = ()
    """Columns whose text stays as it was written where the project says nothing of it."""


SECTIONS: dict[str, Section] = {
    "tools": Section(
        "Registered Tools",
        ("Tool Name", "Full Name", "Description", "Version"),
        key=1,
        what="tool",
        kept=(3,),
    ),
    "resources": Section(
        "Registered Resources",
        ("Resource URI", "Description", "Type"),
        key=0,
        what="resource",
        kept=(2,),
    ),
    "prompts": Section(
        "Registered Prompts",
        ("Prompt Name", "Full Name", "Description"),
        key=1,
        what="prompt",
    ),
    "deprecated": Section(
        "Deprecated",
        ("Name", "Deprecated Since", "Removed In", "Use Instead"),
        key=0,
        what="deprecated name",
        kept=(1, 2, 3),
    ),
}

ALWAYS = ("tools", "resources")
"""Those that are on the page even when they are empty."""


class Registry(Struct, kw_only=True):
    """Who has which namespace, and the names in it."""

    project: str = ""
    namespace: str = ""
    status: str = "Active"
    validation: str = "`folkmoot names lint`"
    tables: dict[str, list[Row]]

    def row(self, table: str, key: str) -> Row | None:
        at = SECTIONS[table].key
        return next((row for row in self.tables.get(table, []) if row[at] == key), None)


def registry_of(project: Project, before: Registry | None = None) -> Registry:
    """The register of a project's names.

    A tool keeps the version under which it was first written down. What is hidden by now, a
    release after its deprecation, is left out.
    """
    namespace = project.namespace or ""
    kept = before or Registry(tables={})
    shown = [it for it in project.declared if visible(it, project.version)]
    tables: dict[str, list[Row]] = {
        "tools": [
            (it.own, full_name(it, namespace), it.description, project.version or "")
            for it in shown
            if it.kind == "tool"
        ],
        "resources": [
            (it.name, it.description, it.mime_type) for it in shown if it.kind not in NAMED
        ],
        "prompts": [
            (it.own, full_name(it, namespace), it.description)
            for it in shown
            if it.kind == "prompt"
        ],
        "deprecated": [
            (
                full_name(it, namespace),
                it.deprecation.since or "",
                it.deprecation.removed_in or "",
                it.deprecation.use or "",
            )
            for it in shown
            if it.deprecation is not None
        ],
    }
    return Registry(
        project=project.name or namespace,
        namespace=namespace,
        status=kept.status,
        validation=kept.validation,
        tables={name: merged_rows(name, rows, kept) for name, rows in tables.items()},
    )


def visible(declared: Declared, version: str | None) -> bool:
    """Whether a name belongs in the documentation of a release."""
    gone = declared.deprecation
    return gone is None or not stage(gone, version).hidden


def full_name(declared: Declared, namespace: str) -> str:
    """The name with its namespace, also where the server leaves that to a gateway."""
    if declared.kind not in NAMED or declared.namespace is not None:
        return declared.name
    return f"{namespace}:{declared.name}"


def merged_rows(name: str, rows: Iterable[Row], before: Registry) -> list[Row]:
    """The rows by name, each once, with the hand-written columns of the earlier ones."""
    section = SECTIONS[name]
    found: dict[str, Row] = {}
    for row in rows:
        read = tuple(plain(cell(text)) for text in row)
        former = before.row(name, read[section.key])
        found.setdefault(read[section.key], keep(section, read, former))
    return [found[key] for key in sorted(found)]


def keep(section: Section, row: Row, former: Row | None) -> Row:
    """The row, with the columns someone wrote by hand."""
    if former is None:
        return row
    stays = {at for at in section.kept if former[at] and (section.what == "tool" or not row[at])}
    return tuple(former[at] if at in stays else text for at, text in enumerate(row))


BEGIN = "<!-- folkmoot:begin -->"
END = "<!-- folkmoot:end -->"
TITLE = "# MCP Namespace Registry"
CONVENTION = "Chora MCP Conventions v1.0"
CONVENTION_URL = (
    "https://github.com/liminalcommons/chora-base/blob/main/docs/standards/"
    "CHORA_MCP_CONVENTIONS_v1.0.md"
)
FIELD = re.compile(
    r"\*\*(Project|Namespace|Status|Validation):\*\*[ \t]*(.*?)[ \t\\]*$", re.MULTILINE
)
HEADING = re.compile(r"^##[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
EMPTY = "None yet."


def read(text: str) -> Registry:
    """What a page says, with our marks or without: also one that a person wrote by hand."""
    ours = between(text).replace("\r\n", "\n")
    fields = {name.lower(): value for name, value in FIELD.findall(ours) if value}
    fields |= {name: plain(fields[name]) for name in fields.keys() - {"validation"}}
    parts = HEADING.split(ours)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    tables = {}
    for name, section in SECTIONS.items():
        titles, rows = read_table(sections.get(section.title, "").splitlines())
        places = [titles.index(title) if title in titles else -1 for title in section.columns]
        tables[name] = [tuple(row[at] if at >= 0 else "" for at in places) for row in rows]
    return Registry(**fields, tables=tables)


def render(project: Project, text: str | None = None, *, force: bool = False) -> str:
    """The whole page for a project; `text` is the page as it is, and kept around our part.

    Raises `ProjectUnusable` for a page without our marks, in which nobody knows what is whose; with
    `force` nothing of it is kept but its versions.
    """
    registry = registry_of(project, read(text) if text else None)
    if force or text is None or not text.strip():
        return new_page(registry)
    if not marked(text):
        raise e.ProjectUnusable(
            f"{project.namespaces_file} has no lines '{BEGIN}' and '{END}' around the part "
            "that may be rewritten. Add them, or use --force to replace the whole file."
        )
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    whole = f"{head}{BEGIN}\n{body(registry)}{END}{tail}".replace("\r\n", "\n")
    return whole.replace("\n", "\r\n") if "\r\n" in text else whole


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


def new_page(registry: Registry) -> str:
    """A page with nothing but our part."""
    return f"{TITLE}\n\n{BEGIN}\n{body(registry)}{END}\n"


def body(registry: Registry) -> str:
    """Our part of the page."""
    rules = [
        f"- **Format:** `{registry.namespace}:{{tool_name}}` for tools",
        f"- **Format:** `{registry.namespace}://{{type}}/{{id}}` for resources",
        f"- **Validation:** {registry.validation}",
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
