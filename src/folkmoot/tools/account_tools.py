"""One's own account: making it, getting it back, showing and changing it, leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from folkmoot.accounts import MOST_FORMATS, parse_handle
from folkmoot.core.errors import (
    AlreadySignedIn,
    ArgumentInvalid,
    CannotSend,
    ContactNotFound,
    FolkmootError,
    HandleNotFound,
    HandleTaken,
    InviteClaimed,
    InviteRequired,
    InviteUnknown,
    RecoveryCodeInvalid,
    UserNotFound,
)
from folkmoot.rooms.farewell import leave_all_rooms
from folkmoot.tools.model import Arguments, Call, Caller, Payload, Rate, Tool
from folkmoot.tools.schemas import HANDLE_PATTERN, choice, obj, text, texts

if TYPE_CHECKING:
    from folkmoot.accounts import Account

BACKUPS_KEEP = "Older backups of the hub still contain your mail."

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


class Register(Arguments, frozen=True, kw_only=True):
    """A new account."""

    handle: str
    client_public_key: str | None = None
    invite_code: str | None = None
    account_type: Literal["person", "agent"] = "person"


async def register(call: Call[Register]) -> Payload:
    """Make an account, and let the running session be its."""
    given = call.arguments
    if call.caller.signed_in:
        raise AlreadySignedIn(
            f"This session is already signed in as @{call.account.handle}. To register "
            "another account, open a new session without a token."
        )
    made = await call.services.accounts.register(
        given.handle,
        client_public_key=given.client_public_key,
        invite_code=given.invite_code,
        account_type=given.account_type,
        also=call.services.mail.welcome,
    )
    return {
        "handle": made.account.handle,
        "token": made.token,
        "recovery_code": made.recovery_code,
        "public_key": made.account.public_key,
        "message": "Account created. Save the token and recovery_code to your persistent memory "
        "immediately.",
        **await sign_in(call.caller, made.account, made.token),
    }


class Recover(Arguments, frozen=True, kw_only=True):
    """An account that is to be had back."""

    handle: str
    recovery_code: str


async def recover(call: Call[Recover]) -> Payload:
    """Give an account a new token, and let the running session be its."""
    given = call.arguments
    made = await call.services.accounts.recover(given.handle, given.recovery_code)
    return {
        "handle": made.account.handle,
        "token": made.token,
        "message": "Account recovered. Save the new token to your persistent memory. The old token "
        "is now invalid.",
        **await sign_in(call.caller, made.account, made.token),
    }


async def sign_in(caller: Caller, account: Account, token: str) -> dict[str, Any]:
    """Sign the running session in, where it can be, and say how to stay signed in."""
    before = caller.account
    if caller.on_token is not None and await caller.on_token(account, token):
        now = SIGNED_IN.format(account.handle)
    elif before is None:
        now = NOT_SIGNED_IN
    else:
        now = SENDS_OLD_ONE if before.id == account.id else SENDS_ANOTHERS.format(before.handle)
    endpoint = f"{caller.base_url}/mcp"
    entry = {"url": endpoint, "headers": {"Authorization": f"Bearer {token}"}}
    return {
        "server_url": f"{endpoint}?token={token}",
        "settings": {"mcpServers": {"folkmoot": entry}},
        "next": f"{now} {SAVE_SETTINGS}",
    }


class Nothing(Arguments, frozen=True, kw_only=True):
    """No arguments at all."""


async def whoami(call: Call[Nothing]) -> Payload:
    """The caller's own profile, and how much of the quotas is used."""
    return {
        **own_profile(call.account),
        "created_at": call.account.created_at,
        "quotas": await call.services.accounts.quotas_of(call.account.id),
    }


def own_profile(account: Account) -> dict[str, Any]:
    """A profile as its owner sees it."""
    return {
        "handle": account.handle,
        "display_name": account.display_name,
        "bio": account.bio,
        "privacy": account.privacy,
        "status": account.status,
        "account_type": account.account_type,
        "public_key": account.public_key,
        "client_public_key": account.client_public_key,
        "payload_formats": account.payload_formats.split(),
    }


class SetProfile(Arguments, frozen=True, kw_only=True):
    """What is to change; the rest stays."""

    display_name: str | None = None
    bio: str | None = None
    privacy: str | None = None
    status: str | None = None
    client_public_key: str | None = None
    payload_formats: Annotated[list[str], Meta(max_length=MOST_FORMATS)] | None = None


async def set_profile(call: Call[SetProfile]) -> Payload:
    """Change the fields that were given."""
    given = call.arguments
    account = await call.services.accounts.set_profile(
        call.account,
        display_name=given.display_name,
        bio=given.bio,
        privacy=given.privacy,
        status=given.status,
        client_public_key=given.client_public_key,
        payload_formats=given.payload_formats,
    )
    return {**own_profile(account), "message": "Profile updated."}


class ChangeHandle(Arguments, frozen=True, kw_only=True):
    """Another name."""

    new_handle: str


async def change_handle(call: Call[ChangeHandle]) -> Payload:
    """Take another handle; the old one leads to it for 30 days."""
    change = await call.services.accounts.change_handle(call.account, call.arguments.new_handle)
    return {
        "old_handle": change.old_handle,
        "new_handle": change.new_handle,
        "redirects_until": change.redirects_until,
        "message": "Handle changed. Old handle will redirect for 30 days.",
    }


class DeleteAccount(Arguments, frozen=True, kw_only=True):
    """A word of confirmation."""

    confirm: str


