"""`folkmoot login` and `folkmoot logout`: this computer as an app of an account, by device grant.

The tokens are kept with the saved accounts. Each access token lasts an hour, and every refresh
token is good for one renewal: so only who holds the lock of that file renews, and everyone else
finds there what came of it.
"""

from __future__ import annotations

import socket
import time
import webbrowser
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from folkmoot.cli.account import named, show_default
from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.credentials import (
    AsOption,
    Keyring,
    Login,
    UrlOption,
    changing,
    checked_url,
    credentials_path,
    fits,
    hub_at,
    read_keyring,
)
from folkmoot.cli.limits import MAX_REASON
from folkmoot.cli.options import argument, flag
from folkmoot.cli.output import say
from folkmoot.client.http import JSON
from folkmoot.client.hub import Hub
from folkmoot.client.limits import ANSWER_SECONDS
from folkmoot.client.transports import FIRST_REFUSAL
from folkmoot.core import errors as e
from folkmoot.core.oauth.clients import DEVICE_GRANT, REFRESH_GRANT
from folkmoot.core.oauth.scopes import GRANTABLE
from folkmoot.core.oauth.tokens import FORM

T = TypeVar("T")

EARLY_SECONDS: Final = 300
"""A token that ends within this time is renewed before it is used."""
MAX_PAUSE_SECONDS: Final = 60
SLOWER_SECONDS: Final = 5
ENDED: Final = frozenset(("invalid_grant", "invalid_client"))
WAITING: Final = frozenset(("authorization_pending", "slow_down", "expired_token"))

HubArgument = Annotated[str, argument("URL", "The hub.", checked_url)]
NoBrowserOption = Annotated[bool, flag("--no-browser", "Only print the link.")]


class Registered(Struct, frozen=True):
    """What a hub calls a program."""

    client_id: str


class Codes(Struct, frozen=True):
    """What a hub gives a program whose person decides in a browser."""

    device_code: str
    user_code: str
    verification_uri_complete: str
    expires_in: int
    interval: int = 5

    # The codes, and the tokens below, are secrets.
    __repr__ = object.__repr__


class Pair(Struct, frozen=True):
    """The tokens of an app."""

    access_token: str
    refresh_token: str
    expires_in: int

    __repr__ = object.__repr__


@with_json_option
def login(url: HubArgument, *, no_browser: NoBrowserOption = False) -> Output:
    """Sign this computer in to a hub, in a browser.

    Prints a link and a code, and waits. Open the link on any device, check that it shows the same
    code, and choose what this computer can do. It stays signed in until 'folkmoot logout', or until
    you end it under Account in the hub's pages.
    """
    with changing():
        # Before anybody consents: a file that cannot be written would lose what they allow.
        pass
    hub = Hub(url)
    told = {
        "client_name": f"Command line on {socket.gethostname()}",
        "grant_types": [DEVICE_GRANT, REFRESH_GRANT],
        "token_endpoint_auth_method": "none",
    }
    try:
        answer = posted(hub, "/register", JSON, msgspec.json.encode(told))
        client_id = read(hub, Registered, *answer).client_id
    except (e.AnswerInvalid, e.CommandFailed):
        raise e.CommandFailed(
            f"{url}: nobody can sign in there. Is it the hub's address?"
        ) from None
    given = {"client_id": client_id, "scope": " ".join(GRANTABLE)}
    codes = read(hub, Codes, *asked(hub, "/device_authorization", **given))
    link = codes.verification_uri_complete
    say(f"Open {link}", err=True)
    say(f"and check that it shows the code {codes.user_code}.", err=True)
    if not no_browser and link.startswith(("https://", "http://")):
        webbrowser.open(link)
    say("Waiting until you allow it. Ctrl-C gives up.", err=True)
    made = saved(hub, client_id, waited(hub, client_id, codes))
    said = f"Signed in as {made.name}. Saved in {credentials_path()}, which only you can read."
    return Output(named(made), said, lambda: show_default(read_keyring(), made))


def asked(hub: Hub, path: str, **members: str) -> tuple[int, dict[str, Any]]:
    """What an endpoint of OAuth answers to a form."""
    return posted(hub, path, FORM, urlencode(members).encode())


