"""URIs inside what a server answers, put into the form they have here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Request, Response
from folkmoot.gateway.limits import MAX_CONTENT_DEPTH
from folkmoot.gateway.mapping import exposed_uri, shown_uri
from folkmoot.mcp.eras.calls import offers
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.wire import (
    AS_TASK,
    COMPLETE,
    COMPLETION,
    INPUT_REQUIRED,
    PROMPTS_GET,
    RESOURCES_READ,
    RESULT_TYPE,
    ROOTS_LIST,
    TOOLS_CALL,
    members_of,
)
from folkmoot.mcp.wire import NEEDED as ASKED

Spell: TypeAlias = Callable[[str], str]
"""What a URI of a server's own is called here."""
Mapper: TypeAlias = Callable[[Any, Spell], Any]
"""What becomes of a value: the same object if nothing does."""

NEEDED: Final[dict[str, tuple[str, type]]] = {
    TOOLS_CALL: ("content", list),
    PROMPTS_GET: ("messages", list),
    RESOURCES_READ: ("contents", list),
    COMPLETION: ("completion", dict),
}
"""The member that the result of a method must have, and what it is."""
STRUCTURED: Final = "structuredContent"
TEXT: Final = "text"
"""The type of contents in which there is no URI; most are such."""
WORDS: Final[dict[type, str]] = {list: "a list of objects", dict: "an object"}


def map_result(
    method: str, result: dict[str, Any], namespace: str, *, canonical: bool = False
) -> dict[str, Any]:
    """The result with the URIs a client could read; the same object where there are none.

    With `canonical` they are spelled as rooms have them. Data of a tool's own, `structuredContent`
    and texts, is left alone.
    """
    spell = partial(exposed_uri if canonical else shown_uri, namespace)
    asks = result.get(RESULT_TYPE) == INPUT_REQUIRED
    for member, mapper in QUESTIONS if asks else RESULTS.get(method, ()):
        if member in result:
            result = _member(result, member, mapper, spell)
    return result


def fault_of(method: str, result: Any) -> str | None:
    """Why something is no result of a method; None for one that a client can use.

    A tool may answer with structured content alone, as some do.
    """
    if not isinstance(result, dict):
        return "it must be an object"
    kind = result.get(RESULT_TYPE, COMPLETE)
    if kind != COMPLETE or method not in NEEDED:
        no_task = kind == AS_TASK and (method != TOOLS_CALL or not is_task(result))
        return "it is no valid task" if no_task else None
    member, kind = NEEDED[method]
    if member not in result and method == TOOLS_CALL and (STRUCTURED in result or is_task(result)):
        return None
    value: Any = result.get(member)
    fits = isinstance(value, kind)
    if fits and kind is list:
        for each in value:
            if not isinstance(each, dict):
                fits = False
    return None if fits else f"`{member}` must be {WORDS[kind]}"


def check_questions(asked: Any, namespace: str, capabilities: dict[str, Any] | None = None) -> None:
    """Refuse questions that a server was not told it could ask.

    The folders of someone's machine are never told to a server behind the hub. `capabilities` are
    those of the client that would be asked, where they are known.
    """
    for each in members_of(asked).values():
        question = members_of(each)
        method, params = question.get("method"), members_of(question.get("params"))
        if method == ROOTS_LIST:
            raise e.BackendFailed(
                f"The backend {namespace} asks for the folders of your machine (roots/list), and "
                "the hub does not pass them on. It may have done a part of what was asked."
            )
        if capabilities is not None and method in ASKED:
            request = Request(id=0, method=method, params=params)
            if not offers(capabilities, request):
                raise EraRefusal.INPUT_NOT_OFFERED.error(method, needs=ASKED[method])


def is_task(result: dict[str, Any]) -> bool:
    """Whether the result of a call says that it goes on as a task, in either era's words.

    What has content is what a tool says, whatever else it says of itself.
    """
    if "content" in result or STRUCTURED in result:
        return False
    kind = result.get(RESULT_TYPE, COMPLETE)
    return kind == AS_TASK or (kind == COMPLETE and type(result.get(AS_TASK)) is dict)


