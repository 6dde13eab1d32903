"""The caller's own account: register, recover, show, change, delete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from msgspec import Struct

from folkmoot.accounts.limits import MAX_FORMATS
from folkmoot.accounts.model import AccountType, Privacy
from folkmoot.core.errors import (
    AlreadySignedIn,
    ArgumentInvalid,
    ExportFailed,
    HandleInvalid,
    HandleNotFound,
    HandleTaken,
    InviteClaimed,
    InviteRequired,
    InviteUnknown,
    NothingToUpdate,
    PrivacyInvalid,
    RecoveryCodeInvalid,
    RegistrationClosed,
    TooManyHandleChanges,
)
from folkmoot.names.grammar import parse_handle
from folkmoot.operations.call import Bind, FileAnswer
from folkmoot.operations.rate_limits import (
    MISSED,
    by_address,
    by_distant_address,
    by_handle,
    by_handle_and_address,
    by_user,
    when_done,
    when_refused,
    when_wrong_code,
)
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Nothing,
    Operation,
    OperationLimit,
    Route,
    says,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.accounts import Account, Recovered, Registered
    from folkmoot.operations.call import Call

G = TypeVar("G", bound=Struct)

HANDLE_PATTERN = "^[a-z][a-z0-9_]{2,19}$"

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

    handle: Annotated[
        str,
        says(
            "Desired handle (3-20 chars, lowercase alphanumeric + underscores, must start with a "
            "letter)",
            shown={"pattern": HANDLE_PATTERN},
        ),
    ]
    client_public_key: (
        Annotated[str, says("Optional NaCl public key from the client for E2E encryption")] | None
    ) = None
    invite_code: Annotated[str, says("The code of an invite, if you were invited")] | None = None
    account_type: Annotated[
        Literal["person", "agent"],
        says("Whether the account is a person's or an autonomous agent's. Defaults to person."),
    ] = "person"


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


async def register(call: Call[Register]) -> Registration:
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
    registration = partial(
        Registration,
        handle=made.account.handle,
        token=made.token,
        recovery_code=made.recovery_code,
        public_key=made.account.public_key,
        message="Account created. Save the token and recovery_code to your persistent memory "
        "immediately.",
    )
    return sign_in(call, made, registration)


class Recover(Arguments, frozen=True, kw_only=True):
    """An account that is to be had back."""

    handle: Annotated[str, says("The handle of the account to recover")]
    recovery_code: Annotated[str, says("The recovery code issued at registration")]


class Recovery(Struct, frozen=True, kw_only=True):
    """The new token and recovery code of a recovered account."""

    handle: str
    token: str
    message: str
    server_url: str
    settings: dict[str, Any]
    next: str


async def recover(call: Call[Recover]) -> Recovery:
    """Give an account a new token, and let the running session be its."""
    given = call.arguments
    made = await call.services.accounts.recover(given.handle, given.recovery_code)
    recovery = partial(
        Recovery,
        handle=made.account.handle,
        token=made.token,
        message="Account recovered. Save the new token to your persistent memory. The old token "
        "is now invalid.",
    )
    return sign_in(call, made, recovery)


def sign_in(call: Call[Any], made: Registered | Recovered, answer: Callable[..., G]) -> G:
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


class Profile(Struct, frozen=True, kw_only=True):
    """A profile as its owner sees it."""

    handle: str
    display_name: str
    bio: str
    privacy: Privacy
    status: str
    account_type: AccountType
    public_key: str
    client_public_key: str | None
    payload_formats: list[str]


class OwnAccount(Profile, frozen=True, kw_only=True):
    """One's own account, and how much of its quotas is used."""

    created_at: int
    quotas: dict[str, dict[str, int]]


async def whoami(call: Call[Nothing]) -> OwnAccount:
    """The caller's own profile, and how much of the quotas is used."""
    return OwnAccount(
        **profile_of(call.account),
        created_at=call.account.created_at,
        quotas=await call.services.accounts.quotas_of(call.account.id),
    )


