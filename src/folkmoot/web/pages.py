"""The first page, the page of an invite, and the page that says what went wrong."""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Awaitable, Callable
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from folkmoot.core.entity import Entity
from folkmoot.web.clients import CLIENTS, ways
from folkmoot.web.discovery import Discovery, Installable, Shell
from folkmoot.web.documentation import Documentation
from folkmoot.web.frame import POLICY, PageFrame, fill, ring, source
from folkmoot.web.invites import (
    HEADERS,
    INVITES,
    Invitations,
    closed_note,
    look_up,
    none_known,
    who_invites,
    words_of,
)
from folkmoot.web.limits import MAX_LANDING_PAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.datastructures import URL
    from starlette.requests import Request
    from starlette.types import Scope


DOORS = (
    ("{base}/mcp", "Mail and room tools, for any MCP client."),
    ("{socket}/ws?room=…", "A room, over a WebSocket."),
    ("{base}/v1/rooms", "Rooms over REST, without a WebSocket."),
)
"""What a program connects to, and what it finds there."""

METRICS = "/metrics"
PLACES = (
    ("/health", "Status, version and uptime."),
    ("/health/ready", "Whether the hub can read and write its database."),
    (METRICS, "Metrics for Prometheus."),
)
"""What an operator may want to open, and what it shows."""

ShowsMetrics: TypeAlias = Callable[["Scope"], bool]
"""Whether whoever makes a request may read the metrics."""


SignedIn: TypeAlias = Callable[["Scope"], Awaitable[bool]]
"""Whether a request brings the cookie of a browser session."""


Page: TypeAlias = Callable[["Request"], Awaitable[Response]]


def never(_: Scope) -> bool:
    """Nobody may read metrics where there are none."""
    return False


async def nobody(_: Scope) -> bool:
    """Nobody is signed in where there are no accounts."""
    return False


APP = ("/inbox", "/account", "/sign-in", "/set-up")
"""Where the page of one's mail and account is."""
CONSOLE = ("rooms", "decisions", "servers", "tapes", "people", "audit", "settings")
"""Where the console is, with all that is below; and at `/` for whoever is signed in."""
YOUR_NAME = "yourname"
FREE_HANDLE = f"Replace <b>@{YOUR_NAME}</b> with the handle you want."
GIVEN_HANDLE = "This invitation is only for the handle below."
"""What is said of the handle: that of most invitations is free, an operator's may be for one."""

BODIES = (
    "landing", "client", "invite", "invite_valid", "invite_other", "error",
)  # fmt: skip
WORDS = '<blockquote class="words" dir="auto">$words</blockquote>'
TABS = '<fieldset class="tabs">\n<legend>Your assistant</legend>\n$panels</fieldset>'
WAY = (
    '<p>$how</p>\n<div class="paste"><pre tabindex="0" role="region" aria-label="$label">'
    "<code>$text</code></pre></div>"
)
TOKEN = "sk_YOUR_TOKEN"  # noqa: S105 - a placeholder
"""Where a page puts the token of whoever reads it."""
ACCEPT = '<p><a class="button" href="/sign-in#invite=$code$handle">Create your account</a></p>'
BEGIN = (
    '<p><a href="/sign-in?next=/">Open Folkmoot</a> in this browser, go to <a href="/inbox">your '
    'inbox</a>, or read <a href="/docs/tutorials/person">how to begin</a>.</p>'
)
ONLY_DOCS = '<p>Read <a href="$base/docs/tutorials/person">how to begin</a>.</p>'
BELOW = "No web pages here"
NOT_BELOW = (
    "This hub is below a path of its host, and everything on one host can read what a page keeps. "
    "Its operator can give it a host name of its own."
)
"""Why a hub that a proxy has below a path serves no inbox: other programs share its origin."""
Policy: TypeAlias = Literal["open", "invite", "closed"]
OPERATORS_WORDS = (
    " The operator invites people with <code>folkmoot invite --for HANDLE</code> and creates the "
    "first account with <code>folkmoot people add HANDLE</code>.</p>"
)
REGISTRATION: dict[Policy, str] = {
    "open": "",
    "invite": "<p>Registration is by invitation. Ask someone who has an account for a "
    f"link.{OPERATORS_WORDS}",
    "closed": f"<p>Registration is closed. Only the operator can add people.{OPERATORS_WORDS}",
}
"""What the first page says of who may register."""


def _typed(commands: Iterable[Iterable[str]]) -> str:
    """Commands as they are typed, one each line."""
    return "\n".join(shlex.join(["folkmoot", *command]) for command in commands)


def _doors(base: str, socket: str) -> str:
    """What programs connect to, with the address the reader came by."""
    door = "<li><div><code>$where</code><span>$what</span></div></li>"
    rows = ((where.format(base=base, socket=socket), what) for where, what in DOORS)
    return "\n".join(fill(door, where=where, what=what) for where, what in rows)


