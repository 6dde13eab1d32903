"""`folkmoot doctor --as`: at which step a client could not sign in to a server, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folkmoot.cli.doctor_as import CLIENTS, Walk
from folkmoot.cli.output import ExitCode
from tests.cli.served import HERE, Served
from tests.ports import free_port

KNOWN = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
RESOURCE = {"resource": f"{HERE}/mcp", "authorization_servers": [HERE]}
METADATA: dict[str, Any] = {
    "issuer": HERE,
    "authorization_endpoint": f"{HERE}/authorize",
    "token_endpoint": f"{HERE}/token",
    "registration_endpoint": f"{HERE}/register",
    "code_challenge_methods_supported": ["S256"],
}
DOCUMENTS = METADATA | {"client_id_metadata_document_supported": True}
ONLY_DOCUMENTS = DOCUMENTS | {"registration_endpoint": None}
TOKENS = {"access_token": "t", "token_type": "Bearer"}
STEPS = [
    "first request",
    "resource metadata",
    "authorization server",
    "registration",
    "authorization page",
    "tokens",
]


def challenge(metadata: str) -> Any:
    return (401, {}, {"www-authenticate": f'Bearer resource_metadata="{metadata}"'})


GOOD = {
    "/mcp": challenge(f"{HERE}{KNOWN}/mcp"),
    f"{KNOWN}/mcp": RESOURCE,
    SERVER: METADATA,
    "/register": (201, {"client_id": "c"}),
    "/authorize": "<html>",
    "/token": (400, {"error": "invalid_grant"}),
}
BACK = CLIENTS["claude-code"].redirect_uri
GONE: Any = (404, "")


def elsewhere(url: str) -> str:
    return url.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("client", ["claude-code", "codex", "inspector"])
async def test_a_server_in_order_is_well_and_nobody_consents(client):
    with Served(GOOD) as server:
        found = await Walk(CLIENTS[client], f"{server.url}/mcp").run()
    assert [(it.subject, it.level) for it in found] == [(step, "ok") for step in STEPS]
    assert server.asked == [
        f"{CLIENTS[client].first[0]} /mcp",
        f"GET {KNOWN}/mcp",
        f"GET {SERVER}",
        "POST /register",
        "GET /authorize",
        "POST /token",
    ]


@pytest.mark.parametrize(
    ("client", "rows", "step", "level", "words"),
    [
        ("codex", {"GET /mcp": (405, "")}, 0, "warning", "GET without a token is answered 405"),
        ("claude-code", {"/mcp": (404, "")}, 0, "problem", "POST without a token is answered 404"),
        ("claude-code", {"/mcp": (401, "")}, 0, "warning", "names no metadata"),
        ("claude-code", {"/mcp": {}}, 0, "ok", "is answered without a token"),
        # A rogue server has its sign-in described by another.
        ("inspector", {"/mcp": challenge("https://evil.example/m")}, 1, "problem", "evil.example"),
        ("inspector", {f"{KNOWN}/mcp": "<html>"}, 1, "problem", "cannot be read"),
        ("inspector", {f"{KNOWN}/mcp": [1]}, 1, "problem", "cannot be read"),
        ("inspector", {f"{KNOWN}/mcp": "[" * 60_000}, 1, "problem", "cannot be read"),
        ("inspector", {f"{KNOWN}/mcp": {"resource": HERE}}, 1, "problem", "cannot be read"),
        ("codex", {"/mcp": (401, ""), f"{KNOWN}/mcp": GONE}, 1, "warning", "own origin is asked"),
        ("codex", {SERVER: GONE}, 2, "problem", "publishes no metadata"),
        ("codex", {SERVER: METADATA | {"issuer": f"{HERE}/"}}, 2, "problem", "another authoriz"),
        (
            "codex",
            {SERVER: METADATA | {"code_challenge_methods_supported": ["plain"]}},
            2,
            "problem",
            "PKCE with S256",
        ),
        (
            "codex",
            {SERVER: METADATA | {"token_endpoint": "http://hub.example/token"}},
            2,
            "problem",
            "not an https URL",
        ),
        (
            "codex",
            {SERVER: METADATA | {"authorization_response_iss_parameter_supported": True}},
            2,
            "ok",
            "says iss",
        ),
        ("codex", {"/register": (403, {"error": "access_denied"})}, 3, "problem", "access_denied"),
        (
            "codex",
            {SERVER: METADATA | {"registration_endpoint": None}},
            3,
            "problem",
            "registers nobody",
        ),
        ("codex", {SERVER: DOCUMENTS}, 3, "ok", "https://chatgpt.com/oauth/codex/client.json"),
        ("inspector", {SERVER: ONLY_DOCUMENTS}, 3, "warning", "only by the URL of a document"),
        ("claude-code", {"/authorize": (500, "")}, 4, "problem", "It refuses the request: 500"),
        (
            "claude-code",
            {"/authorize": (302, "", {"location": f"{BACK}?error=invalid_scope"})},
            4,
            "problem",
            "It refuses the request: invalid_scope",
        ),
        (
            "claude-code",
            {"/authorize": (302, "", {"location": f"{BACK}?code=secret"})},
            4,
            "warning",
            "it gives a code at once",
        ),
        ("claude-code", {"/token": TOKENS}, 5, "problem", "answered with tokens"),
        ("claude-code", {"/token": (500, "<html>")}, 5, "problem", "no error of OAuth"),
        (
            "claude-code",
            {SERVER: ONLY_DOCUMENTS, "/token": (401, {"error": "invalid_client"})},
            5,
            "problem",
            "cannot fetch https://claude.ai/oauth/claude-code-client-metadata",
        ),
    ],
)
async def test_the_step_that_fails_is_named_and_ends_the_walk(client, rows, step, level, words):
    with Served(GOOD | rows) as server:
        found = await Walk(CLIENTS[client], f"{server.url}/mcp").run()
    [finding] = [it for it in found if words in it.text and it.subject == STEPS[step]]
    assert finding.level == level
    assert "secret" not in str(found)
    assert level == "ok" or finding.advice
    assert level != "problem" or found[-1] is finding


@pytest.mark.parametrize(
    ("client", "level", "last"),
    [
        ("claude-code", "problem", "resource metadata"),
        ("inspector", "problem", "resource metadata"),
        ("codex", "warning", "tokens"),
    ],
)
async def test_localhost_for_127_0_0_1_is_refused_by_clients_that_compare(client, level, last):
    with Served(GOOD) as server:
        server.rows = {
            **GOOD,
            "/mcp": challenge(f"{elsewhere(server.url)}{KNOWN}/mcp"),
            f"{KNOWN}/mcp": {"resource": f"{server.url}/mcp", "authorization_servers": [HERE]},
        }
        found = await Walk(CLIENTS[client], f"{elsewhere(server.url)}/mcp").run()
    [finding] = [it for it in found if "they name the server" in it.text]
    assert (finding.subject, finding.level, found[-1].subject) == (STEPS[1], level, last)
    assert "that address" in finding.advice


async def test_no_client_sends_tokens_to_another_machine_in_the_clear():
    [finding] = await Walk(CLIENTS["codex"], "http://10.0.0.1/mcp").run()
    assert (finding.subject, finding.level) == ("address", "problem")


async def test_a_server_without_sign_in_is_well():
    with Served({"/mcp": {}}) as server:
        found = await Walk(CLIENTS["claude-code"], f"{server.url}/mcp").run()
    assert [(it.subject, it.level) for it in found] == [("first request", "ok"), ("sign-in", "ok")]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1/mcp", "from the internet by https alone"),
        ("https://127.0.0.1/mcp", "not one of the public internet"),
        ("https://10.0.0.1/mcp", "not one of the public internet"),
    ],
)
async def test_chatgpt_needs_a_public_address_with_tls(url, words):
    [finding] = await Walk(CLIENTS["chatgpt"], url).run()
    assert (finding.subject, finding.level, words in finding.text) == ("address", "problem", True)
    assert "public" in finding.advice


@pytest.mark.parametrize(
    ("variables", "client", "code", "told"),
    [
        ({}, "claude-code", 0, "ok       first request         POST is answered without a token"),
        ({}, "codex", 0, "ok       first request         GET is answered 401, and names http"),
        ({"FOLKMOOT_REGISTRATION": "invite"}, "inspector", 0, "POST is answered 401"),
        ({"FOLKMOOT_SIGN_IN_CHALLENGE": "calls"}, "inspector", 0, "POST is answered without"),
        (
            {"FOLKMOOT_PUBLIC_URL": "https://hub.example"},
            "claude-code",
            1,
            "problem  resource metadata",
        ),
        ({}, "chatgpt", 1, "problem  address  ChatGPT connects from the internet"),
    ],
)
def test_a_hub_is_walked_to(cli, start_hub, variables, client, code, told):
    hub = start_hub(FOLKMOOT_RATE_LIMITS="off", **variables)
    ran = cli("doctor", "--as", client, f"{hub.url}/mcp")
    assert (ran.code, ran.err, told in ran.out) == (code, "", True), ran
    assert code or "a made-up code is refused, as it should be\n\nNo problems found.\n" in ran.out


def test_where_nothing_listens_is_said_to_programs_too(cli):
    url = f"http://127.0.0.1:{free_port()}/mcp"
    ran = cli("doctor", "--as", "codex", url, "--json")
    told = json.loads(ran.out)
    [finding] = told["findings"]
    assert (ran.code, told["ok"], finding["subject"]) == (ExitCode.FAILED, False, "first request")
    assert "cannot be reached" in finding["text"]
    for wrong in (["--as", "codex"], [url], ["--as", "codex", url, "--port", "1"]):
        cli.fails("doctor", *wrong, told="--as CLIENT goes with URL", code=ExitCode.USAGE)
    told = "must be claude-code, codex, chatgpt or inspector, not 'cursor'"
    cli.fails("doctor", "--as", "cursor", url, told=told, code=ExitCode.USAGE)
