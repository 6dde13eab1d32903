"""The caller's own account: show, change, delete, export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from msgspec import Struct
from msgspec.structs import asdict

from folkmoot.accounts.limits import MAX_FORMATS
from folkmoot.accounts.model import AccountType, Privacy
from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL
from folkmoot.names.grammar import parse_handle
from folkmoot.operations.call import FileAnswer
from folkmoot.operations.rate_limits import (
    MISSED,
    by_user,
    when_done,
)
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Nothing,
    Operation,
    OperationLimit,
    Route,
    describe,
    view_of,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

HANDLE_PATTERN = "^[a-z][a-z0-9_]{2,19}$"

BACKUPS_KEEP = "Older backups of the hub still contain your mail."


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
    quotas = await call.services.accounts.quotas_of(call.account.id)
    formats = call.account.payload_formats.split()
    return view_of(OwnAccount, call.account, payload_formats=formats, quotas=quotas)


class SetProfile(Arguments, frozen=True, kw_only=True):
    """What is to change; the rest stays."""

    display_name: Annotated[str, describe("Display name (1-100 characters)")] | None = None
    bio: Annotated[str, describe("Bio text (0-500 characters)")] | None = None
    # Another word is refused by the accounts.
    privacy: (
        Annotated[str, describe("Privacy level", schema={"enum": [*get_args(Privacy)]})] | None
    ) = None
    status: Annotated[str, describe("Status text (0-100 characters)")] | None = None
    client_public_key: (
        Annotated[str, describe("NaCl public key for E2E encryption from MCP App")] | None
    ) = None
    payload_formats: (
        Annotated[
            list[str],
            describe(
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
    account = await call.services.accounts.set_profile(call.account, **asdict(given))
    formats = account.payload_formats.split()
    return view_of(ProfileChange, account, payload_formats=formats, message="Profile updated.")


class ChangeHandle(Arguments, frozen=True, kw_only=True):
    """Another name."""

    new_handle: Annotated[
        str,
        describe(
            "New handle (3-20 chars, lowercase alphanumeric + underscores, must start with a "
            "letter)",
            schema={"pattern": HANDLE_PATTERN},
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
        str, describe("Your own handle, to confirm the deletion; only the user can say this")
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
        raise e.ArgumentInvalid(
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
        name="msg/whoami",
        description="Show your own profile: the handle you are signed in as, and what others see.",
        handler=whoami,
        scope="account.read",
        routes=(Route("GET", "/v1/me", "getAccount", "Read your own account"),),
        commands=("account whoami",),
    ),
    Operation(
        name="msg/set_profile",
        description="Update your profile. You can change your display name, bio, privacy level, "
        "status, or client public key.",
        handler=set_profile,
        scope="account",
        errors=(e.NothingToUpdate, e.PrivacyInvalid),
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
        handler=change_handle,
        scope="account",
        limits=(MISSED,),
        errors=(e.HandleInvalid, e.HandleTaken, e.TooManyHandleChanges),
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
        handler=delete_account,
        scope="account",
        asks="confirm",
        routes=(Route("DELETE", "/v1/me", "deleteAccount", "Delete your account"),),
        commands=("account delete",),
    ),
    Operation(
        name="folkmoot/export_me",
        description="Your profile, contacts, blocks, invites and rooms, all your mail, decrypted, "
        "and what you said in rooms, as one JSON file. Nothing is marked as read.",
        gives=Copy,
        handler=export_me,
        # Whoever may read only some of it may not have all of it.
        scope=ALL,
        limits=(OperationLimit("export", by_user, when_done),),
        errors=(e.ExportFailed,),
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
