from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
import shlex
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from starlette.requests import Request

from folkmoot.web.clients import CLIENTS
from folkmoot.web.pages import APP, CONSOLE, Pages
from tests.harness import ask, run, serving

HOSTILE = "https://x.example/\"><script>alert(1)</script>'&$style"


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "input"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def landing(public_url: str = "", host: str = "localhost:8420", *, metrics: bool = True) -> str:
    pages = Pages(version="1.2.3", public_url=public_url, shows_metrics=lambda _: metrics)
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", host.encode("latin-1"))],
    }
    return bytes(run(pages.landing(Request(scope))).body).decode()


def pasted(page: str, label: str) -> str:
    """What the page offers to copy under a label."""
    found = re.search(rf'<pre[^>]*aria-label="{label}"><code>(.*?)</code>', page, re.DOTALL)
    assert found
    return html.unescape(found[1])


def snippet(page: str) -> object:
    return json.loads(pasted(page, "Settings for any other client"))


@pytest.mark.requirement("web.landing")
async def test_whoever_opens_the_hub_gets_a_page_with_name_version_and_how_to_connect():
    async with serving() as hub:
        answer = await ask(hub.port)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "Folkmoot" in Page(answer.text).texts["title"]
        assert "Folkmoot is one self-hosted place where people" in answer.text
        assert "This hub is running, version 0" in answer.text
        for words in ("Register me as @ada", "Write to @bob", "Any mail?"):
            assert words in Page(answer.text).texts["q"]
        at = {"url": f"http://localhost:{hub.port}/mcp"}
        assert snippet(answer.text) == {"mcpServers": {"folkmoot": at}}


@pytest.mark.parametrize(
    ("public_url", "host", "url"),
    [
        ("", "moot.local:9000", "http://moot.local:9000/mcp"),
        ("https://moot.example/hub/", "localhost", "https://moot.example/hub/mcp"),
    ],
)
def test_the_snippet_has_the_url_the_reader_came_by_or_the_public_one(public_url, host, url):
    assert snippet(landing(public_url, host)) == {"mcpServers": {"folkmoot": {"url": url}}}


@pytest.mark.parametrize(
    ("public_url", "host"), [(HOSTILE, "localhost"), ("", 'x"><script>alert(1)</script>')]
)
def test_nothing_that_is_put_in_becomes_markup(public_url, host):
    page = Page(landing(public_url, host))
    assert len(page.all("script")) == 1
    assert "alert" not in page.texts["script"]
    assert "alert(1)" in page.texts["code"]
    assert len(page.all("style")) == 1


def test_an_error_page_escapes_its_sentence():
    pages = Pages(version="0", public_url="")
    page = Page(bytes(pages.error_page(404, "Not <b>Found", "<script>x</script>").body).decode())
    assert page.all("b") == []
    assert len(page.all("script")) == 1


def test_nothing_is_fetched_from_elsewhere():
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!/|data:|#)|@import|url\(""", landing())


async def test_the_policy_allows_exactly_the_style_and_script_of_the_page():
    async with serving() as hub:
        answer = await ask(hub.port)
        text, policy = answer.text, answer.headers["content-security-policy"]
    page = Page(text)
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.texts[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"\son\w+=|\sstyle=", text)


def test_the_page_is_a_page_for_everyone():
    page = Page(landing())
    assert page.all("html") == [{"lang": "en"}]
    for landmark in ("header", "main", "footer", "h1", "title"):
        assert len(page.all(landmark)) == 1
    assert "width=device-width" in str(page.all("meta"))
    sections = {section["aria-labelledby"] for section in page.all("section")}
    assert sections == {heading["id"] for heading in page.all("h2")}
    assert all(svg["aria-hidden"] == "true" for svg in page.all("svg"))


def test_the_links_lead_where_something_answers():
    links = {a["href"] for a in Page(landing()).all("a")}
    assert links == {
        *("/", "/inbox", "/docs", "/health", "/health/ready", "/metrics", "/v1/openapi.json"),
        *("/docs/tutorials/person", "/sign-in?next=/"),
    }
    assert "/metrics" not in landing(metrics=False)


@pytest.mark.parametrize(
    ("public_url", "base", "socket"),
    [
        ("", "http://localhost:8420", "ws://localhost:8420"),
        ("https://moot.example/hub/", "https://moot.example/hub", "wss://moot.example/hub"),
    ],
)
def test_the_page_tells_how_people_and_programs_come_into_rooms(public_url, base, socket):
    page = landing(public_url)
    assert pasted(page, "Commands for rooms").splitlines() == [
        "folkmoot room create square",
        "folkmoot room join square",
    ]
    for door in (f"{base}/mcp", f"{socket}/ws?room=…", f"{base}/v1/rooms"):
        assert f"<div><code>{door}</code><span>" in page


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "sheet"])
def test_text_and_controls_stand_out_from_their_ground(scheme, ground):
    style = files("folkmoot.web").joinpath("built", "tokens.css").read_text()
    colours = {
        name: both[scheme]
        for name, *both in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", style)
    }
    texts = ("ink", "soft", "moss", "ember", "danger", "warning", "info")
    for name, least in (*((text, 4.5) for text in texts), ("edge", 3.0)):
        both = luminance(colours[name]), luminance(colours[ground])
        assert (max(both) + 0.05) / (min(both) + 0.05) >= least, name
    for name in ("moss", "danger", "warning", "info"):
        both = luminance(colours["ink"]), luminance(colours[f"{name}-wash"])
        assert (max(both) + 0.05) / (min(both) + 0.05) >= 4.5, name


ENDPOINT = "http://localhost:8420/mcp"


