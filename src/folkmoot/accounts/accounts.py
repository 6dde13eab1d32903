"""Accounts as others use them: each action is one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import field

from folkmoot import audit
from folkmoot.accounts import (
    people,
    profiles,
    queries,
    queries_apps,
    queries_consents,
    queries_identities,
    queries_passkeys,
    queries_people,
    registration,
)
from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts import queries_invites as invites
from folkmoot.accounts.apps import Apps
from folkmoot.accounts.authentication import (
    Authentication,
    audit_credential,
)
from folkmoot.accounts.browsers import BrowserSessions
from folkmoot.accounts.credentials import (
    INVITE,
    TOKEN,
    hash_of,
    hash_secret,
    new_invite_code,
    new_secret,
)
from folkmoot.accounts.devices import Devices
from folkmoot.accounts.limits import (
    INVITE_SECONDS,
    MAX_PEOPLE_PAGE,
    MAX_REDIRECTS,
    MAX_SET_UP,
    REDIRECT_SECONDS,
    SET_UP_SECONDS,
)
from folkmoot.accounts.model import (
    Account,
    AccountExport,
    AccountType,
    BlockedPage,
    ContactPage,
    Credential,
    FoundAccount,
    HandleChange,
    HandleInvite,
    HubInvitation,
    Identity,
    OnDelete,
    OpenInvite,
    PersonRow,
    Policy,
    Recovered,
    Registered,
    SessionTimes,
    Welcome,
    publish_change,
    usable,
)
from folkmoot.accounts.oidc import Oidc
from folkmoot.accounts.passkeys import Passkeys
from folkmoot.accounts.profiles import check_text
from folkmoot.accounts.queries_invites import PURPOSE as PENDING
from folkmoot.accounts.queries_invites import Invite
from folkmoot.accounts.registration import ReservedNames, access_own
from folkmoot.accounts.search import search
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import CONTACTS, subject
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Clock, RoomOwners, Sealer, Store, Tx
from folkmoot.names.grammar import parse_handle
from folkmoot.quotas import Quotas, used_by
from folkmoot.settings import SignInSettings
from folkmoot.vault import SealedIds

NOT_YOURS: Final = "Confirm with one of your own tokens; this one is invalid or someone else's."
TOO_YOUNG: Final = (
    "Give an older token: this one was made after you signed in here. Or sign in again with it."
)

PeopleChange: TypeAlias = Literal["added", "removed", "blocked", "unblocked"]
Joined: TypeAlias = Callable[[Tx, Account], Awaitable[None]]
"""Joins the transaction of a change of an account."""


class Accounts(Entity):
    """Everyone who has an account. A `viewer` is the account on whose behalf something is asked."""

    store: Store
    clock: Clock
    sealer: Sealer
    policy: Policy
    reserved: ReservedNames = field(default_factory=ReservedNames)
    max_message_characters: int = 100_000
    quotas: Quotas = field(default_factory=Quotas)
    session_times: SessionTimes = SessionTimes()
    owners: RoomOwners | None = None
    sign_in: SignInSettings = field(default_factory=SignInSettings)

    def __post_init__(self) -> None:
        parts, oidc = (self.store, self.clock, self.quotas), self.sign_in.oidc
        self.authentication = Authentication(*parts, self.session_times, self.owners)
        self.browsers = BrowserSessions(*parts, self.session_times)
        self.passkeys = Passkeys(*parts, self.sealer)
        self.apps = Apps(*parts, self.sign_in)
        self.devices = Devices(self.apps)
        self.oidc = Oidc(self.store, self.clock, self.sealer, self, oidc) if oidc.issuer else None
        self.groups_from = oidc.issuer if oidc.groups_claim else ""
        """The provider that says who is in which group; what another one said does not count."""
        self._set_up = SealedIds(self.sealer, "set up", int, MAX_SET_UP)

    async def register(
        self,
        handle: str,
        *,
        client_public_key: str | None = None,
        invite_code: str | None = None,
        account_type: AccountType = "person",
        also: Welcome | None = None,
    ) -> Registered:
        """Make an account; `also` joins the transaction with inviter and pending message.

        It claims the invite, which a name that is kept for someone needs.
        """
        self.quotas.check_disk()
        code_hash = (hash_of(INVITE, invite_code.strip()) or "") if invite_code else None
        if self.policy == "closed":
            invited = await self.store.read(lambda tx: invites.find_invite(tx, code_hash or ""))
            if invited is None or invited.handle is None:
                raise e.RegistrationClosed
        if self.policy == "invite" and code_hash is None:
            raise e.InviteRequired
        now = self._now()
        application = registration.check_application(
            self.sealer, now, handle, account_type, client_public_key
        )
        account = application.registered.account

        async def unit(tx: Tx) -> None:
            # The invite comes first, so that without one nobody learns which names are taken.
            invite = None
            if code_hash is not None:
                invite = await invites.claim_invite(tx, code_hash, account.id, account.handle, now)
            if self.reserved.belongs_elsewhere(account.handle):
                raise e.HandleTaken
            if self.reserved.awaits(account.handle) and not (invite and invite.handle):
                raise e.InviteRequired("This handle needs an invite that was made for it.")
            await registration.insert_account(tx, application)
            inviter = invite and invite.inviter_id
            if inviter is not None:
                # So that whoever is invited may answer, though the inviter hears contacts alone.
                await queries_people.put_contact(tx, inviter, account.id, "", now)
            if also is not None:
                message = self._waiting(invite, code_hash)
                await also(tx, account, inviter, message)

        await self.store.write(unit)
        return application.registered

    async def add(
        self, handle: str, *, account_type: AccountType = "person", also: Joined | None = None
    ) -> Registered:
        """Create an account as the operator, ignoring registration policy and reserved handles."""
        self.quotas.check_disk()
        application = registration.check_application(self.sealer, self._now(), handle, account_type)
        account = application.registered.account

        async def unit(tx: Tx) -> None:
            if self.reserved.belongs_elsewhere(account.handle):
                raise e.HandleTaken
            await registration.insert_account(tx, application)
            if also is not None:
                await also(tx, account)

        await self.store.write(unit)
        return application.registered

    async def set_up_secret(self) -> str:
        """What lets its holder make the first account, for a day; empty once there is one.

        Nothing keeps it: it is sealed, so that every node of a hub knows it again.
        """
        until = self._now() + SET_UP_SECONDS
        return "" if await self.count() else self._set_up.make("", until)

    async def set_up(self, secret: str, handle: str) -> Registered:
        """Make the first account, as an operator's; of several who try at once one succeeds."""
        until, now = self._set_up.open("", secret), self._now()
        if until is None or until <= now or await self.count():
            raise e.SetUpInvalid

        async def first(tx: Tx, account: Account) -> None:
            if await queries.count_users(tx) > 1:
                raise e.SetUpInvalid
            await queries.update_user(tx, account.id, {"operator_since": now}, now)

        made = await self.add(handle, also=first)
        audit_credential("hub.set_up", made.account, made.credential_id, made.account.handle)
        return made

    async def suspend(
        self, account: Account, *, suspended: bool, also: Joined | None = None
    ) -> Account:
        """Let nobody use an account from now on, or let it be used again; nothing of it is lost."""
        now = self._now()

        async def unit(tx: Tx) -> Account:
            changed = await self.fetch(tx, account.id)
            if (changed.suspended_at is None) == suspended:
                since = now if suspended else None
                changed = await queries.update_user(tx, account.id, {"suspended_at": since}, now)
                publish_change(tx, changed, "suspended" if suspended else "restored")
            if also is not None:
                await also(tx, changed)
            return changed

        return await self.store.write(unit)

    async def set_operator(
        self, account: Account, *, operator: bool, also: Joined | None = None
    ) -> bool:
        """Let an account's browser sessions run the hub, or not; answers whether that is new.

        Whoever was signed in before signs in again for it. What could run the hub ends at once
        where it no longer may, tokens with that scope too.
        """
        now = self._now()

        async def unit(tx: Tx) -> bool:
            found = await self.fetch(tx, account.id)
            is_new = (found.operator_since is None) == operator
            if is_new:
                since = now if operator else None
                found = await queries.update_user(tx, account.id, {"operator_since": since}, now)
                publish_change(tx, found, "operator")
            ended = 0 if operator else await credentials.remove_operating(tx, account.id)
            if also is not None and (is_new or ended):
                await also(tx, found)
            return is_new or ended > 0

        return await self.store.write(unit)

    async def list_people(
        self, after: str = "", limit: int = 100, *, suspended: bool = False, text: str = ""
    ) -> list[PersonRow]:
        """Accounts in the order of their handles, for the operator."""
        await self.authentication.store_uses()
        return await self.store.read(
            lambda tx: queries.people_after(tx, after, limit, suspended=suspended, text=text),
            long=True,
        )

    async def person_row(self, account: Account) -> PersonRow:
        """One account as a row of the operator's list of people."""
        await self.authentication.store_uses()
        row = await self.store.read(lambda tx: queries.person_row(tx, account.id))
        if row is None:
            raise e.UserNotFound(f"Nobody has the handle @{account.handle}.")
        return row

    async def recover(self, handle: str, code: str) -> Recovered:
        """Give an account a new token for its recovery code; all else that opens it ends."""
        now, token = self._now(), new_secret("sk")
        # A wrong guess is answered from a reader: it never makes the writer work.
        found = await self.store.read(lambda tx: registration.check_recovery(tx, handle, code, now))
        made = Credential(credentials.new_id(), "token", found.id, now, label="recovered")

        async def unit(tx: Tx) -> Account:
            await registration.check_code(tx, found.id, code)
            if (await access_own(tx, found.id)).suspended_at is not None:
                raise e.AccountSuspended
            # Others who recover it at the same moment wait here; the last one's token is left.
            account = await queries.update_user(tx, found.id, {}, now)
            await credentials.remove_all(tx, found.id)
            await queries_passkeys.remove_all(tx, found.id)
            await credentials.insert(tx, made, hash_secret(token))
            publish_change(tx, account, "recovered")
            return account

        return Recovered(await self.store.write(unit), token, made.id)

    async def authenticate(self, token: str) -> Account | None:
        """The account whose token this is."""
        token_hash = hash_of(TOKEN, token)
        identity = None if token_hash is None else await self.authentication.by_hash(token_hash)
        return usable(identity)

    async def identify(self, token: str) -> Identity:
        """The account and the credential behind a token; an unknown token is refused."""
        token_hash = hash_of(TOKEN, token.strip())
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
        came_from = await self.store.read(lambda tx: credentials.lineage(tx, credential_id))
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
        return await self.store.read(lambda tx: queries.by_id(tx, user_id))

    async def named(self, handle: str) -> Account:
        """The account that a handle leads to, or `UserNotFound`."""
        return await self.store.read(lambda tx: self.resolve(tx, handle))

    async def count(self) -> int:
        """How many accounts there are; it is kept, never counted."""
        return await self.store.read(queries.count_users)

    async def resolve(self, tx: Tx, handle: str) -> Account:
        """Within a unit: the user a handle leads to, or `UserNotFound`."""
        name = parse_handle(handle)
        account = await queries.by_handle(tx, name, self._now()) if name else None
        if account is None:
            raise e.UserNotFound
        return account

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
        return self.sealer.open(registration.PRIVATE_KEY, user_id, secrets.private_key)

    async def lookup(self, viewer: Account, handle: str) -> Account:
        """A user's profile; absent and hidden users are `UserNotFound` alike."""
        now = self._now()
        return await self.store.read(lambda tx: people.access_profile(tx, viewer, handle, now))

    async def search(self, viewer: Account, query: str) -> list[FoundAccount]:
        """At most fifty users whose handle or display name contains the query."""
        return await self.store.read(lambda tx: search(tx, viewer, query))

    async def contacts(
        self, viewer: Account, limit: int = MAX_PEOPLE_PAGE, cursor: str | None = None
    ) -> ContactPage:
        """The viewer's contacts by handle, a page at a time."""
        after = people.check_page(limit, cursor)
        found = await self.store.read(
            lambda tx: queries_people.contacts_of(tx, viewer.id, after=after, limit=limit + 1)
        )
        shown = [people.open_nickname(self.sealer, viewer.id, *each) for each in found[:limit]]
        last = shown[-1].handle if len(found) > limit else None
        return ContactPage(shown, people.cursor_after(last))

    async def add_contact(self, viewer: Account, handle: str, nickname: str = "") -> Account:
        """Add a user to the viewer's contacts, or give one who is there another nickname."""
        check_text("nickname", nickname)
        self.quotas.check_disk()

        async def put(tx: Tx, target: Account) -> None:
            await access_own(tx, viewer.id)
            if target.id == viewer.id:
                raise e.CannotAddSelf
            sealed = people.seal_nickname(self.sealer, viewer.id, target.id, nickname)
            await queries_people.put_contact(tx, viewer.id, target.id, sealed, self._now())

        return await self._change_people(viewer, handle, "added", put)

    async def remove_contact(self, viewer: Account, handle: str) -> Account:
        """Remove a user from the viewer's contacts, or raise `ContactNotFound`."""

        async def remove(tx: Tx, target: Account) -> None:
            if not await queries_people.delete_contact(tx, viewer.id, target.id):
                raise e.ContactNotFound

        return await self._change_people(viewer, handle, "removed", remove)

    async def block(self, viewer: Account, handle: str) -> Account:
        """Keep a user from writing to the viewer, who may still write to them."""

        async def put(tx: Tx, target: Account) -> None:
            await access_own(tx, viewer.id)
            if target.id == viewer.id:
                raise e.CannotBlockSelf
            await queries_people.put_block(tx, viewer.id, target.id)

        return await self._change_people(viewer, handle, "blocked", put)

    async def unblock(self, viewer: Account, handle: str) -> Account:
        """Let a user write to the viewer again."""
        return await self._change_people(
            viewer,
            handle,
            "unblocked",
            lambda tx, target: queries_people.delete_block(tx, viewer.id, target.id),
        )

    async def _change_people(
        self, viewer: Account, handle: str, change: PeopleChange, do: Joined
    ) -> Account:
        """Change what someone else is to the viewer, and tell the viewer's other devices."""

        async def unit(tx: Tx) -> Account:
            target = await self.resolve(tx, handle)
            await do(tx, target)
            tx.publish(subject(CONTACTS, viewer.id), {"handle": target.handle, "change": change})
            return target

        return await self.store.write(unit)

    async def blocked(
        self, viewer: Account, limit: int = MAX_PEOPLE_PAGE, cursor: str | None = None
    ) -> BlockedPage:
        """The handles of those whom the viewer blocks, a page at a time."""
        after = people.check_page(limit, cursor)
        found = await self.store.read(
            lambda tx: queries_people.blocked_by(tx, viewer.id, after=after, limit=limit + 1)
        )
        last = found[limit - 1] if len(found) > limit else None
        return BlockedPage(found[:limit], people.cursor_after(last))

    async def create_invite(self, viewer: Account | None, message: str | None = None) -> str:
        """Make an invite and answer its code; without a viewer it is the operator's."""
        if viewer is not None and self.policy == "closed":
            raise e.RegistrationClosed(
                "Registration is closed here, so an invite would not work. Ask the operator to "
                "invite them by their handle."
            )
        self.quotas.check_disk()
        now, code = self._now(), new_invite_code()
        code_hash = hash_secret(code)
        pending = None
        if message:
            plaintext = check_pending(message, self.max_message_characters)
            pending = self.sealer.seal(PENDING, code_hash, plaintext)
        inviter = viewer.id if viewer else None
        most = self.quotas.limits.invites_per_account

        async def unit(tx: Tx) -> None:
            if inviter is not None:
                await access_own(tx, inviter)
                if most:
                    open_ = await invites.count_open(tx, inviter, most)
                    self.quotas.check("invites_per_account", open_ + 1, most)
            await invites.insert_invite(tx, code_hash, inviter, pending, now)

        await self.store.write(unit)
        return code

    async def invite_for(self, handle: str, seconds: int = INVITE_SECONDS) -> HandleInvite:
        """Make the operator's invite for one handle, which opens it whoever may register."""
        name = parse_handle(handle)
        if name is None:
            raise e.HandleInvalid
        now, code = self._now(), new_invite_code()
        code_hash, until = hash_secret(code), now + seconds
        if self.reserved.belongs_elsewhere(name):
            raise e.HandleTaken(f"@{name} cannot be anyone's handle: the name belongs to the hub.")

        async def unit(tx: Tx) -> None:
            kept = await registration.standing(tx, name, now)
            if kept is not None:
                raise e.HandleTaken(f"@{name} cannot be invited: {registration.why_taken(kept)}.")
            await invites.replace_invite_for(tx, code_hash, name, until, now)

        await self.store.write(unit)
        return HandleInvite(code, name, until)

    async def open_invites(
        self, by: str | None, before: tuple[int, str] | None, limit: int
    ) -> list[OpenInvite]:
        """Invites that nobody has used yet, made by one account or anyone, the newest first."""
        now = self._now()
        return await self.store.read(lambda tx: invites.open_invites(tx, by, before, now, limit))

    async def withdraw_invite(self, invite_id: str, by: str | None = None) -> None:
        """Withdraw an unused invite; with `by`, only one of that account."""
        now = self._now()
        if invites.INVITE_ID.fullmatch(invite_id) is None or not await self.store.write(
            lambda tx: invites.remove_open(tx, invite_id, by, now)
        ):
            raise e.InviteNotOpen

    async def invitation(self, code: str) -> HubInvitation:
        """What whoever has the code of an invite may know: who invites, and with which words."""
        code_hash, now = hash_of(INVITE, code.strip()), self._now()
        if code_hash is None:
            return HubInvitation("unknown")

        async def query(tx: Tx) -> HubInvitation:
            invite = await invites.find_invite(tx, code_hash)
            state = "unknown" if invite is None else invite.state(now)
            if invite is None or state != "valid":
                return HubInvitation(state)
            inviter = await queries.by_id(tx, invite.inviter_id) if invite.inviter_id else None
            return HubInvitation(
                state,
                handle=invite.handle,
                inviter=None if inviter is None else inviter.handle,
                inviter_name=None if inviter is None else inviter.display_name,
                message=self._waiting(invite, code_hash),
                opens=self.policy != "closed" or invite.handle is not None,
            )

        return await self.store.read(query)

    def _waiting(self, invite: Invite | None, code_hash: str | None) -> str | None:
        """The message that waits in an invite."""
        if invite is None or invite.pending is None:
            return None
        return self.sealer.open(PENDING, code_hash or "", invite.pending).decode()

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
        self.quotas.check_disk()
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

        async def unit(tx: Tx) -> Account:
            before, changed = await access_own(tx, viewer.id), changes
            if changes.get(profiles.KEY, before.client_public_key) != before.client_public_key:
                # Another key says nothing of formats until it is told.
                changed = {profiles.FORMATS: "", **changes}
            account = await queries.update_user(tx, viewer.id, changed, self._now())
            if profiles.SEARCHED & changes.keys():
                await queries.index_names(tx, account)
            publish_change(tx, account, "profile")
            return account

        return await self.store.write(unit)

    async def change_handle(self, viewer: Account, new_handle: str) -> HandleChange:
        """Give the viewer another handle; the old one leads to it for 30 days.

        They may take back one that still does.
        """
        handle, now = parse_handle(new_handle), self._now()
        if handle is None:
            raise e.HandleInvalid("Invalid handle format.")
        until = now + REDIRECT_SECONDS

        async def unit(tx: Tx) -> HandleChange:
            await access_own(tx, viewer.id)
            redirects = await queries.redirects_of(tx, viewer.id, now)
            if self.reserved.belongs_elsewhere(handle):
                raise e.HandleTaken
            if self.reserved.awaits(handle) and handle not in redirects:
                raise e.HandleTaken
            # An account has one live handle at a time: the old one is given up before.
            before = await queries.give_up_handle(tx, viewer.id, handle, until)
            if before is None or not await queries.claim_handle(tx, handle, viewer.id, now):
                raise e.HandleTaken
            if len(redirects.keys() - {handle}) >= MAX_REDIRECTS:
                raise e.TooManyHandleChanges(retry_at=min(redirects.values()))
            if not await queries.rename(tx, viewer.id, before, handle, now):
                raise e.HandleTaken("Your handle was changed at the same moment. Try again.")
            account = await access_own(tx, viewer.id)
            await queries.index_names(tx, account)
            redirects = await queries.redirects_of(tx, viewer.id, now)
            publish_change(tx, account, "handle", redirects)
            return HandleChange(account, before, handle, until)

        return await self.store.write(unit)

    async def delete(self, viewer: Account, *, also: OnDelete | None = None) -> None:
        """Remove the viewer's account; `also` removes, in the transaction, what others keep."""
        until = self._now() + REDIRECT_SECONDS

        async def unit(tx: Tx) -> None:
            account = await access_own(tx, viewer.id)
            # Before an operator's own line about it, which stays.
            await audit.forget(tx, account.id, account.handle)
            if also is not None:
                await also(tx, account)
            await queries.delete_user(tx, viewer.id, until)
            publish_change(tx, account, "deleted")

        await self.store.write(unit)

    async def belongings(self, user_id: str) -> AccountExport | None:
        """Everything kept of an account but mail and secrets, for its owner to take away."""
        now, most = self._now(), people.EVERYONE

        async def query(tx: Tx) -> AccountExport | None:
            account = await queries.by_id(tx, user_id)
            if account is None:
                return None
            contacts = await queries_people.contacts_of(tx, user_id, after="", limit=most)
            return AccountExport(
                account=account,
                redirects=await queries.redirects_of(tx, user_id, now),
                contacts=[people.open_nickname(self.sealer, user_id, *each) for each in contacts],
                blocked=await queries_people.blocked_by(tx, user_id, after="", limit=most),
                invites=await invites.invites_of(tx, user_id),
                apps=await queries_apps.of_account(tx, user_id),
                servers=await queries_consents.of_account(tx, user_id),
                passkeys=await queries_passkeys.of_account(tx, user_id),
                company_accounts=await queries_identities.of_account(tx, user_id),
            )

        return await self.store.read(query, long=True)

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
        return await self.store.read(lambda tx: audit.read(tx, wanted), long=True)

    async def quotas_of(self, user_id: str, *, tokens: bool = False) -> dict[str, dict[str, int]]:
        """How much of its quotas an account uses, in bytes; a limit of 0 is none.

        With `tokens` also how many of those it has.
        """
        limits = self.quotas.limits
        mail, rooms = await self.store.read(lambda tx: used_by(tx, user_id))
        found = {
            "mail": {"used": mail, "limit": limits.mail_bytes_per_account},
            "rooms": {"used": rooms, "limit": limits.room_bytes_per_account},
        }
        if tokens:
            count = await self.store.read(lambda tx: credentials.count_of(tx, user_id))
            found["tokens"] = {"used": count, "limit": limits.tokens_per_account}
        return found

    def _now(self) -> int:
        return int(self.clock.now())


def check_pending(message: str, most: int) -> bytes:
    """The bytes of a message that is to wait for whoever is invited."""
    if len(message) > most:
        raise e.ArgumentInvalid(
            f"message has {len(message):,} characters; at most {most:,} are allowed.",
            setting="mail.max_body_characters",
            field="message",
        )
    try:
        return message.encode()
    except UnicodeEncodeError:
        raise e.ArgumentInvalid("message must be valid Unicode.", field="message") from None