def outcome_of(method: str, response: Response) -> str:
    """What came of a request, in a word."""
    if response.error is UNSET and fault_of(method, response.result) is not None:
        return "invalid"
    return valid_outcome(method, response)


def valid_outcome(method: str, response: Response) -> str:
    """The same, where the result is known to be one."""
    if isinstance(response.error, ErrorObject):
        return "error"
    result = response.result
    if result.get("isError") is True:
        return "tool_error"
    if method == TOOLS_CALL and "content" not in result and is_task(result):
        return "task"
    return "ok" if result.get(RESULT_TYPE, COMPLETE) == COMPLETE else "input_required"


def map_meta(meta: Any, spell: Spell) -> Any:
    """The `_meta` of a tool or of its result: an app that shows it is named by its URI."""
    if not isinstance(meta, dict):
        return meta
    for member, mapper in (("ui/resourceUri", _uri), ("ui", _app)):
        meta = _member(meta, member, mapper, spell)
    return meta


def _member(value: Any, member: str, mapper: Mapper, spell: Spell) -> Any:
    """An object with one member mapped; the same object if nothing changes."""
    if not isinstance(value, dict) or member not in value:
        return value
    before = value[member]
    after = mapper(before, spell)
    return value if after is before else {**value, member: after}


def _each(mapper: Mapper, plain: str = "") -> Mapper:
    """The same for a list; nothing becomes of values of the type `plain`."""

    def mapped(values: Any, spell: Spell) -> Any:
        if not isinstance(values, list):
            return values
        after = values
        for place, value in enumerate(values):
            if plain and type(value) is dict and value.get("type") == plain:
                continue
            mapped = mapper(value, spell)
            if mapped is not value:
                after = list(values) if after is values else after
                after[place] = mapped
        return after

    return mapped


def _uri(value: Any, spell: Spell) -> Any:
    if not isinstance(value, str):
        return value
    spelled = spell(value)
    return value if spelled == value else spelled


def _app(value: Any, spell: Spell) -> Any:
    return _member(value, "resourceUri", _uri, spell)


def _located(value: Any, spell: Spell) -> Any:
    return _member(value, "uri", _uri, spell)


def _content(value: Any, spell: Spell, depth: int = 0) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "resource_link":
        return _located(value, spell)
    if kind == "resource":
        return _member(value, "resource", _located, spell)
    if kind == "tool_result" and depth < MAX_CONTENT_DEPTH:
        inner = _each(lambda each, spell: _content(each, spell, depth + 1))
        return _member(value, "content", inner, spell)
    return value


_contents: Final = _each(_content, TEXT)


def _message(value: Any, spell: Spell) -> Any:
    one = isinstance(value, dict) and isinstance(value.get("content"), dict)
    return _member(value, "content", _content if one else _contents, spell)


_messages: Final = _each(_message)


def _asked(params: Any, spell: Spell) -> Any:
    return _member(params, "messages", _messages, spell)


def _question(value: Any, spell: Spell) -> Any:
    return _member(value, "params", _asked, spell)


def _each_question(values: Any, spell: Spell) -> Any:
    if not isinstance(values, dict):
        return values
    after = {key: _question(value, spell) for key, value in values.items()}
    return values if all(after[key] is values[key] for key in values) else after


QUESTIONS: Final[tuple[tuple[str, Mapper], ...]] = (("inputRequests", _each_question),)
RESULTS: Final[dict[str, tuple[tuple[str, Mapper], ...]]] = {
    TOOLS_CALL: (("content", _contents), ("_meta", map_meta)),
    RESOURCES_READ: (("contents", _each(_located)),),
    PROMPTS_GET: (("messages", _messages),),
}
"""Where URIs stand in the result of a method."""
