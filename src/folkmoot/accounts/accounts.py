"""Accounts as others use them: each action is one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from folkmoot import audit
from folkmoot.accounts import (
    people,
    profiles,
    queries,
    queries_people,
    registration,
)
from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts.authentication import RECOVERED, Authentication, token_of
from folkmoot.accounts.browsers import BrowserSessions
from folkmoot.accounts.credentials import (
    hash_invite_code,
    hash_secret,
    hash_token,
    new_invite_code,
    new_token,
)
from folkmoot.accounts.invites import (
    access_invitation,
    check_pending,
    do_invite,
    do_invite_for,
)
from folkmoot.accounts.limits import INVITE_SECONDS, MAX_PEOPLE_PAGE
from folkmoot.accounts.model import (
    Account,
    AccountType,
    Belongings,
    BlockedPage,
    ContactPage,
    Credential,
    Farewell,
    FoundAccount,
    HandleChange,
    HandleInvite,
    HubInvitation,
    Identity,
    OpenInvite,
    PersonRow,
    Policy,
    Recovered,
    Registered,
    SessionTimes,
    Welcome,
)
from folkmoot.accounts.profiles import check_text
from folkmoot.accounts.queries_invites import INVITE_ID, open_invites, remove_open
from folkmoot.accounts.queries_invites import PURPOSE as PENDING
from folkmoot.accounts.registration import ReservedNames
from folkmoot.accounts.search import search
from folkmoot.core import errors as e
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Clock, RoomOwners, Sealer, Store, Tx
from folkmoot.names.grammar import parse_handle
from folkmoot.quotas import Quotas, used_by

NOT_YOURS: Final = "Give one of your tokens once more: this one is not valid, or not yours."
TOO_YOUNG: Final = (
    "Give an older token: this one was made after you signed in here. Or sign in again with it."
)

Joined: TypeAlias = Callable[[Tx, Account], Awaitable[None]]
"""Joins the transaction of a change of an account."""


class Accounts:
    """Everyone who has an account. A `viewer` is the account on whose behalf something is asked."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sealer: Sealer,
        *,
        policy: Policy,
        reserved: ReservedNames | None = None,
        max_message_characters: int = 100_000,
        quotas: Quotas | None = None,
        session_times: SessionTimes | None = None,
        owners: RoomOwners | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sealer = sealer
        self._nicknames = people.Nicknames(sealer)
        self._policy = policy
        self.reserved = reserved or ReservedNames()
        self._max_message_characters = max_message_characters
        self._quotas = quotas or Quotas()
        times = session_times or SessionTimes()
        self.authentication = Authentication(store, clock, self._quotas, times, owners)
        self.browsers = BrowserSessions(store, clock, self._quotas, times)

    @property
    def policy(self) -> Policy:
        """Who may register."""
        return self._policy

    async def register(
        self,
        handle: str,
        *,
        client_public_key: str | None = None,
        invite_code: str | None = None,
        account_type: AccountType = "person",
        also: Welcome | None = None,
    ) -> Registered:
        """Make an account; `also` joins the transaction with inviter and pending message."""
        self._quotas.check_disk()
        if self._policy == "closed":
            await self._store.read(lambda tx: registration.check_invited(tx, invite_code))
        application = registration.check_application(
            self._policy,
            self._sealer,
            self._now(),
            handle=handle,
            client_public_key=client_public_key,
            invite_code=invite_code,
            account_type=account_type,
        )
        await self._store.write(
            lambda tx: registration.do_register(
                tx, application, reserved=self.reserved, sealer=self._sealer, also=also
            )
        )
        return application.registered()

    async def add(
        self, handle: str, *, account_type: AccountType = "person", also: Joined | None = None
    ) -> Registered:
        """Make an account for the operator, whoever may register and whatever a name awaits."""
        self._quotas.check_disk()
        application = registration.check_application(
            "open",
            self._sealer,
            self._now(),
            handle=handle,
            client_public_key=None,
            invite_code=None,
            account_type=account_type,
        )

        async def unit(tx: Tx) -> None:
            await registration.do_add(tx, application, self.reserved)
            if also is not None:
                await also(tx, application.account)

        await self._store.write(unit)
        return application.registered()

    async def suspend(
        self, account: Account, *, suspended: bool, also: Joined | None = None
    ) -> Account:
        """Let nobody use an account from now on, or let it be used again; nothing of it is lost."""
        now = self._now()

        async def unit(tx: Tx) -> Account:
            changed = await registration.do_suspend(tx, account.id, now if suspended else None, now)
            if also is not None:
                await also(tx, changed)
            return changed

        return await self._store.write(unit)

    async def list_people(
        self, after: str = "", limit: int = 100, *, suspended: bool = False, text: str = ""
    ) -> list[PersonRow]:
        """Accounts in the order of their handles, for the operator."""
        return await self._store.read(
            lambda tx: queries.people_after(tx, after, limit, suspended=suspended, text=text),
            long=True,
        )

    async def person_row(self, account: Account) -> PersonRow:
        """One account as a row of the operator's list of people."""
        row = await self._store.read(lambda tx: queries.person_row(tx, account.id))
        if row is None:
            raise e.UserNotFound(f"Nobody has the handle @{account.handle}.")
        return row

    async def recover(self, handle: str, code: str) -> Recovered:
        """Give an account a new token for its recovery code; every other ends at once."""
        now, token = self._now(), new_token()
        # A wrong guess is answered from a reader: it never makes the writer work.
        found = await self._store.read(
            lambda tx: registration.check_recovery(tx, handle, code, now)
        )
        made = token_of(found.id, RECOVERED, now)
        account = await self._store.write(
            lambda tx: registration.do_recover(tx, found.id, code, made, hash_secret(token), now)
        )
        return Recovered(account, token, made.id)

    async def authenticate(self, token: str) -> Account | None:
        """The account whose token this is."""
        token_hash = hash_token(token)
        identity = None if token_hash is None else await self.authentication.by_hash(token_hash)
        return usable(identity)

    async def identify(self, token: str) -> Identity:
        """The account and the credential behind a token; an unknown token is refused."""
        token_hash = hash_token(token.strip())
        identity = None if token_hash is None else await self.authentication.by_hash(token_hash)
        if identity is None or identity.account is None:
            raise e.TokenInvalid
        if identity.account.suspended_at is not None:
            raise e.AccountSuspended
        return identity

    async def confirm(self, credential_id: str, token: str) -> Credential:
        """The credential of a token that someone gives once more, to show that they have it.

        It must be of the account that `credential_id` opens. In a browser it must be older than
        the sign-in: else whoever finds a browser open could make themselves one to show.
        """
        try:
            given = (await self.identify(token)).credential
        except e.TokenRefused:
            given = None
        came_from = await self._store.read(lambda tx: credentials.lineage(tx, credential_id))
        if given is None or not came_from or given.account_id != came_from[0].account_id:
            raise e.ConfirmationInvalid(NOT_YOURS)
        signed_in = [each.created_at for each in came_from if each.kind == "browser"]
        opened_with = any(each.id == given.id for each in came_from)
        if signed_in and given.created_at > min(signed_in) and not opened_with:
            raise e.ConfirmationInvalid(TOO_YOUNG)
        return given

    async def still_valid(self, credential_id: str) -> Account | None:
        """The account that a credential opens, if it still does."""
        return usable(await self.authentication.by_id(credential_id)) if credential_id else None

    async def principal(self, credential_id: str) -> Principal | None:
        """Who a credential opens an account for, if it still does."""
        identity = await self.authentication.by_id(credential_id) if credential_id else None
        return None if identity is None or usable(identity) is None else identity.principal

    async def account(self, user_id: str) -> Account | None:
        """The account with this id."""
        return await self._store.read(lambda tx: queries.by_id(tx, user_id))

    async def named(self, handle: str) -> Account:
        """The account that a handle leads to, or `UserNotFound`."""
        return await self._store.read(lambda tx: self.resolve(tx, handle))

    async def count(self) -> int:
        """How many accounts there are; it is kept, never counted."""
        return await self._store.read(queries.count_users)

    async def resolve(self, tx: Tx, handle: str) -> Account:
        """Within a unit: the user a handle leads to, or `UserNotFound`."""
        return await people.access_user(tx, handle, self._now())

    async def reachable(self, tx: Tx, viewer_id: str, handle: str) -> Account:
        """Within a unit: the user a handle leads to, if the viewer may write to them."""
        account = await self.resolve(tx, handle)
        if account.id != viewer_id and not await queries_people.may_reach(tx, viewer_id, account):
            raise e.UserNotFound
        return account

    async def fetch(self, tx: Tx, user_id: str) -> Account:
        """Within a unit: the user with this id, or `UserNotFound`."""
        account = await queries.by_id(tx, user_id)
        if account is None:
            raise e.UserNotFound
        return account

    async def may_write_to(self, tx: Tx, sender: Account, recipient: Account) -> None:
        """Within a unit: raise `CannotSend` if the recipient takes no mail from the sender."""
        if not await queries_people.may_reach(tx, sender.id, recipient):
            raise e.CannotSend

    async def private_key(self, tx: Tx, user_id: str) -> bytes:
        """Within a unit: the 32 bytes of an account's private key, or `UserNotFound`."""
        secrets = await queries.secrets_of(tx, user_id)
        if secrets is None:
            raise e.UserNotFound
        return self._sealer.open(registration.PRIVATE_KEY, user_id, secrets.private_key)

    async def lookup(self, viewer: Account, handle: str) -> Account:
        """A user's profile; absent and hidden users are `UserNotFound` alike."""
        now = self._now()
        return await self._store.read(lambda tx: people.access_profile(tx, viewer, handle, now))

    async def search(self, viewer: Account, query: str) -> list[FoundAccount]:
        """At most fifty users whose handle or display name contains the query."""
        return await self._store.read(lambda tx: search(tx, viewer, query))

    async def contacts(
        self, viewer: Account, limit: int = MAX_PEOPLE_PAGE, cursor: str | None = None
    ) -> ContactPage:
        """The viewer's contacts by handle, a page at a time."""
        after = people.check_page(limit, cursor)
        return await self._store.read(
            lambda tx: people.contact_page(tx, viewer.id, after, limit, self._nicknames)
        )

    async def add_contact(self, viewer: Account, handle: str, nickname: str = "") -> Account:
        """Add a user to the viewer's contacts, or give one who is there another nickname."""
        check_text("nickname", nickname)
        self._quotas.check_disk()
        now = self._now()
        return await self._store.write(
            lambda tx: people.do_add_contact(tx, viewer.id, handle, nickname, now, self._nicknames)
        )

    async def remove_contact(self, viewer: Account, handle: str) -> Account:
        """Remove a user from the viewer's contacts, or raise `ContactNotFound`."""
        now = self._now()
        return await self._store.write(
            lambda tx: people.do_remove_contact(tx, viewer.id, handle, now)
        )

    async def block(self, viewer: Account, handle: str) -> Account:
        """Keep a user from writing to the viewer, who may still write to them."""
        now = self._now()
        return await self._store.write(lambda tx: people.do_block(tx, viewer.id, handle, now))

    async def unblock(self, viewer: Account, handle: str) -> Account:
        """Let a user write to the viewer again."""
        now = self._now()
        return await self._store.write(lambda tx: people.do_unblock(tx, viewer.id, handle, now))

    async def blocked(
        self, viewer: Account, limit: int = MAX_PEOPLE_PAGE, cursor: str | None = None
    ) -> BlockedPage:
        """The handles of those whom the viewer blocks, a page at a time."""
        after = people.check_page(limit, cursor)
        return await self._store.read(lambda tx: people.blocked_page(tx, viewer.id, after, limit))

    async def create_invite(self, viewer: Account | None, message: str | None = None) -> str:
        """Make an invite and answer its code; without a viewer it is the operator's."""
        if viewer is not None and self._policy == "closed":
            raise e.RegistrationClosed(
                "Registration is closed here, so an invite would not work. Ask the operator to "
                "invite them by their handle."
            )
        self._quotas.check_disk()
        now, code = self._now(), new_invite_code()
        code_hash = hash_secret(code)
        pending = None
        if message:
            plaintext = check_pending(message, self._max_message_characters)
            pending = self._sealer.seal(PENDING, code_hash, plaintext)
        inviter = viewer.id if viewer else None
        await self._store.write(
            lambda tx: do_invite(tx, code_hash, inviter, pending, now, self._quotas)
        )
        return code

    async def invite_for(self, handle: str, seconds: int = INVITE_SECONDS) -> HandleInvite:
        """Make the operator's invite for one handle, which opens it whoever may register."""
        name = parse_handle(handle)
        if name is None:
            raise e.HandleInvalid
        now, code = self._now(), new_invite_code()
        code_hash, until = hash_secret(code), now + seconds
        await self._store.write(
            lambda tx: do_invite_for(tx, code_hash, name, until, now, self.reserved)
        )
        return HandleInvite(code, name, until)

    async def open_invites(
        self, by: str | None, before: tuple[int, str] | None, limit: int
    ) -> list[OpenInvite]:
        """Invites that nobody has used yet, made by one account or anyone, the newest first."""
        now = self._now()
        return await self._store.read(lambda tx: open_invites(tx, by, before, now, limit))

    async def withdraw_invite(self, invite_id: str, by: str | None = None) -> None:
        """Have an open invite open nothing any more; one of `by` alone, where that is given."""
        now = self._now()
        if INVITE_ID.fullmatch(invite_id) is None or not await self._store.write(
            lambda tx: remove_open(tx, invite_id, by, now)
        ):
            raise e.InviteNotOpen

    async def invitation(self, code: str) -> HubInvitation:
        """What whoever has the code of an invite may know: who invites, and with which words."""
        code_hash = hash_invite_code(code.strip())
        if code_hash is None:
            return HubInvitation("unknown")
        now = self._now()
        return await self._store.read(
            lambda tx: access_invitation(tx, code_hash, now, self._sealer, self._policy)
        )

    async def set_profile(
        self,
        viewer: Account,
        *,
        display_name: str | None = None,
        bio: str | None = None,
        privacy: str | None = None,
        status: str | None = None,
        client_public_key: str | None = None,
        payload_formats: Sequence[str] | None = None,
    ) -> Account:
        """Change the fields of the viewer's profile that are given."""
        self._quotas.check_disk()
        changes = profiles.check_profile(
            {
                "display_name": display_name,
                "bio": bio,
                "privacy": privacy,
                "status": status,
                "client_public_key": client_public_key,
            },
            payload_formats,
        )
        now = self._now()
        return await self._store.write(
            lambda tx: profiles.do_set_profile(tx, viewer.id, changes, now)
        )

    async def change_handle(self, viewer: Account, new_handle: str) -> HandleChange:
        """Give the viewer another handle; the old one leads to it for 30 days."""
        handle = profiles.check_new_handle(new_handle)
        now = self._now()
        return await self._store.write(
            lambda tx: profiles.do_change_handle(tx, viewer.id, handle, now, self.reserved)
        )

    async def delete(self, viewer: Account, *, also: Farewell | None = None) -> None:
        """Remove the viewer's account; `also` removes, in the transaction, what others keep."""
        now = self._now()
        await self._store.write(lambda tx: registration.do_delete(tx, viewer.id, now, also))

    async def belongings(self, user_id: str) -> Belongings | None:
        """Everything kept of an account but mail and secrets, for its owner to take away."""
        now = self._now()
        return await self._store.read(
            lambda tx: people.belongings(tx, user_id, now, self._nicknames), long=True
        )

    async def activity(
        self,
        viewer: Account,
        limit: int,
        *,
        before: int | None = None,
        credential_id: str | None = None,
    ) -> list[audit.Entry]:
        """What the viewer did, as the audit log has it, the newest first."""
        wanted = audit.AuditQuery(
            limit=limit, before=before, account=viewer.id, credential_id=credential_id
        )
        return await self._store.read(lambda tx: audit.read(tx, wanted), long=True)

    async def quotas_of(self, user_id: str, *, tokens: bool = False) -> dict[str, dict[str, int]]:
        """How much of its quotas an account uses, in bytes; a limit of 0 is none.

        With `tokens` also how many of those it has.
        """
        limits = self._quotas.limits
        mail, rooms = await self._store.read(lambda tx: used_by(tx, user_id))
        found = {
            "mail": {"used": mail, "limit": limits.mail_bytes_per_account},
            "rooms": {"used": rooms, "limit": limits.room_bytes_per_account},
        }
        if tokens:
            count = await self._store.read(lambda tx: credentials.count_of(tx, user_id))
            found["tokens"] = {"used": count, "limit": limits.tokens_per_account}
        return found

    def _now(self) -> int:
        return int(self._clock.now())


def usable(identity: Identity | None) -> Account | None:
    """The account of whoever was identified, unless it is suspended."""
    account = None if identity is None else identity.account
    return None if account is None or account.suspended_at is not None else account