def profile_of(account: Account) -> dict[str, Any]:
    """The members of a profile."""
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

    display_name: Annotated[str, says("Display name (1-100 characters)")] | None = None
    bio: Annotated[str, says("Bio text (0-500 characters)")] | None = None
    # Another word is refused by the accounts.
    privacy: Annotated[str, says("Privacy level", shown={"enum": [*get_args(Privacy)]})] | None = (
        None
    )
    status: Annotated[str, says("Status text (0-100 characters)")] | None = None
    client_public_key: (
        Annotated[str, says("NaCl public key for E2E encryption from MCP App")] | None
    ) = None
    payload_formats: (
        Annotated[
            list[str],
            says(
                "What the client that holds this key reads in an encrypted payload beside plain "
                "text. Another key empties the list.",
                max_length=MAX_FORMATS,
            ),
        ]
        | None
    ) = None


class ProfileChange(Profile, frozen=True, kw_only=True):
    """A profile that was changed."""

    message: str


async def set_profile(call: Call[SetProfile]) -> ProfileChange:
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
    return ProfileChange(**profile_of(account), message="Profile updated.")


class ChangeHandle(Arguments, frozen=True, kw_only=True):
    """Another name."""

    new_handle: Annotated[
        str,
        says(
            "New handle (3-20 chars, lowercase alphanumeric + underscores, must start with a "
            "letter)",
            shown={"pattern": HANDLE_PATTERN},
        ),
    ]


class HandleChanged(Struct, frozen=True, kw_only=True):
    """An account under another handle."""

    old_handle: str
    new_handle: str
    redirects_until: int
    message: str


async def change_handle(call: Call[ChangeHandle]) -> HandleChanged:
    """Take another handle; the old one leads to it for 30 days."""
    change = await call.services.accounts.change_handle(call.account, call.arguments.new_handle)
    return HandleChanged(
        old_handle=change.old_handle,
        new_handle=change.new_handle,
        redirects_until=change.redirects_until,
        message="Handle changed. Old handle will redirect for 30 days.",
    )


class DeleteAccount(Arguments, frozen=True, kw_only=True):
    """A word of confirmation."""

    confirm: Annotated[
        str, says("Your own handle, to confirm the deletion; only the user can say this")
    ]


class AccountDeleted(Struct, frozen=True, kw_only=True):
    """An account that is gone."""

    handle: str
    message: str
    backups: str


async def delete_account(call: Call[DeleteAccount]) -> AccountDeleted:
    """Remove the account, its mail and its place in every room."""
    from folkmoot.rooms.access import leave_all_rooms

    handle = call.account.handle
    if parse_handle(call.arguments.confirm) != handle:
        raise ArgumentInvalid(
            "To delete your account, give your own handle as confirm. This cannot be undone.",
            field="confirm",
        )
    await call.services.mail.delete_account(call.account, also=leave_all_rooms)
    return AccountDeleted(
        handle=handle,
        message="Account deleted. The token is now invalid.",
        backups=BACKUPS_KEEP,
    )


class Copy(Struct, frozen=True):
    """A file with everything of an account."""


async def export_me(call: Call[Nothing]) -> Any:
    """Everything that the hub keeps of the caller."""
    file, size = await call.services.exporter.copy_of(call.account)
    return FileAnswer(f"{call.account.handle}.json", size, file)


