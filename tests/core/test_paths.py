"""Paths in constraints: where a value leads, however it is spelled."""

from __future__ import annotations

import posixpath
import unicodedata
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, covers
from folkmoot.core.constraint import Constraint, loose_paths
from folkmoot.core.kinds import parse
from folkmoot.core.limits import MAX_PATH
from folkmoot.core.paths import Folder

PIECES = st.sampled_from(
    [
        *("notes", "secret", "a", "/", "//", ".", "..", "../", "/..", "\\", "..\\", "%2e"),
        *("%2F", "%252e", "%5C", "~", ";", "..;", "%", "%00", "\xe9", ":", "C:"),
        *("file:", "file://", "localhost", "?", "\uff0e", "\u2025", "\u2026", "\uff0f"),
        *("\uff05", "\u200b", "\ufe0f"),
        *(" ", ". .", "\u00a0"),
    ]
)
NOTES = {"under": "notes/"}
PATHS = st.lists(PIECES, max_size=8).map("".join)


# Names that some server may read as the folder above.
DOTS = (
    *(". .", ".. ", " ..", "..\u00a0", ".. .", " ", "..?x", "..#", "..:x", "..+", "..\u2065"),
    *("...", "\u200b", ";x", "\uff0e\uff0e", "\u2025", "\u2026", ".\u200b.", "..\u200b"),
    *("\u202e..", "..\ufe0f", "\u3164..", "%E2%80%A5", "%EF%BC%8E.", "%2e%20%2e"),
    *("a\uff0f..\uff0f..", "a\uff3c..", "\uff052e\uff052e"),
)


@pytest.mark.parametrize(
    ("folder", "holds", "values"),
    [
        (
            "notes/",
            True,
            [
                *("notes/a", "notes", "notes/a/../b", "notes/50%.txt", "notes/a%20b"),
                *("notes/naïve file.txt", "notes/…and more", "notes/.hidden/..a"),
                "notes/\uff46\uff55\uff4c\uff4c/👨\u200d👩\u200d👧.txt",
            ],
        ),
        ("notes", True, ["notes/a"]),
        ("./notes/", True, ["notes//a/./b"]),
        ("notes/", False, ["notebook/a", "Notes/a", "other/a", "https://example.com/notes/a"]),
        (
            "notes/",
            None,
            [
                *("notes/../other/a", "notes/../../etc/passwd", "../notes/a"),
                *("notes/%2e%2e/%2e%2e/etc/passwd", "notes/%252e%252e/other"),
                *("notes/%25252525252e/a", "notes/%ff", "notes/..\\..\\etc", "notes\\a"),
                *("notes/..;/a", "notes/.;x/a", "notes/a\x00.txt", "notes/a%00.txt", "notes/a\nb"),
                *("/srv/notes/a", "~/notes/a", "C:/notes/a", "//notes/a", ""),
                *("notes/" + "a" * MAX_PATH, "x://../../etc/passwd", "notes./a", "\uff4eotes/a"),
                "no\u200btes /a",
            ],
        ),
        ("notes/secret", True, ["notes//secret"]),
        ("notes/secret", None, ["notes/%73ecret"]),
        (".", True, ["anything/at/all"]),
        (".", None, ["../up"]),
        ("/", True, ["/etc/passwd"]),
        ("/", None, ["etc/passwd"]),
        (
            "/srv/notes",
            True,
            [
                *("/srv/notes/a", "/srv/./notes//a", "file:///srv/notes/a"),
                *("FILE://localhost/srv/notes/a", "file:/srv/notes/a"),
            ],
        ),
        (
            "/srv/notes",
            None,
            [
                *("/srv/notes/../../etc", "/../srv/notes", "notes/a", "file:srv/notes/a"),
                *("file://elsewhere/srv/notes/a", "file:///srv/notes/a?x", "file://localhost"),
            ],
        ),
        ("/srv/notes", False, ["/etc/passwd"]),
        ("file:///srv/notes/", True, ["/srv/notes/a"]),
        ("file:///srv/notes/", None, ["file:///srv/notes/%2e%2e/a"]),
        (
            "https://example.com/docs/",
            True,
            ["https://example.com/docs/a?b=../c", "HTTPS://EXAMPLE.com/docs/a"],
        ),
        (
            "https://example.com/docs/",
            None,
            [
                *("https://example.com/docs/../a", "https://example.com:8443/docs/"),
                *("http://example.com/docs/", "https://me@example.com./docs/", "docs/a"),
            ],
        ),
        (
            "https://example.com/docs/",
            False,
            [
                *("https://example.com/other", "https://example.org/docs/"),
                "https://example.com@evil.org/docs/",
            ],
        ),
        ("files://notes/", True, ["files://notes/a", "FILES://notes/a"]),
        ("files://notes/", None, ["files://Notes/a", "files://notes/../other"]),
        ("files://notes/", False, ["files://other/a"]),
        ("files://file///srv/notes", True, ["files://file///srv/notes/a"]),
        ("notes²/", True, ["notes²/a"]),
        ("notes/", None, [f"notes/{dots}/secret" for dots in DOTS]),
    ],
)
def test_a_path_is_in_a_folder_where_it_leads_there(folder, holds, values):
    # An allow takes what is certain, and a deny whatever is not certain to be elsewhere.
    constraint = Constraint({"path": {"under": folder}})
    for value in values:
        assert Folder(folder).holds(value) is holds, value
        assert constraint.matches({"path": value}) is (holds is True), value
        assert constraint.matches({"path": value}, if_unclear=True) is (holds is not False), value