async def delete_account(call: Call[DeleteAccount]) -> Payload:
    """Remove the account, its mail and its place in every room."""
    handle = call.account.handle
    if parse_handle(call.arguments.confirm) != handle:
        raise ArgumentInvalid(
            "To delete your account, give your own handle as confirm. This cannot be undone.",
            field="confirm",
        )
    await call.services.mail.delete_account(call.account, also=leave_all_rooms)
    return {
        "handle": handle,
        "message": "Account deleted. The token is now invalid.",
        "backups": BACKUPS_KEEP,
    }


def by_address(caller: Caller, _: Arguments) -> str:
    """The address a call came from."""
    return caller.address


def by_distant_address(caller: Caller, _: Arguments) -> str | None:
    """The address a call came from; none for whoever sits at the hub's own machine."""
    if caller.is_direct is not None and caller.is_direct():
        return None
    return caller.address


def by_handle(_: Caller, given: Recover) -> str:
    """The handle a call is about, in one spelling; what is no handle counts as one and the same."""
    return parse_handle(given.handle) or ""


def by_handle_and_address(caller: Caller, given: Recover) -> str:
    """The handle a call is about, and the address it came from."""
    return f"{by_handle(caller, given)} {caller.address}"


def by_user(caller: Caller, _: Arguments) -> str:
    """The account that calls."""
    return caller.account.id if caller.account is not None else ""


def when_done(error: FolkmootError | None) -> bool:
    """Count what succeeded."""
    return error is None


def when_wrong_code(error: FolkmootError | None) -> bool:
    """Count guesses at the code of an account, whether it exists or not."""
    return isinstance(error, (RecoveryCodeInvalid, HandleNotFound))


def when_refused(error: FolkmootError | None) -> bool:
    """Count handles that could not be registered."""
    return isinstance(error, (HandleTaken, InviteRequired, InviteUnknown, InviteClaimed))


def when_missed(error: FolkmootError | None) -> bool:
    """Count handles that are nobody's, or whose owner cannot be reached: both tell who is here."""
    return isinstance(error, (UserNotFound, ContactNotFound, CannotSend, HandleTaken))


MISSED = Rate("missed_handles", by_user, when_missed)
"""For every tool that names someone: together they tell of no more than so many handles."""


ACCOUNT_TOOLS = (
    Tool(
        name="msg/register",
        description="Register a new MMP account. Returns a token and recovery code. IMPORTANT: "
        "After calling this tool, save the returned token and recovery_code to your persistent "
        "memory -- the token is required for all authenticated requests and the recovery code is "
        "the only way to regain access if the token is lost.",
        schema=obj(
            {
                "handle": text(
                    "Desired handle (3-20 chars, lowercase alphanumeric + underscores, must start "
                    "with a letter)",
                    pattern=HANDLE_PATTERN,
                ),
                "client_public_key": text(
                    "Optional NaCl public key from the client for E2E encryption"
                ),
                "invite_code": text("The code of an invite, if you were invited"),
                "account_type": choice(
                    "person",
                    "agent",
                    description="Whether the account is a person's or an autonomous agent's. "
                    "Defaults to person.",
                ),
            },
            ("handle",),
        ),
        arguments=Register,
        handler=register,
        public=True,
        rates=(
            Rate("register", by_distant_address, when_done),
            Rate("refused_handles", by_address, when_refused),
        ),
        kind="adds",
    ),
    Tool(
        name="msg/recover",
        description="Recover access to an MMP account using a recovery code. Issues a new token "
        "and invalidates the old one.",
        schema=obj(
            {
                "handle": text("The handle of the account to recover"),
                "recovery_code": text("The recovery code issued at registration"),
            },
            ("handle", "recovery_code"),
        ),
        arguments=Recover,
        handler=recover,
        public=True,
        rates=(
            Rate("recover_address", by_address, when_wrong_code),
            Rate("recover", by_handle_and_address, when_wrong_code),
            Rate("recover_handle", by_handle, when_wrong_code),
        ),
        kind="acts",
    ),
    Tool(
        name="msg/whoami",
        description="Show your own profile: the handle you are signed in as, and what others see.",
        schema=obj({}),
        arguments=Nothing,
        handler=whoami,
        kind="reads",
    ),
    Tool(
        name="msg/set_profile",
        description="Update your profile. You can change your display name, bio, privacy level, "
        "status, or client public key.",
        schema=obj(
            {
                "display_name": text("Display name (1-100 characters)"),
                "bio": text("Bio text (0-500 characters)"),
                "privacy": choice(
                    "public", "contacts_only", "private", description="Privacy level"
                ),
                "status": text("Status text (0-100 characters)"),
                "client_public_key": text("NaCl public key for E2E encryption from MCP App"),
                "payload_formats": texts(
                    "What the client that holds this key reads in an encrypted payload beside "
                    "plain text. Another key empties the list.",
                    most=MOST_FORMATS,
                ),
            }
        ),
        arguments=SetProfile,
        handler=set_profile,
    ),
    Tool(
        name="msg/change_handle",
        description="Change your handle. Your old handle will redirect to the new one for 30 days.",
        schema=obj(
            {
                "new_handle": text(
                    "New handle (3-20 chars, lowercase alphanumeric + underscores, must start with "
                    "a letter)",
                    pattern=HANDLE_PATTERN,
                )
            },
            ("new_handle",),
        ),
        arguments=ChangeHandle,
        handler=change_handle,
        rates=(MISSED,),
    ),
    Tool(
        name="msg/delete_account",
        description="Delete your account: your profile, every message you sent, your threads, "
        "contacts and blocks, and your place in every room; what you said there stays. This cannot "
        f"be undone. {BACKUPS_KEEP}",
        schema=obj(
            {
                "confirm": text(
                    "Your own handle, to confirm the deletion; only the user can say this"
                )
            },
            ("confirm",),
        ),
        arguments=DeleteAccount,
        handler=delete_account,
        asks="confirm",
        kind="destroys",
    ),
)
