"""URIs that look harmless to a right and are not to a server."""

from __future__ import annotations

import pytest

from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.gateway.mapping import has_other_spelling, hidden_deny


@pytest.mark.parametrize(
    "uri",
    [
        "files://file///pub/../etc",
        "files://file///pub/..%2fetc",
        "files://file///pub/..%5Cetc",
        "files://file///pub/..\\etc",
        "files://file///pub/%2e%2e/etc",
        "files://file///pub/%252e%252e/etc",
        "files://file///pub/..%252Fetc",
        "files://file///pub/..;/etc",
        "files://file///pub/%25252525252e",
        "files://file///pub%2Fsecret",
        "files://file///pub//secret",
        "files://file////pub/secret",
        "files://file//localhost/pub",
        "files://file/:/pub",
        "files://file///pub?x",
        "files://file///pub#x",
        "files://FILE///pub",
        "files://notes/a/./b",
        "files://notes/%61",
    ],
)
def test_what_a_server_could_take_for_another_has_another_spelling(uri):
    assert has_other_spelling(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "files://file///pub/a",
        "files://file///pub/a%20b%C3%A9",
        "files://file///C:/a",
        "files://file//server/share/a",
        "files://file///pub/.hidden/...",
        "files://notes//a%2Fb",
        "files://notes/100%25",
        "files://fetch//https://example.org/a?b=c",
        "files://urn/:isbn:1",
        "files://-/notes/a",
    ],
)
def test_what_means_only_itself_has_one_spelling(uri):
    assert not has_other_spelling(uri)


SECRETS = "resources/*:files://notes/secret/*"
SECRET = "resources/*:files://x/notes/secret*"
DIARY = "resources/read:files://x/diary"


@pytest.mark.parametrize(
    ("deny", "uri", "denied"),
    [
        # for what a URI means with its escapes read
        (SECRETS, "files://notes/secret%2Fa", True),
        (SECRETS, "files://notes/se%63ret/a", True),
        (SECRETS, "files://notes/%2573ecret/a", True),
        (SECRETS, "files://notes/a%0Ab", True),
        (SECRETS, "files://notes/open%2Fa", False),
        # with doubled slashes
        (SECRET, "files://x/notes//secret1", True),
        (SECRET, "files://x//notes/secret1", True),
        (SECRET, "files://x/notes///secret1", True),
        (SECRET, "files://x/notes%2F%2Fsecret1", True),
        (SECRET, "files://x/notes/%2Fsecret1", True),
        (SECRET, "files://x\\notes\\secret1", True),
        (SECRET, "files:///x/notes/secret1", True),
        (SECRET, "files://x/notes/open1", False),
        (SECRET, "files://x//notes//open1", False),
        (SECRET, "files://x/notes/open1?of=notes/secret1", False),
        # of one resource, whatever follows its path
        (DIARY, "files://x/diary/", True),
        (DIARY, "files://x/diary?", True),
        (DIARY, "files://x/diary#top", True),
        (DIARY, "files://x/diary//?a=b", True),
    ],
)
def test_a_deny_holds_for_what_a_uri_means(deny, uri, denied):
    rights = Rights(["mcp.*", f"!mcp.request.{deny}"])
    kind = parse(f"mcp.request.resources/read:{uri}")
    assert rights.allows(kind)
    assert (hidden_deny(rights, kind) is not None) is denied