@pytest.mark.parametrize(
    "folder",
    [
        *("", "notes/*", "../up", "a/../b", "a%2Fb", "a\\b", "~/notes", "C:/notes", "//host/a"),
        *("a\nb", "https://example.com/a?b", "file:notes", "file://elsewhere/a"),
    ],
)
def test_a_folder_is_written_plainly(folder):
    for under in (folder, ["notes/", folder]):
        with pytest.raises(e.ConstraintSyntax, match="one folder"):
            Constraint({"path": {"under": under}})


@pytest.mark.parametrize(
    ("allows", "denies", "values"),
    [
        (True, True, [["notes/a", "drafts/b"]]),
        (False, False, [["other/a", "other/b"], []]),
        (False, True, [["notes/a", "other/b"], ["notes/a", 1], ["other", ["notes"]]]),
        (False, True, [None, 1, {"under": "notes/"}]),
    ],
)
def test_a_list_of_paths_and_what_is_no_path(allows, denies, values):
    constraint = Constraint({"paths": {"under": ["notes/", "drafts/"]}})
    for value in values:
        assert constraint.matches({"paths": value}) is allows
        assert constraint.matches({"paths": value}, if_unclear=True) is denies
    assert not constraint.matches({}, if_unclear=True)


def test_an_object_of_more_members_is_read_member_by_member():
    for source in ({"a": {"under": 1}}, {"a": {"under": "x", "b": 1}}, {"a": {"under": []}}):
        assert Constraint(source).matches({"a": {"under": 1}}) is (source["a"]["under"] == 1)


@pytest.mark.parametrize(
    ("wide", "wanted", "asked"),
    [
        (NOTES, True, [NOTES, {"under": "notes/a"}, "notes/a", ["notes/a", {"under": "notes/b"}]]),
        (NOTES, False, [{"under": ["notes/a", "drafts/"]}, "notes/*", "notes/../a", 1]),
        (NOTES, False, [{"other": "notes/a"}]),
        ({"under": "notes/a"}, False, [NOTES]),
        ({"under": ["notes/", "drafts/"]}, True, [{"under": ["drafts/x", "notes/y"]}]),
        ("*", False, [NOTES]),
        ({"other": 1}, False, [NOTES]),
    ],
)
def test_a_folder_covers_what_is_in_it(wide, wanted, asked):
    def reading(path: object) -> dict[str, Any]:
        return {"kind": "mcp.request.tools/call:read", "payload": {"path": path}}

    for narrow in asked:
        assert covers(reading(wide), reading(narrow)) is wanted, narrow
    assert covers(reading(wide), reading(wide))


def trimmed(value: str, space: str = " ") -> str:
    """A path as a server reads it that normalises Unicode and trims names."""
    plain = unicodedata.normalize("NFKC", value.replace("\ufe0f", "").replace("\u200b", ""))
    names = plain.replace("\\", "/").replace(" ", space).split("/")
    return "/".join(name.strip() for name in names)


@given(PATHS)
def test_nothing_that_is_allowed_escapes_its_folder(value):
    if Folder("notes/").holds(value) is not True:
        return
    read = value
    for _ in range(6):
        for reading in (read, read.replace("\\", "/"), trimmed(read), trimmed(read, "")):
            normal = posixpath.normpath(reading)
            assert normal == "notes" or normal.startswith("notes/"), value
            assert "\x00" not in reading
        read = unquote(read)


@given(PATHS, st.sampled_from(["notes/", "/srv", "https://a.example/b"]))
def test_no_spelling_of_something_denied_is_taken_for_something_else(value, folder):
    denied = Folder(folder)
    inside = f"{folder.rstrip('/')}/{value}"
    if posixpath.normpath(inside).startswith(posixpath.normpath(folder)):
        assert denied.holds(inside) is not False
        assert denied.holds(quote(inside, safe="/:")) is not False


@given(PATHS)
def test_a_place_is_the_same_when_it_is_written_plainly(value):
    try:
        once = Folder(value).place
    except e.ConstraintSyntax:
        return
    if "://" in once.anchor or once.climbs:
        return
    plain = once.anchor + "/".join(once.names)
    if plain:
        assert Folder(plain).place == once
        assert Folder(plain).holds(value) is True


def test_rights_ask_where_a_path_leads():
    def call(path: str) -> dict[str, Any]:
        return {"params": {"arguments": {"path": path}}}

    kind = "mcp.request.tools/call:files:read_file"
    rights = Rights(
        [
            {"kind": kind, "payload": call({"under": "notes/"})},  # type: ignore[arg-type]
            {"kind": f"!{kind}", "payload": call({"under": "notes/secret"})},  # type: ignore[arg-type]
        ]
    )
    assert rights.has_denies
    assert rights.may_deny(parse(kind))
    assert not rights.may_deny(parse("chat.message"))
    assert not Rights([kind]).has_denies
    assert not Rights([kind]).may_deny(parse(kind))
    for path, allowed in {
        "notes/a": True,
        "notes//b": True,
        "notes/../../etc/passwd": False,
        "notes/secret/1": False,
        "notes//secret": False,
        "notes/./secret/1": False,
        "notes/a/../secret": False,
    }.items():
        assert rights.allows(parse(kind), call(path)) is allowed, path


@pytest.mark.parametrize(
    ("source", "members"),
    [
        ({"params": {"arguments": {"path": "notes/*"}}}, ["path"]),
        ({"params": {"arguments": {"source_path": ["a", "b/*"]}}}, ["source_path"]),
        ({"a": {"targetDir": "x*"}, "b": [{"uri": "x://*"}]}, ["targetDir", "uri"]),
        ({"URL": "https://x/*", "a": {"URL": "*y"}}, ["URL"]),
        ({"path": "notes/a", "file": {"under": "notes/"}, "uri": "*"}, []),
        ({"profile": "a*", "name": "read_*", "": "x*"}, []),
    ],
)
def test_paths_that_are_compared_as_text_are_found(source, members):
    assert loose_paths(source) == members
