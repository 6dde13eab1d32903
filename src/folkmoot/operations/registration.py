"""Register an account or recover one, and sign in the session that asks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from msgspec import Struct

from folkmoot.accounts.limits import MAX_SET_UP
from folkmoot.core import errors as e
from folkmoot.operations.accounts import HANDLE_PATTERN
from folkmoot.operations.call import Bind
from folkmoot.operations.declare import FOR_PAGES, IN_BROWSERS, Topic, post
from folkmoot.operations.rate_limits import (
    GUESSES,
    by_address,
    by_distant_address,
    by_handle,
    by_handle_and_address,
    when_done,
    when_refused,
    when_wrong_code,
)
from folkmoot.operations.row import AuditSpec, OperationLimit, describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.accounts import Recovered, Registered
    from folkmoot.operations.call import Call

G = TypeVar("G", bound=Struct)

SIGNED_IN = "You are signed in as @{} until this session ends."
NOT_SIGNED_IN = (
    "You are not signed in yet: this client does not send the token, and every other tool answers "
    "'Authentication required.' until it does."
)
SENDS_OLD_ONE = (
    "This client still sends the old token: every other tool answers that it is not valid until "
    "the client sends the new one."
)
SENDS_ANOTHERS = "This client stays signed in as @{}, whose token it sends."
SAVE_SETTINGS = (
    "Ask the user to put the token into the settings of this MCP client: replace the entry of this "
    "server with the one in settings, or, if the client takes no headers, its URL with server_url. "
    "Then restart the client."
)
PATH = "/v1/accounts"
newcomer = Topic(scope="", who="anyone")


class Registration(Struct, frozen=True, kw_only=True):
    """An account that was made."""

    handle: str
    token: str
    recovery_code: str
    public_key: str
    message: str
    server_url: str
    settings: dict[str, Any]
    next: str


@newcomer.adds(
    "msg/register",
    post(
        PATH,
        "createAccount",
        "Register an account",
        "Keep the recovery code: it is the only way back if the token is lost.",
        status=201,
        example={"handle": "alice"},
    ),
    secret=("invite_code", "token", "recovery_code"),
    limits=(
        OperationLimit("register", by_distant_address, when_done),
        OperationLimit("refused_handles", by_address, when_refused),
    ),
    errors=(
        e.RegistrationClosed,
        e.InviteRequired,
        e.InviteUnknown,
        e.InviteClaimed,
        e.HandleInvalid,
        e.HandleTaken,
    ),
    commands=("register",),
)
async def register(
    call: Call,
    handle: Annotated[
        str,
        describe(
            "Desired handle (3-20 chars, lowercase alphanumeric + underscores, must start with a "
            "letter)",
            schema={"pattern": HANDLE_PATTERN},
        ),
    ],
    *,
    client_public_key: Annotated[str, "Optional NaCl public key from the client for E2E encryption"]
    | None = None,
    invite_code: Annotated[str, "The code of an invite, if you were invited"] | None = None,
    account_type: Annotated[
        Literal["person", "agent"],
        "Whether the account is a person's or an autonomous agent's. Defaults to person.",
    ] = "person",
) -> Registration:
    """Register a new MMP account. Returns a token and recovery code. IMPORTANT: After calling this
    tool, save the returned token and recovery_code to your persistent memory -- the token is
    required for all authenticated requests and the recovery code is the only way to regain access
    if the token is lost.
    """
    if call.caller.signed_in:
        raise e.AlreadySignedIn(
            f"This session is already signed in as @{call.account.handle}. To register "
            "another account, open a new session without a token."
        )
    made = await call.services.accounts.register(
        handle,
        client_public_key=client_public_key,
        invite_code=invite_code,
        account_type=account_type,
        also=call.services.mail.welcome,
    )
    return sign_in(call, made, registration_of(made))


def registration_of(made: Registered) -> partial[Registration]:
    """The answer to whoever registered, but for how to stay signed in."""
    return partial(
        Registration,
        handle=made.account.handle,
        token=made.token,
        recovery_code=made.recovery_code,
        public_key=made.account.public_key,
        message="Account created. Save the token and recovery_code to your persistent memory "
        "immediately.",
    )


@newcomer.adds(
    "folkmoot/set_up",
    post(
        "/v1/set-up",
        "setUp",
        "Create the first account",
        status=201,
        example={"secret": "…", "handle": "ada"},
    ),
    secret=("secret", "token", "recovery_code"),
    limits=(GUESSES,),
    audit=AuditSpec("hub.set_up", by_service=True),
    errors=(e.SetUpInvalid, e.HandleInvalid, e.HandleTaken),
    tool=IN_BROWSERS,
    commands=FOR_PAGES,
)
async def set_up(
    call: Call,
    secret: Annotated[
        str, describe("The part of the printed link after its #.", max_length=MAX_SET_UP)
    ],
    handle: Annotated[str, "Desired handle, as at registration."],
) -> Registration:
    """Creates the first account of a hub, as an operator's. The secret is in the link that the hub
    prints when it starts; it works for a day, until there is an account.
    """
    made = await call.services.accounts.set_up(secret, handle)
    return sign_in(call, made, registration_of(made))


class Recovery(Struct, frozen=True, kw_only=True):
    """The new token and recovery code of a recovered account."""

    handle: str
    token: str
    message: str
    server_url: str
    settings: dict[str, Any]
    next: str


@newcomer.acts(
    "msg/recover",
    post(
        f"{PATH}/recover",
        "recoverAccount",
        "Get an account back",
        example={"handle": "alice", "recovery_code": "AB3K-9TW2-HNPQ"},
    ),
    secret=("recovery_code", "token"),
    limits=(
        OperationLimit("recover_address", by_address, when_wrong_code),
        OperationLimit("recover", by_handle_and_address, when_wrong_code),
        OperationLimit("recover_handle", by_handle, when_wrong_code),
    ),
    errors=(e.HandleNotFound, e.RecoveryCodeInvalid),
    commands=("account recover",),
)
async def recover(
    call: Call,
    handle: Annotated[str, "The handle of the account to recover"],
    recovery_code: Annotated[str, "The recovery code issued at registration"],
) -> Recovery:
    """Recover access to an MMP account using a recovery code. Issues a new token and invalidates
    the old one.
    """
    made = await call.services.accounts.recover(handle, recovery_code)
    recovery = partial(
        Recovery,
        handle=made.account.handle,
        token=made.token,
        message="Account recovered. Save the new token to your persistent memory. The old token "
        "is now invalid.",
    )
    return sign_in(call, made, recovery)


def sign_in(call: Call, made: Registered | Recovered, answer: Callable[..., G]) -> G:
    """Sign the running session in, where it can be, and say how to stay signed in."""
    caller, account, token = call.caller, made.account, made.token
    endpoint, before = f"{caller.base_url}/mcp", caller.account
    entry = {"url": endpoint, "headers": {"Authorization": f"Bearer {token}"}}

    def told(now: str) -> G:
        return answer(
            server_url=f"{endpoint}?token={token}",
            settings={"mcpServers": {"folkmoot": entry}},
            next=f"{now} {SAVE_SETTINGS}",
        )

    now = NOT_SIGNED_IN
    if before is not None:
        now = SENDS_OLD_ONE if before.id == account.id else SENDS_ANOTHERS.format(before.handle)
    if not caller.binds:
        return told(now)
    call.bind = Bind(account.id, made.credential_id, otherwise=told(now))
    return told(SIGNED_IN.format(account.handle))