ACCOUNTS = (
    Operation(
        name="msg/register",
        description="Register a new MMP account. Returns a token and recovery code. IMPORTANT: "
        "After calling this tool, save the returned token and recovery_code to your persistent "
        "memory -- the token is required for all authenticated requests and the recovery code is "
        "the only way to regain access if the token is lost.",
        takes=Register,
        gives=Registration,
        handler=register,
        secret=("invite_code", "token", "recovery_code"),
        scope="",
        who="anyone",
        effect="adds",
        limits=(
            OperationLimit("register", by_distant_address, when_done),
            OperationLimit("refused_handles", by_address, when_refused),
        ),
        errors=(
            RegistrationClosed,
            InviteRequired,
            InviteUnknown,
            InviteClaimed,
            HandleInvalid,
            HandleTaken,
        ),
        routes=(
            Route(
                "POST",
                "/v1/accounts",
                "createAccount",
                "Register an account",
                "Keep the recovery code: it is the only way back if the token is lost.",
                status=201,
                example={"handle": "alice"},
            ),
        ),
        commands=("register",),
    ),
    Operation(
        name="msg/recover",
        description="Recover access to an MMP account using a recovery code. Issues a new token "
        "and invalidates the old one.",
        takes=Recover,
        gives=Recovery,
        handler=recover,
        secret=("recovery_code", "token"),
        scope="",
        who="anyone",
        effect="acts",
        limits=(
            OperationLimit("recover_address", by_address, when_wrong_code),
            OperationLimit("recover", by_handle_and_address, when_wrong_code),
            OperationLimit("recover_handle", by_handle, when_wrong_code),
        ),
        errors=(HandleNotFound, RecoveryCodeInvalid),
        routes=(
            Route(
                "POST",
                "/v1/accounts/recover",
                "recoverAccount",
                "Get an account back",
                example={"handle": "alice", "recovery_code": "AB3K-9TW2-HNPQ"},
            ),
        ),
        commands=("account recover",),
    ),
    Operation(
        name="msg/whoami",
        description="Show your own profile: the handle you are signed in as, and what others see.",
        takes=Nothing,
        gives=OwnAccount,
        handler=whoami,
        scope="account.read",
        effect="reads",
        routes=(Route("GET", "/v1/me", "getAccount", "Read your own account"),),
        commands=("account whoami",),
    ),
    Operation(
        name="msg/set_profile",
        description="Update your profile. You can change your display name, bio, privacy level, "
        "status, or client public key.",
        takes=SetProfile,
        gives=ProfileChange,
        handler=set_profile,
        scope="account",
        errors=(NothingToUpdate, PrivacyInvalid),
        routes=(
            Route(
                "PATCH",
                "/v1/me",
                "changeProfile",
                "Change your profile",
                example={"bio": "Sails on Sundays."},
            ),
        ),
        commands=("account profile",),
    ),
    Operation(
        name="msg/change_handle",
        description="Change your handle. Your old handle will redirect to the new one for 30 days.",
        takes=ChangeHandle,
        gives=HandleChanged,
        handler=change_handle,
        scope="account",
        limits=(MISSED,),
        errors=(HandleInvalid, HandleTaken, TooManyHandleChanges),
        routes=(
            Route(
                "PUT",
                "/v1/me/handle",
                "changeHandle",
                "Change your handle",
                example={"new_handle": "alice_v2"},
            ),
        ),
        commands=("account change-handle",),
    ),
    Operation(
        name="msg/delete_account",
        description="Delete your account: your profile, every message you sent, your threads, "
        "contacts and blocks, and your place in every room; what you said there stays. This cannot "
        f"be undone. {BACKUPS_KEEP}",
        takes=DeleteAccount,
        gives=AccountDeleted,
        handler=delete_account,
        scope="account",
        effect="destroys",
        asks="confirm",
        routes=(Route("DELETE", "/v1/me", "deleteAccount", "Delete your account"),),
        commands=("account delete",),
    ),
    Operation(
        name="folkmoot/export_me",
        description="Your profile, contacts, blocks, invites and rooms, all your mail, decrypted, "
        "and what you said in rooms, as one JSON file. Nothing is marked as read.",
        takes=Nothing,
        gives=Copy,
        handler=export_me,
        scope="account",
        effect="reads",
        limits=(OperationLimit("export", by_user, when_done),),
        errors=(ExportFailed,),
        needs=("exporter",),
        tool=Absent("Everything of an account is a file to keep, and more than a model can read."),
        routes=(
            Route(
                "GET",
                "/v1/me/export",
                "exportMe",
                "Download everything the hub keeps of you",
                answer="The file.",
                media="application/octet-stream",
            ),
        ),
        commands=("account export",),
    ),
)