def policy_in(page: str) -> str:
    """The policy that a built page names for itself: its script and style by hash."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    if found is None:
        raise ValueError("a built page has no policy")
    return found[1]


class Built:
    """A page that app/ builds, with the policy that it names for itself."""

    def __init__(self, name: str) -> None:
        self.plain = files("folkmoot.web").joinpath("built", name).read_bytes()
        self._zipped = gzip.compress(self.plain, mtime=0)
        self._headers = {
            "cache-control": "no-store",
            "vary": "accept-encoding",
            POLICY: f"{policy_in(self.plain.decode())}; frame-ancestors 'none'",
        }

    def answer(self, request: Request) -> Response:
        """The page, compressed if the browser accepts it."""
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return HTMLResponse(self.plain, 200, self._headers)
        return HTMLResponse(self._zipped, 200, {**self._headers, "content-encoding": "gzip"})


def at_localhost(request: Request, url: URL) -> Response:
    """Leads to the same page by the name of this machine; browsers keep the fragment."""
    path = request.scope["raw_path"].decode("latin-1")
    named = url.replace(hostname="localhost", path=path)
    return RedirectResponse(str(named), 302, {"cache-control": "no-store"})


@cache
def built(name: str) -> Built:
    """A page that app/ builds: compressed once, however many hubs a process has."""
    return Built(name)


class Pages(Entity, kw_only=True):
    """Draws every page of one hub."""

    version: str
    public_url: str
    shows_metrics: ShowsMetrics = never
    signed_in: SignedIn = nobody
    invitations: Invitations = none_known
    policy: Callable[[], Policy] = lambda: "open"

    def __post_init__(self) -> None:
        self.public_url = self.public_url.rstrip("/")
        # Strangers ask for it as often as they like, and it is the same for most.
        self._landing = lru_cache(MAX_LANDING_PAGES)(self._draw_landing)
        self._path = urlsplit(self.public_url).path
        self._frame = PageFrame(base=self._path)
        self._headers = self._frame.headers
        self._bodies = {name: source(f"{name}.html") for name in BODIES}
        self._app = built("web.html")
        self._console = built("console.html")

    def routes(self) -> list[Route]:
        """Where the pages are served, and the discovery document beside them."""
        return [
            Route("/", self._by_name(self.landing)),
            *(Route(path, self._by_name(self.app)) for path in APP),
            Route("/authorize", self.authorize),
            Route("/device", self.authorize),
            Route("/connect/{ticket}", self.authorize),
            Route("/oauth/callback", self.app),
            *(Route(f"/{name}", self._by_name(self.console)) for name in CONSOLE),
            *(Route(f"/{name}/{{rest:path}}", self._by_name(self.console)) for name in CONSOLE),
            Route("/asks", self.decisions),
            Route("/invite/{code}", self._by_name(self.invite)),
            Route("/clients.json", self.clients),
            *self._installable().routes(),
            *Documentation(self._path).routes(),
            *Discovery(public_url=self.public_url).routes(),
        ]

    def _by_name(self, page: Page) -> Page:
        """A page that a browser at 127.0.0.1 has at localhost, to sign in once, with a passkey.

        Programs that ask for it, and frames, have it where they are.
        """

        async def answer(request: Request) -> Response:
            head, url = request.headers, request.url
            opened = (head.get("sec-fetch-mode"), head.get("sec-fetch-dest"))
            if self.public_url or url.hostname != "127.0.0.1" or opened != ("navigate", "document"):
                return await page(request)
            return at_localhost(request, url)

        return answer

    def _installable(self) -> Installable:
        """The pages that a browser may keep, each with the paths it is shown for."""
        console = [path for name in CONSOLE for path in (f"/{name}", f"/{name}/*")]
        return Installable(
            (
                Shell(self._app.plain, APP[0], APP),
                Shell(self._console.plain, f"/{CONSOLE[0]}", ("/", *console)),
            )
        )

    async def app(self, request: Request) -> Response:
        """The single page of mail and account; it finds out by itself who is signed in."""
        return self._built(self._app, request)

    async def authorize(self, request: Request) -> Response:
        """The same page, where a person lets an app use their account, or signs in to a server.

        Passkeys need a name, so that whoever comes to 127.0.0.1 is sent on. The app compares what
        it is told with the address it knows, which `resource` keeps.
        """
        url = request.url
        if self.public_url or url.hostname != "127.0.0.1":
            return self._built(self._app, request)
        if url.path == "/authorize" and "resource" not in request.query_params:
            url = url.include_query_params(resource=f"{self._base(request)}/mcp")
        return at_localhost(request, url)

    async def console(self, request: Request) -> Response:
        """The console: the same page for everyone, it asks who is signed in."""
        return self._built(self._console, request)

    async def decisions(self, request: Request) -> Response:
        """Where `/asks` leads, as the page was called once."""
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{self._path}/decisions{query}", 308)

    def _built(self, page: Built, request: Request) -> Response:
        """A page of `app/`, where it can be used."""
        return self.error_page(404, BELOW, NOT_BELOW) if self._path else page.answer(request)

    async def landing(self, request: Request) -> Response:
        """MMP §9.1: what this hub is, that it runs, and how to connect.

        Whoever is signed in has the console here instead. A link on another site comes without the
        cookie, so this page leads there as well.
        """
        if not self._path and await self.signed_in(request.scope):
            return self._console.answer(request)
        page = self._landing(self._base(request), self.shows_metrics(request.scope))
        return HTMLResponse(page, 200, self._headers)

    def _draw_landing(self, base: str, shown: bool) -> bytes:  # noqa: FBT001 - it is a key
        socket = base.replace("http", "ws", 1)
        register = ["register", "ada", "--url", base]
        if self.policy() != "open":
            register += ["--invite", "CODE"]
        commands = [register, ["connect", "claude-code"]]
        places = [place for place in PLACES if shown or place[0] != METRICS]
        rooms = [["room", "create", "square"], ["room", "join", "square"]]
        body = fill(
            self._bodies["landing"],
            trusted={
                "ring": ring(17, size=5.4, ground=True),
                "begin": fill(ONLY_DOCS if self._path else BEGIN, base=self._path),
                "places": self._links(places),
                "doors": _doors(base, socket),
                "registration": REGISTRATION[self.policy()],
                "clients": self._clients(f"{base}/mcp"),
            },
            base=self._path,
            version=self.version,
            endpoint=f"{base}/mcp",
            commands=_typed(commands),
            rooms=_typed(rooms),
        )
        return self._frame.drawn("Folkmoot", body)

    def _clients(self, endpoint: str) -> str:
        """What to give each client, to choose from."""
        panels = []
        for number, client in enumerate(CLIENTS.values()):
            name = "any other client" if client.called else client.name
            shown = (
                fill(WAY, how=way.how, label=f"{way.what} for {name}", text=way.text)
                for way in ways(client, endpoint)
            )
            panels.append(
                fill(
                    self._bodies["client"],
                    trusted={"ways": "\n".join(shown), "checked": "" if number else "checked"},
                    id=client.id,
                    name=client.called or client.name,
                )
            )
        return fill(TABS, trusted={"panels": "".join(panels)})

    async def clients(self, request: Request) -> Response:
        """The same for the pages of `app/`: with and without a token, which they put in."""
        endpoint = f"{self._base(request)}/mcp"
        rows = [
            {
                "id": client.id,
                "name": client.called or client.name,
                "ways": ways(client, endpoint),
                "with_token": ways(client, endpoint, TOKEN),
            }
            for client in CLIENTS.values()
        ]
        body = msgspec.json.encode({"endpoint": endpoint, "token": TOKEN, "clients": rows})
        headers = {"cache-control": "no-store"}
        return Response(body, 200, headers, "application/json")

    async def invite(self, request: Request) -> Response:
        """MMP §9.2: whether an invite can still be used, and how."""
        code = request.path_params["code"]
        invitation = await look_up(self.invitations, code)
        invite = INVITES[invitation.state]
        if invite.advice:
            how = fill(self._bodies["invite_other"], advice=invite.advice)
            return self._framed(invite.label, invite.text, how, invite.status)
        base, words, accept = self._base(request), words_of(invitation), ""
        if invitation.opens and not self._path:
            handle = f"&handle={invitation.handle}" if invitation.handle else ""
            accept = fill(ACCEPT, code=code, handle=handle)
        name = invitation.handle or YOUR_NAME
        command = ["register", name, "--invite", f"{base}/invite/{code}"]
        how = fill(
            self._bodies["invite_valid"],
            trusted={
                "choice": GIVEN_HANDLE if invitation.handle else FREE_HANDLE,
                "words": fill(WORDS, words=words) if words else "",
                "accept": accept,
            },
            valid=invite.text,
            closed=closed_note(invitation),
            endpoint=f"{base}/mcp",
            code=code,
            handle=name,
            command=_typed([command]),
        )
        return self._framed(invite.label, who_invites(invitation), how, invite.status)

    def _framed(self, label: str, text: str, how: str, status: int) -> Response:
        body = fill(self._bodies["invite"], trusted={"how": how}, label=label, text=text)
        return self._page(f"{label} · Folkmoot", body, status, HEADERS)

    def _base(self, request: Request) -> str:
        """What the reader reached the hub at."""
        return self.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"

    def error_page(self, status: int, phrase: str, sentence: str) -> Response:
        body = fill(
            self._bodies["error"],
            status=str(status),
            phrase=phrase,
            sentence=sentence,
            base=self._path,
        )
        return self._page(f"{phrase} · Folkmoot", body, status)

    def _page(
        self, title: str, body: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        page = self._frame.drawn(title, body)
        return HTMLResponse(page, status, {**self._headers, **(headers or {})})

    def _links(self, places: Iterable[tuple[str, str]]) -> str:
        link = '<li><a href="$base$path"><code>$path</code><span>$question</span></a></li>'
        return "\n".join(
            fill(link, base=self._path, path=path, question=text) for path, text in places
        )