def posted(hub: Hub, path: str, kind: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """What an endpoint of OAuth answers."""
    headers = {"content-type": kind, "accept": JSON}
    status, answer = hub.exchange("POST", path, body, headers, ANSWER_SECONDS)
    return status, answer if isinstance(answer, dict) else {}


def read(hub: Hub, kind: type[T], status: int, answer: dict[str, Any]) -> T:
    """What an answer of OAuth says; a refusal is an error."""
    try:
        if status < FIRST_REFUSAL:
            return msgspec.convert(answer, kind)
    except msgspec.ValidationError:
        # What is wrong is not told: it could quote a token.
        raise hub.not_understood() from None
    words = str(answer.get("error_description") or "The hub refuses to sign you in now.")
    raise e.CommandFailed(f"{hub.url}: {words[:MAX_REASON]}")


def waited(hub: Hub, client_id: str, codes: Codes) -> Pair:
    """The tokens, once somebody has allowed it."""
    pause, until = codes.interval, time.monotonic() + codes.expires_in
    given = {"client_id": client_id, "device_code": codes.device_code, "grant_type": DEVICE_GRANT}
    while True:
        status, answer = asked(hub, "/token", **given)
        error = answer.get("error")
        if error == "access_denied":
            raise e.CommandFailed("It was not allowed. Nothing was saved.")
        if error not in WAITING:
            return read(hub, Pair, status, answer)
        if error == "expired_token" or time.monotonic() > until:
            raise e.CommandFailed("Nobody allowed it in time. Run 'folkmoot login' again.")
        pause += SLOWER_SECONDS * (error == "slow_down")
        time.sleep(min(pause, MAX_PAUSE_SECONDS))


def saved(hub: Hub, client_id: str, pair: Pair) -> Login:
    """Save the account that allowed it; what cannot be saved is ended."""
    try:
        handle = hub_at(hub.url, pair.access_token).get_account().handle
        made = signed(Login(hub.url, handle, "", client_id=client_id), pair)
        with changing() as keyring:
            known = same(keyring, made)
            if known is not None and known.client_id:
                asked(hub, "/revoke", client_id=known.client_id, token=known.refresh_token)
            elif known is not None:
                raise e.CommandFailed(
                    f"{known.name} is saved here with a token, which is kept. To sign in instead, "
                    f"run 'folkmoot account forget {handle}' first."
                )
            keyring.put(made)
    except e.FolkmootError:
        asked(hub, "/revoke", client_id=client_id, token=pair.refresh_token)
        raise
    return made


def signed(login: Login, pair: Pair) -> Login:
    """A saved account with its next tokens."""
    return msgspec.structs.replace(
        login,
        token=pair.access_token,
        refresh_token=pair.refresh_token,
        expires_at=int(time.time()) + pair.expires_in,
    )


def same(keyring: Keyring, login: Login) -> Login | None:
    """What is saved of an account."""
    return next((it for it in keyring.accounts if fits(it, login.hub, login.handle)), None)


def is_good(login: Login, refused: str) -> bool:
    """Whether a saved account's token can be used for some minutes more."""
    return login.token != refused and time.time() < login.expires_at - EARLY_SECONDS


def renewed(login: Login, refused: str = "") -> Login:
    """A saved account with a token that is good for some minutes, and is not the `refused` one."""
    if is_good(login, refused):
        return login
    over = e.NotSignedIn(
        f"{login.name} is no longer signed in here. 'folkmoot login {login.hub}' signs in again."
    )
    with changing() as keyring:
        known = same(keyring, login)
        if known is None or not known.client_id:
            raise over
        if is_good(known, refused):
            # Another command has renewed it meanwhile.
            return known
        hub, given = Hub(known.hub), {"client_id": known.client_id}
        given |= {"grant_type": REFRESH_GRANT, "refresh_token": known.refresh_token}
        status, answer = asked(hub, "/token", **given)
        if answer.get("error") in ENDED:
            raise over
        made = signed(known, read(hub, Pair, status, answer))
        keyring.put(made)
    return made


class LoginTokens:
    """Gives a program that stays the token of each moment."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def token(self, refused: str = "") -> str:
        """The token to show; another than the one that the hub `refused`."""
        if not is_good(self._login, refused):
            import asyncio

            self._login = await asyncio.to_thread(renewed, self._login, refused)
        return self._login.token

    def check_scope(self, challenges: Sequence[str]) -> None:
        """Raise nothing: the hub says in its results what a token lacks."""


@with_json_option
def logout(url: UrlOption = None, handle: AsOption = None) -> Output:
    """Sign this computer out of a hub.

    Ends what 'folkmoot login' began: whatever uses it here is disconnected at once. If the hub does
    not answer, you stay signed in; 'folkmoot account forget' removes the account from this computer
    alone.
    """
    with changing() as keyring:
        login = keyring.find(url, handle)
        if not login.client_id:
            raise e.CommandFailed(
                f"{login.name} is saved here with a token. 'folkmoot account forget "
                f"{login.handle}' removes it from this computer, and 'folkmoot tokens revoke' ends "
                "it."
            )
        asked(Hub(login.hub), "/revoke", client_id=login.client_id, token=login.refresh_token)
        keyring.drop(login)
    return Output(named(login), f"Signed out of {login.name}.")
