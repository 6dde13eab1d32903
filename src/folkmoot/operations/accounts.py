"""The caller's own account: show, change, delete, export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

from msgspec import Struct

from folkmoot.accounts.limits import MAX_FORMATS
from folkmoot.accounts.model import AccountType, Privacy
from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL
from folkmoot.names.grammar import parse_handle
from folkmoot.operations.call import FileAnswer
from folkmoot.operations.declare import Topic, delete, get, patch, put
from folkmoot.operations.rate_limits import MISSED, by_user, when_done
from folkmoot.operations.row import Absent, OperationLimit, describe, view_of

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH = "/v1/me"
HANDLE_PATTERN = "^[a-z][a-z0-9_]{2,19}$"
account = Topic(scope="account")


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


@account.reads(
    "msg/whoami",
    get(PATH, "getAccount", "Read your own account"),
    scope="account.read",
    commands=("account whoami",),
)
async def whoami(call: Call) -> OwnAccount:
    """Show your own profile: the handle you are signed in as, and what others see."""
    quotas = await call.services.accounts.quotas_of(call.account.id)
    formats = call.account.payload_formats.split()
    return view_of(OwnAccount, call.account, payload_formats=formats, quotas=quotas)


class ProfileChange(Profile, frozen=True, kw_only=True):
    """A profile that was changed."""

    message: str


@account.changes(
    "msg/set_profile",
    patch(PATH, "changeProfile", "Change your profile", example={"bio": "Sails on Sundays."}),
    errors=(e.NothingToUpdate, e.PrivacyInvalid),
    commands=("account profile",),
)
async def set_profile(
    call: Call,
    *,
    display_name: Annotated[str, "Display name (1-100 characters)"] | None = None,
    bio: Annotated[str, "Bio text (0-500 characters)"] | None = None,
    # Another word is refused by the accounts.
    privacy: Annotated[str, describe("Privacy level", schema={"enum": [*get_args(Privacy)]})]
    | None = None,
    status: Annotated[str, "Status text (0-100 characters)"] | None = None,
    client_public_key: Annotated[str, "NaCl public key for E2E encryption from MCP App"]
    | None = None,
    payload_formats: Annotated[
        list[str],
        describe(
            "What the client that holds this key reads in an encrypted payload beside plain "
            "text. Another key empties the list.",
            max_length=MAX_FORMATS,
        ),
    ]
    | None = None,
) -> ProfileChange:
    """Update your profile. You can change your display name, bio, privacy level, status, or client
    public key.
    """
    changed = await call.services.accounts.set_profile(
        call.account,
        display_name=display_name,
        bio=bio,
        privacy=privacy,
        status=status,
        client_public_key=client_public_key,
        payload_formats=payload_formats,
    )
    formats = changed.payload_formats.split()
    return view_of(ProfileChange, changed, payload_formats=formats, message="Profile updated.")


class HandleChanged(Struct, frozen=True, kw_only=True):
    """An account under another handle."""

    old_handle: str
    new_handle: str
    redirects_until: int
    message: str


@account.changes(
    "msg/change_handle",
    put(
        f"{PATH}/handle",
        "changeHandle",
        "Change your handle",
        example={"new_handle": "alice_v2"},
    ),
    limits=(MISSED,),
    errors=(e.HandleInvalid, e.HandleTaken, e.TooManyHandleChanges),
    commands=("account change-handle",),
)
async def change_handle(
    call: Call,
    new_handle: Annotated[
        str,
        describe(
            "New handle (3-20 chars, lowercase alphanumeric + underscores, must start with a "
            "letter)",
            schema={"pattern": HANDLE_PATTERN},
        ),
    ],
) -> HandleChanged:
    """Change your handle. Your old handle will redirect to the new one for 30 days."""
    change = await call.services.accounts.change_handle(call.account, new_handle)
    done = "Handle changed. Old handle will redirect for 30 days."
    return view_of(HandleChanged, change, message=done)


class AccountDeleted(Struct, frozen=True, kw_only=True):
    """An account that is gone."""

    handle: str
    message: str
    backups: str


@account.destroys(
    "msg/delete_account",
    delete(PATH, "deleteAccount", "Delete your account"),
    asks="confirm",
    commands=("account delete",),
)
async def delete_account(
    call: Call,
    confirm: Annotated[str, "Your own handle, to confirm the deletion; only the user can say this"],
) -> AccountDeleted:
    """Delete your account: your profile, every message you sent, your threads, contacts and blocks,
    and your place in every room; what you said there stays. This cannot be undone. Older backups of
    the hub still contain your mail.
    """
    from folkmoot.rooms.access import leave_all_rooms

    handle = call.account.handle
    if parse_handle(confirm) != handle:
        raise e.ArgumentInvalid(
            "To delete your account, give your own handle as confirm. This cannot be undone.",
            field="confirm",
        )
    await call.services.mail.delete_account(call.account, also=leave_all_rooms)
    return AccountDeleted(
        handle=handle,
        message="Account deleted. The token is now invalid.",
        backups="Older backups of the hub still contain your mail.",
    )


class Copy(Struct, frozen=True):
    """A file with everything of an account."""


@account.reads(
    "folkmoot/export_me",
    get(
        f"{PATH}/export",
        "exportMe",
        "Download everything the hub keeps of you",
        answer="The file.",
        media="application/octet-stream",
    ),
    # Whoever may read only some of it may not have all of it.
    scope=ALL,
    limits=(OperationLimit("export", by_user, when_done),),
    errors=(e.ExportFailed,),
    needs=("exporter",),
    tool=Absent("Everything of an account is a file to keep, and more than a model can read."),
    commands=("account export",),
)
async def export_me(call: Call) -> Copy:
    """Your profile, contacts, blocks, invites and rooms, all your mail, decrypted, and what you
    said in rooms, as one JSON file. Nothing is marked as read.
    """
    file, size = await call.services.exporter.copy_of(call.account)
    return FileAnswer(f"{call.account.handle}.json", size, file)  # type: ignore[return-value]
