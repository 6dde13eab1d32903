"""What a server offers and what its tools answer, for people and for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.cli.options import signature
from folkmoot.cli.output import (
    aligned,
    escape_json,
    lines,
    one_line,
    pretty,
    say,
    size,
)
from folkmoot.cli.show import Terminal, lapse, word
from folkmoot.mcp.wire import (
    LOGGED,
    PROGRESS,
    PROMPTS_LIST,
    RESOURCES_LIST,
    TEMPLATES_LIST,
    TOOLS_LIST,
)

if TYPE_CHECKING:
    from folkmoot.core.message import Notification
    from folkmoot.relay.caller import PlainClient


INDENT: Final = "  "


class ServerOffer(Struct, frozen=True, kw_only=True):
    """A server, and all it offers."""

    server: dict[str, Any]
    era: str
    version: str
    instructions: str = ""
    tools: list[dict[str, Any]] = []
    resources: list[dict[str, Any]] = []
    templates: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []


LISTS: Final = (
    ("tools", TOOLS_LIST, "tools", "Tools"),
    ("resources", RESOURCES_LIST, "resources", "Resources"),
    ("templates", TEMPLATES_LIST, "resourceTemplates", "Resource templates"),
    ("prompts", PROMPTS_LIST, "prompts", "Prompts"),
)
"""Each list of an offer: how it is asked for, the member it is in, and its heading."""


def show_offer(offer: ServerOffer, seconds: float) -> None:
    """A server and its lists: on a terminal with room, in a pipe one thing in a line."""
    terminal = Terminal()
    name = " ".join(word(offer.server[key]) for key in ("name", "version") if offer.server.get(key))
    about = f"{name or 'A nameless server'}: {offer.era} era ({word(offer.version)}), reached in "
    say(f"{about}{lapse(seconds)}.", err=not terminal.on_terminal)
    for member, _, _, heading in LISTS:
        entries: list[dict[str, Any]] = getattr(offer, member)
        if not entries:
            continue
        if terminal.on_terminal:
            terminal.write(terminal.styled(f"{heading}:", "bold"))
            for entry in entries:
                draw_entry(entry, terminal)
        else:
            for line in aligned([(member[:-1], *in_words(entry)) for entry in entries]):
                terminal.write(line)
    terminal.flush()
    if not any(getattr(offer, member) for member, *_ in LISTS):
        say("It offers nothing.", err=True)


def in_words(entry: dict[str, Any]) -> tuple[str, str, str]:
    """The name, arguments and description of a tool, resource or prompt."""
    name = entry.get("uri") or entry.get("uriTemplate") or entry.get("name")
    takes = signature(entry.get("inputSchema"))
    if isinstance(wanted := entry.get("arguments"), list):
        takes = " ".join(
            f"{each['name']}=" if each.get("required") else f"[{each['name']}=]"
            for each in wanted
            if isinstance(each, dict) and isinstance(each.get("name"), str)
        )
    told = entry.get("description") or entry.get("title") or ""
    first = next((line for line in lines(str(told)) if line.strip()), "")
    return word(name), one_line(takes), first.strip()


def draw_entry(entry: dict[str, Any], terminal: Terminal) -> None:
    """One tool, resource or prompt on a terminal."""
    name, takes, about = in_words(entry)
    width = max((terminal.width or 80) - 2 * len(INDENT), 10)
    # Never cut: it is what one types next.
    terminal.write(terminal.styled(f"{INDENT}{name}", "cyan"))
    for text, style in ((takes, ""), (about, "dim")):
        for line in textwrap.wrap(text, width, break_on_hyphens=False):
            terminal.write(f"{INDENT * 2}{terminal.styled(line, style)}")


def show_result(result: dict[str, Any], what: str, seconds: float, caller: PlainClient) -> None:
    """What a tool, resource or prompt came to."""
    terminal = Terminal()
    for line in result_lines(result):
        terminal.write(line)
    terminal.flush()
    if terminal.on_terminal:
        era = f"{caller.era.value} era ({word(caller.version)})"
        said = f"{one_line(what)} took {lapse(seconds)}; {era}."
        say(said, err=True)


def result_lines(result: dict[str, Any]) -> Iterator[str]:
    """Each part of a result in lines that are safe to show."""
    content, structured = result.get("content"), result.get("structuredContent")
    told = False
    for block in content if isinstance(content, list) else ():
        yield from block_lines(block)
        told = told or (structured is not None and says(block, structured))
    if structured is not None and not told:
        yield from json_lines(structured)
    contents = result.get("contents")
    for each in contents if isinstance(contents, list) else ():
        yield from resource_lines(each)
    messages = result.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield f"{word(message.get('role'))}:"
            for line in block_lines(message.get("content")):
                yield f"{INDENT}{line}".rstrip()
    if not any(name in result for name in ("content", "structuredContent", "contents", "messages")):
        yield from json_lines(result)


def block_lines(block: Any) -> Iterator[str]:
    """One block of content."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and isinstance(block.get("text"), str):
        yield from text_lines(block["text"])
    elif kind in ("image", "audio"):
        data = block.get("data")
        amount = size(len(data) * 3 // 4) if isinstance(data, str) else "no data"
        yield f"[{kind} {word(block.get('mimeType'))}, {amount}]"
    elif kind == "resource_link":
        yield f"[link {word(block.get('uri'))} {word(block.get('name'))}]"
    elif kind == "resource":
        yield from resource_lines(block.get("resource"))
    else:
        yield from json_lines(block)


def resource_lines(resource: Any) -> Iterator[str]:
    """The content of a resource, below its address."""
    if not isinstance(resource, dict):
        yield from json_lines(resource)
        return
    yield f"[{word(resource.get('uri'))} {word(resource.get('mimeType'))}]"
    if isinstance(resource.get("text"), str):
        yield from text_lines(resource["text"])
    elif isinstance(blob := resource.get("blob"), str):
        yield f"[{size(len(blob) * 3 // 4)}]"


def text_lines(text: str) -> Iterator[str]:
    """A text, laid out if it is JSON."""
    value = opened(text)
    if value is None:
        yield from lines(text)
    else:
        yield from json_lines(value)


def json_lines(value: Any) -> Iterator[str]:
    """A value as JSON that is safe to show."""
    yield from escape_json(pretty(value)).split("\n")


def opened(text: str) -> Any:
    """The object or list that a text is; None if it is neither."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return value if isinstance(value, dict | list) else None


def says(block: Any, structured: Any) -> bool:
    """Whether a block repeats the structured content, as the specification advises.

    A value that is no object may stand in one alone, as `result`.
    """
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, str):
        return False
    alone = structured.get("result") if isinstance(structured, dict) else None
    plain = msgspec.json.encode(alone).decode() if not isinstance(alone, str) else alone
    return opened(text) == structured or (len(structured) == 1 and text == plain)


def show_notice(notice: Notification) -> None:
    """What a server says while it works, on standard error."""
    params = notice.params if isinstance(notice.params, dict) else {}
    if notice.method == LOGGED:
        data = params.get("data")
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        say(f"{word(params.get('level'))}: {one_line(text)}", err=True)
    elif notice.method == PROGRESS:
        show_progress(params)


def show_progress(params: dict[str, Any]) -> None:
    """How far a call is, on standard error."""
    of = f" of {word(params['total'])}" if params.get("total") is not None else ""
    told = f" {word(params['message'])}" if params.get("message") else ""
    say(f"{word(params.get('progress'))}{of}{told}", err=True)