@pytest.mark.requirement("web.landing-instructions")
def test_each_well_known_client_is_told_exactly_what_it_takes():
    page = landing()
    by_url = {"folkmoot": {"url": ENDPOINT}}
    by_type = {"folkmoot": {"type": "http", "url": ENDPOINT}}
    bridge = {"folkmoot": {"command": "npx", "args": ["-y", "mcp-remote", ENDPOINT]}}
    settings = {
        "Claude Desktop": {"mcpServers": bridge},
        "VS Code": {"servers": by_type},
        "Cursor": {"mcpServers": by_url},
        "any other client": {"mcpServers": by_url},
    }
    for client, wanted in settings.items():
        assert json.loads(pasted(page, f"Settings for {client}")) == wanted
    assert shlex.split(pasted(page, "Command for Claude Code")) == [
        "claude", "mcp", "add", "--scope", "user", "--transport", "http", "folkmoot", ENDPOINT,
        "claude", "mcp", "login", "folkmoot",
    ]  # fmt: skip
    assert pasted(page, "Command for Codex") == f"codex mcp add folkmoot --url {ENDPOINT}"
    *command, server = shlex.split(pasted(page, "Command for VS Code"))
    assert command == ["code", "--add-mcp"]
    assert json.loads(server) == {"name": "folkmoot", "type": "http", "url": ENDPOINT}
    assert pasted(page, "Settings for Goose").splitlines() == [
        "extensions:",
        "  folkmoot:",
        "    enabled: true",
        '    type: "streamable_http"',
        '    name: "folkmoot"',
        '    description: "Mail between people, through their assistants"',
        f'    uri: "{ENDPOINT}"',
        "    timeout: 300",
    ]


def test_a_hub_without_tls_on_a_network_is_said_to_be_one():
    told = json.loads(pasted(landing(host="moot.local:80"), "Settings for Claude Desktop"))
    assert told["mcpServers"]["folkmoot"]["args"][-1] == "--allow-http"
    told = json.loads(pasted(landing("https://moot.example"), "Settings for Claude Desktop"))
    assert told["mcpServers"]["folkmoot"]["args"][-1] == "https://moot.example/mcp"


@pytest.mark.requirement("web.landing-instructions")
def test_the_page_is_whole_without_scripts():
    page = Page(text := landing())
    radios, labels = page.all("input"), page.all("label")
    assert [radio["id"] for radio in radios] == [label["for"] for label in labels]
    assert sum("checked" in radio for radio in radios) == 1
    assert {radio["type"] for radio in radios} == {"radio"}
    assert len(radios) == len(CLIENTS)
    # The script only adds buttons: nothing is there for it to fill, and none of them without it.
    assert page.all("button") == []
    assert "hidden" not in text.replace("aria-hidden", "").split("</style>")[1]
    assert "input:checked + label + .panel" in page.texts["style"]


@pytest.mark.requirement("web.page")
@pytest.mark.parametrize(
    "paths",
    [APP, [f"/{name}{rest}" for name in CONSOLE for rest in ("", "/", "/a", "/a/b%2Fc")]],
    ids=["app", "console"],
)
async def test_everyone_gets_the_same_page_which_runs_nothing_but_its_own_script(paths):
    async with serving() as hub:
        plain = [await ask(hub.port, path) for path in paths]
        zipped = await ask(hub.port, paths[0], headers={"accept-encoding": "gzip"})
    assert {answer.status for answer in plain} == {200}
    assert len({answer.body for answer in plain}) == 1
    assert gzip.decompress(zipped.body) == plain[0].body
    assert plain[0].headers["cache-control"] == "no-store"
    policy = plain[0].headers["content-security-policy"]
    for tag in ("script", "style"):
        found = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", plain[0].text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert {
        *("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"),
        *("require-trusted-types-for 'script'", "trusted-types folkmoot-worker"),
    } <= set(policy.split("; "))
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["/", "/inbox", "/sign-in?next=/rooms", "/rooms/a%2Fb", "/set-up"])
async def test_a_browser_at_the_number_of_this_machine_is_sent_to_its_name(path):
    opened = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    async with serving() as hub:
        opened["host"] = f"127.0.0.1:{hub.port}"
        answer = await ask(hub.port, path, headers=opened)
        assert answer.status == 302
        assert answer.headers["location"] == f"http://localhost:{hub.port}{path}"
        # A name stays as it is; so does what programs, scripts and frames ask for.
        for headers in (
            {**opened, "host": f"localhost:{hub.port}"},
            {"host": opened["host"]},
            {**opened, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
            {**opened, "sec-fetch-dest": "iframe"},
        ):
            assert (await ask(hub.port, path, headers=headers)).status == 200
        for other in ("/mcp", "/health", "/.well-known/mmp.json", "/manifest.webmanifest"):
            assert (await ask(hub.port, other, headers=opened)).status != 302
    pages = Pages(version="1", public_url="http://127.0.0.1:8420")
    async with serving(pages=pages) as hub:
        assert (await ask(hub.port, path, headers=opened)).status == 200


async def test_the_pages_of_the_app_know_what_each_client_takes_with_a_token_and_without():
    async with serving() as hub:
        told = (
            await ask(hub.port, "/clients.json", headers={"host": f"localhost:{hub.port}"})
        ).json()
    assert [it["id"] for it in told["clients"]] == list(CLIENTS)
    for client in told["clients"]:
        endpoint = f"http://localhost:{hub.port}/mcp"
        assert all(endpoint in way["text"] and way["how"] for way in client["ways"])
        assert told["token"] not in str(client["ways"])
        # A token in an address is a last resort.
        assert all(told["token"] in way["text"] for way in client["with_token"])
        assert "?token=" not in client["with_token"][0]["text"]
