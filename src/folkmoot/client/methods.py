"""What a hub can be asked, a method for each route, and what it answers.

Made by `make docs` from the table of operations: what is changed here is written over.
"""

from __future__ import annotations

from typing import IO, Any, Literal
from urllib.parse import quote

from msgspec import UNSET, Struct, UnsetType

from folkmoot.client.http import Http


class Registration(Struct, frozen=True, omit_defaults=True):
    """An account that was made."""

    handle: str
    token: str
    recovery_code: str
    public_key: str
    message: str
    server_url: str
    settings: dict[str, Any]
    next: str


class Recovery(Struct, frozen=True, omit_defaults=True):
    """The new token and recovery code of a recovered account."""

    handle: str
    token: str
    message: str
    server_url: str
    settings: dict[str, Any]
    next: str


class OwnAccount(Struct, frozen=True, omit_defaults=True):
    """One's own account, and how much of its quotas is used."""

    handle: str
    display_name: str
    bio: str
    privacy: str
    status: str
    account_type: str
    public_key: str
    client_public_key: str | None
    payload_formats: list[str]
    created_at: int
    quotas: dict[str, dict[str, int]]


class ProfileChange(Struct, frozen=True, omit_defaults=True):
    """A profile that was changed."""

    handle: str
    display_name: str
    bio: str
    privacy: str
    status: str
    account_type: str
    public_key: str
    client_public_key: str | None
    payload_formats: list[str]
    message: str


class HandleChanged(Struct, frozen=True, omit_defaults=True):
    """An account under another handle."""

    old_handle: str
    new_handle: str
    redirects_until: int
    message: str


class AccountDeleted(Struct, frozen=True, omit_defaults=True):
    """An account that is gone."""

    handle: str
    message: str
    backups: str


class Sent(Struct, frozen=True, omit_defaults=True):
    """A message that was stored; `to` is the recipient's present handle."""

    message_id: str
    thread_id: str
    to: str
    encryption_mode: str
    created_at: int
    quota_warning: str | None = None


class EncryptedPayload(Struct, frozen=True, omit_defaults=True):
    """What a client encrypted by itself: kept and returned exactly as it was given."""

    ciphertext: str
    nonce: str
    sender_public_key: str


class MailMessage(Struct, frozen=True, omit_defaults=True):
    """A message as one of its two sides reads it."""

    id: str
    thread_id: str
    from_handle: str
    to_handle: str
    body: str | None
    priority: str
    encryption_mode: str
    reply_to: str | None
    created_at: int
    unread: bool
    encrypted_payload: EncryptedPayload | None = None
    error: str | None = None


class Messages(Struct, frozen=True, omit_defaults=True):
    """A page of messages, newest first."""

    messages: list[MailMessage]
    next_cursor: str | None


class MessageDeleted(Struct, frozen=True, omit_defaults=True):
    """A message deleted from the caller's side."""

    message_id: str
    message: str


class Thread(Struct, frozen=True, omit_defaults=True):
    """A thread as one of its members sees it."""

    id: str
    subject: str
    other_handle: str
    other_display_name: str
    last_message_body: str
    last_message_at: int
    unread_count: int
    member_state: str
    last_read_at: int
    created_at: int
    updated_at: int
    last_message_own: bool | None = None


class ThreadPage(Struct, frozen=True, omit_defaults=True):
    """Threads, the one with the newest message first, and the cursor of the next ones if any."""

    threads: list[Thread]
    next_cursor: str | None


class ThreadMessages(Struct, frozen=True, omit_defaults=True):
    """A thread with a page of its messages, newest first."""

    thread: Thread
    messages: list[MailMessage]
    next_cursor: str | None


class UnreadRoom(Struct, frozen=True, omit_defaults=True):
    """A room with something new in it."""

    room: str
    """The room."""
    unread: int
    """How many messages of others are unread."""
    mentions: int
    """How many of them mention you."""
    invited: bool
    """Whether you were invited and have not entered yet."""


class Digest(Struct, frozen=True, omit_defaults=True):
    """What is unread, and the rooms where someone waits for you: who mentions or invites you."""

    total_unread: int
    threads_with_unread: int
    recent_senders: list[str]
    urgent_count: int
    more_senders: int | None = None
    rooms: list[UnreadRoom] | None = None


class ThreadDone(Struct, frozen=True, omit_defaults=True):
    """The id of a changed thread, and a sentence that says what was done."""

    thread_id: str
    message: str


class ThreadState(Struct, frozen=True, omit_defaults=True):
    """A thread, and the state it is in now."""

    thread_id: str
    state: str
    message: str


class Contact(Struct, frozen=True, omit_defaults=True):
    """Someone in a list of contacts."""

    handle: str
    display_name: str
    nickname: str
    added_at: int


class ContactPage(Struct, frozen=True, omit_defaults=True):
    """Some contacts by handle, and the cursor of the next ones if there are more."""

    contacts: list[Contact]
    next_cursor: str | None


class ContactAdded(Struct, frozen=True, omit_defaults=True):
    """The new contact."""

    contact: str
    nickname: str
    message: str


class ContactRemoved(Struct, frozen=True, omit_defaults=True):
    """The removed contact."""

    contact: str
    message: str


class PublicProfile(Struct, frozen=True, omit_defaults=True):
    """A profile as others see it."""

    handle: str
    display_name: str
    bio: str
    status: str
    account_type: str
    public_key: str
    client_public_key: str | None
    payload_formats: list[str]


class FoundUser(Struct, frozen=True, omit_defaults=True):
    """One result of a search; of a `contacts_only` profile only the names."""

    handle: str
    display_name: str
    bio: str | None = None
    account_type: str | None = None


class FoundUsers(Struct, frozen=True, omit_defaults=True):
    """The results of a search."""

    results: list[FoundUser]


class Blocked(Struct, frozen=True, omit_defaults=True):
    """A handle, and whether it was blocked or unblocked."""

    handle: str
    action: str
    message: str


class BlockedPage(Struct, frozen=True, omit_defaults=True):
    """Some handles of people who are blocked, and the cursor of the next ones if there are
    more.
    """

    blocked: list[str]
    next_cursor: str | None


class InviteMade(Struct, frozen=True, omit_defaults=True):
    """An invite, and where it leads."""

    invite_code: str
    invite_url: str
    message: str


class OpenInvite(Struct, frozen=True, omit_defaults=True):
    """An invite that nobody has used yet, without its code."""

    id: str
    created_at: int
    until: int | None
    handle: str | None
    invited_by: str | None
    has_message: bool


class OpenInvites(Struct, frozen=True, omit_defaults=True):
    """Invitations that nobody has used yet, the newest first."""

    invites: list[OpenInvite]
    next_cursor: str | None


class RoomPolicy(Struct, frozen=True, omit_defaults=True):
    """What a room decides for itself; where a time or an amount is 0, the hub decides."""

    quorum: int
    """How many different participants must reject a proposal to close it."""
    proposal_seconds: float
    """How long a proposal is open, in seconds."""
    request_seconds: float
    """How long an answer may take, in seconds."""
    keep_messages: int
    """How many messages are kept."""
    keep_days: int
    """For how many days messages are kept; 0 is forever."""
    progress_seconds: float
    """How long an answer may take while progress is told, in seconds."""
    loop_guard: int
    """How often agents may answer each other without a person before they are held; 0 for as
    often as they like."""


class Room(Struct, frozen=True, omit_defaults=True):
    """A room as someone who may see it sees it."""

    name: str
    """The room's name."""
    access: str
    """Who may enter."""
    durable: bool
    """Whether its history is kept on the disk."""
    epoch: str
    """Changes when the numbering of messages restarts."""
    role: str | None
    """Your role in the room; null when you are not in it."""
    owners: list[str]
    """The handles of the owners."""
    capabilities: list[Any]
    """The capabilities of members."""
    policy: RoomPolicy
    """The room's own policy, including the hub's defaults."""
    participants: int
    """How many are here now, not counting backends."""
    first_seq: int
    """The `seq` from which its history is complete."""
    last_seq: int
    """The `seq` of the last message."""
    created_at: str
    """When it was made."""
    may_enter: bool
    """Whether you may enter: you are in it, it is open, or you were invited."""
    oldest_seq: int | None = None
    """The `seq` of the oldest message that is kept. Present where some messages before
    `first_seq` are kept, but not all of them."""
    grants: dict[str, list[Any]] | None = None
    """Additional capabilities of single people, by handle; shown to owners only."""
    backends: list[str] | None = None
    """The namespaces of the backends that take part; shown to members only."""
    invited: bool | None = None
    """True where you were invited and have not entered yet."""
    read_seq: int | None = None
    """The `seq` up to which you have read; present where you are in the room."""
    unread: int | None = None
    """How many messages and proposals of others you have not read: up to 100, counted among the
    last 500 messages of any kind. Present where you are in the room."""
    mentions: int | None = None
    """How many unread messages mention you: up to 100."""


class RoomPage(Struct, frozen=True, omit_defaults=True):
    """Some rooms, by name, and the cursor of the next ones if there are more."""

    rooms: list[Room]
    """By name."""
    next_cursor: str | None
    """The `cursor` of the next page; null when nothing follows."""


class Comings(Struct, frozen=True, omit_defaults=True):
    """How often someone came and left."""

    came: int
    """How often they came."""
    left: int
    """How often they left."""


class Fold(Struct, frozen=True, omit_defaults=True):
    """Messages that follow each other and that nobody needs to read, as counts."""

    first: int
    """The `seq` of the first of them."""
    last: int
    """The `seq` of the last of them."""
    protocol: int
    """How many are messages of the protocol."""
    presence: dict[str, Comings]
    """Who came and left, by name."""
    others: int
    """How many more people came or left."""


class MessagePage(Struct, frozen=True, omit_defaults=True):
    """Some messages, in their order, and which of them the room has."""

    messages: list[dict[str, Any]]
    """In order, and without a gap from `first_seq` on but for what is folded."""
    first_seq: int
    """The `seq` from which the room's history is complete."""
    last_seq: int
    """The `seq` of the last message."""
    oldest_seq: int | None = None
    """The `seq` of the oldest message that is kept. Present where some messages before
    `first_seq` are kept, but not all of them."""
    folded: list[Fold] | None = None
    """What was left out between them, with `fold`."""
    from_seq: int | None = None
    """With `fold`: everything from this `seq` on was looked at."""
    through_seq: int | None = None
    """With `fold`: everything up to this `seq` was looked at."""


class ReadRoom(Struct, frozen=True, omit_defaults=True):
    """How far you have read a room, and what is new after that."""

    room: str
    """The room."""
    read_seq: int
    """The `seq` up to which you have read."""
    unread: int
    """How many messages of others are unread."""
    mentions: int
    """How many of them mention you."""


class UnreadRooms(Struct, frozen=True, omit_defaults=True):
    """The rooms with something new in them, and the sums."""

    rooms: list[UnreadRoom]
    """Invitations first, then mentions; at most 100 rooms."""
    unread: int
    """How many messages are unread in them."""
    mentions: int
    """How many of them mention you."""
    invitations: int
    """To how many of them you are invited."""


class OfferedTools(Struct, frozen=True, omit_defaults=True):
    """The tools of participants; `to` names whose each one is."""

    room: str
    tools: list[dict[str, Any]]
    unanswered: list[str] | None = None
    left_out: int | None = None
    not_asked: int | None = None


class Proposal(Struct, frozen=True, omit_defaults=True):
    """A proposal and its state."""

    id: str
    """The id of its message: what a decision correlates."""
    seq: int
    """Its place in the history of the room."""
    kind: str
    """What is proposed."""
    proposer: str
    """Who proposed it."""
    to: list[str]
    """Who should do it; empty is anyone."""
    state: str
    """Its state."""
    created_at: str
    """When it was made."""
    expires_at: str
    """Until when it is open."""
    rejections: int
    """How many rejected it."""
    closed_by: str | None
    """Who decided, if anyone did."""
    closed_at: str | None
    """When it was closed."""
    reason: str | None = None
    """Why it should be done, if the proposer says so and the history has it."""
    message: dict[str, Any] | None = None
    """The proposal itself, as long as the history has it."""
    risk: str | None = None
    """What it can do, by what the tool says of itself."""


class ProposalPage(Struct, frozen=True, omit_defaults=True):
    """Some proposals."""

    proposals: list[Proposal]
    """The latest first."""
    next_cursor: str | None
    """The `cursor` of the next page; null when nothing follows."""


class OpenRequest(Struct, frozen=True, omit_defaults=True):
    """An open request to the one who asks, and how far it has come."""

    id: str
    """The id of its message: what an answer correlates."""
    seq: int
    """Its place in the history of the room."""
    kind: str
    """What is asked."""
    requester: str
    """Who asks."""
    state: str
    """`waiting`: nobody has begun it. `running`: a connection of yours has. `interrupted`: one
    had, and did not come back."""
    expires_at: str
    """Until when it is open."""
    proposer: str | None = None
    """Whose proposal it fulfils, if any."""
    message: dict[str, Any] | None = None
    """The request itself, as long as the history has it."""


class WaitingPage(Struct, frozen=True, omit_defaults=True):
    """What waits for someone: the oldest first, and whether more follows."""

    requests: list[OpenRequest]
    """What you were asked."""
    proposals: list[Proposal]
    """What you may decide on."""
    more: bool
    """Whether more follows."""


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What came of a decision on a proposal."""

    id: str
    """The id of the proposal."""
    state: str
    """Where it stands now; still `open` where more must reject it."""
    by: str
    """Who decided."""
    seq: int
    """The place of the message that decided."""
    decision: str
    """The id of that message: a request, or a rejection."""
    to: str | None = None
    """Who was asked to do it."""
    result: dict[str, Any] | None = None
    """What was answered, once it was."""
    error: dict[str, Any] | None = None
    """Why it failed, if it did."""
    reason: str | None = None
    """Why it was rejected."""
    rejections: int | None = None
    """How many rejected it."""


class Invitation(Struct, frozen=True, omit_defaults=True):
    """What an inviter is answered: a guest's token is told here and nowhere else."""

    room: str
    """The room."""
    handle: str | None = None
    """Who may come in now."""
    guest: str | None = None
    """The guest's name."""
    token: str | None = None
    """The token with which the guest enters, once. It is shown to nobody else."""
    expires_at: str | None = None
    """Until when the token is valid."""


class OpenInvitation(Struct, frozen=True, omit_defaults=True):
    """Someone whom a room waits for: a guest, or an account that has not come yet."""

    handle: str | None
    """The handle, for someone with an account."""
    guest: str | None
    """The name, for someone without one."""
    invited_by: str | None
    """The handle of whoever invited the guest; null if that is not known."""
    expires_at: str | None
    """Until when a guest's invitation can be used."""


class OpenInvitations(Struct, frozen=True, omit_defaults=True):
    """Whom a room waits for, by name; at most 1,000 guests and 1,000 handles."""

    invitations: list[OpenInvitation]


class Participant(Struct, frozen=True, omit_defaults=True):
    """Someone who is here."""

    id: str
    """The handle, a guest's name, or a backend's namespace."""
    type: str
    """Who acts."""
    role: str
    """As what."""
    offers_tools: bool | None
    """Whether a connection of it joined with `serve=1`, or it is a backend; null for one that
    takes part through tools, and may answer by hand."""


class AwayMember(Struct, frozen=True, omit_defaults=True):
    """A member or a guest of a room who is not there now."""

    id: str
    """The handle, or a guest's name."""
    type: str
    """Who it is."""
    role: str
    """As what."""


class ParticipantPage(Struct, frozen=True, omit_defaults=True):
    """A page of the participants."""

    participants: list[Participant]
    """By id."""
    next_cursor: str | None
    """The `cursor` of the next page; null when nothing follows."""
    away: list[AwayMember] | None = None
    """Members and guests who are not here now, by id; on the first page. Of a room with more than
    1,000 members, those among the first 1,000."""


class Guest(Struct, frozen=True, omit_defaults=True):
    """A guest who may enter."""

    credential: str | None
    """The guest's token from now on, for this room only; null for a page of the hub, whose
    browser keeps it where no page reads it."""
    guest: str
    """The guest's name."""
    room: str
    """The room."""


class RoomGrant(Struct, frozen=True, omit_defaults=True):
    """What someone was granted by a message, and still holds."""

    id: str
    """The id of the grant's message: what a revocation names."""
    recipient: str
    """Who holds it."""
    granter: str | None
    """Who granted it; null when they are gone."""
    capabilities: list[Any]
    """What was granted."""


class RoomRights(Struct, frozen=True, omit_defaults=True):
    """The rights in a room by role, and the grants."""

    roles: dict[str, list[Any]]
    """What everyone of a role holds, by role."""
    grants: list[RoomGrant]
    """What was granted by messages, the oldest first."""


class Held(Struct, frozen=True, omit_defaults=True):
    """A held message as people see it: everything in one line, nothing hidden."""

    id: int
    since: float
    direction: str
    type: str
    method: str
    tool: str
    session: str
    rule: str
    reason: str
    until: float | None
    preview: str
    who: str
    proxy: int | None


class ChangedTool(Struct, frozen=True, omit_defaults=True):
    """A tool that has changed or is new, and waits to be accepted."""

    namespace: str
    name: str
    canonical: str
    changed_hash: str
    new: bool
    findings: list[str]
    since: int
    lines: list[str]
    pinned: dict[str, Any] | None
    changed: dict[str, Any] | None


class Ask(Struct, frozen=True, omit_defaults=True):
    """Something that waits for a decision."""

    id: str
    """Its id in this list."""
    kind: str
    risk: str
    """What it may do, as far as that is known; the riskiest are first."""
    what: str
    """What would be done, in short."""
    by: str
    """Who asks for it; empty where nobody knows."""
    to: list[str]
    """Who would do it; empty is anyone."""
    since: str
    """Since when it waits."""
    until: str | None
    """When it ends by itself; null for never."""
    may: list[str]
    """What you may do: `approve`, `reject`, `release`, `drop`, `accept`."""
    room: str | None = None
    proposal: Proposal | None = None
    held: Held | None = None
    tool: ChangedTool | None = None


class Counts(Struct, frozen=True, omit_defaults=True):
    """How many of each kind wait."""

    proposal: int
    held: int
    tool: int


class Asks(Struct, frozen=True, omit_defaults=True):
    """What waits, the riskiest first."""

    asks: list[Ask]
    count: int
    """How many there are of what was asked for."""
    counts: Counts
    """How many there are of each kind."""
    complete: bool
    """False if so much is open that some of it was not looked at."""
    next_cursor: str | None


class Decision(Struct, frozen=True, omit_defaults=True):
    """One decision and its outcome."""

    id: str
    at: str
    kind: str
    decision: str
    """What you decided."""
    what: str
    """What it was about, in short."""
    about: str
    """The id of the proposal or message, or the tool."""
    by: str | None
    """Who had asked; null if they are gone."""
    room: str | None
    """The room; null if it was in none."""
    server: str | None
    """The server of a tool, or the proxy that held a message."""
    seq: int | None
    """The place of your decision in the room."""
    reason: str | None
    """Why, in your words."""
    outcome: str
    """What came of it. Of an approval: `waiting`, then `answered`, `failed` or `cancelled`. Of a
    rejection: how the proposal stands. Else what was decided."""
    ended_at: str | None
    """When it came of it; null if not yet."""


class Decisions(Struct, frozen=True, omit_defaults=True):
    """The caller's decisions, latest first."""

    decisions: list[Decision]
    next_cursor: str | None


class Credential(Struct, frozen=True, omit_defaults=True):
    """A token as its owner sees it."""

    id: str
    """What it is revoked by."""
    kind: str
    """`token`, `browser` for a browser that is signed in, or `app` for a connected app."""
    label: str
    """What it is for."""
    scope: str
    """What it may do: `*`, or scopes such as `mail.read rooms:square`."""
    created_at: int
    """When it was created, in seconds since 1970."""
    used_at: int | None
    """When it was last used; at most minutes behind."""
    expires_at: int | None
    """When it expires; null is never."""
    current: bool
    """Whether this request was made with it."""


class Tokens(Struct, frozen=True, omit_defaults=True):
    """What opens an account: its tokens, browsers and apps."""

    tokens: list[Credential]
    """The oldest first."""


class CreatedCredential(Struct, frozen=True, omit_defaults=True):
    """A token that was made."""

    id: str
    """What it is revoked by."""
    kind: str
    """`token`, `browser` for a browser that is signed in, or `app` for a connected app."""
    label: str
    """What it is for."""
    scope: str
    """What it may do: `*`, or scopes such as `mail.read rooms:square`."""
    created_at: int
    """When it was created, in seconds since 1970."""
    used_at: int | None
    """When it was last used; at most minutes behind."""
    expires_at: int | None
    """When it expires; null is never."""
    current: bool
    """Whether this request was made with it."""
    token: str
    """The token itself. It is not shown again."""


class ActivityLine(Struct, frozen=True, omit_defaults=True):
    """Something that was done by an account, or refused to it."""

    id: int
    at: float
    action: str
    about: str
    outcome: str | None
    room: str | None
    server: str | None
    credential_id: str | None
    seconds: float | None


class Activity(Struct, frozen=True, omit_defaults=True):
    """What an account did, the newest first."""

    lines: list[ActivityLine]


class CreatedCode(Struct, frozen=True, omit_defaults=True):
    """A code that opens one session."""

    code: str
    """The code. It is not shown again."""
    expires_at: int
    """When it can no longer be used, in seconds since 1970."""
    url: str
    """The page that uses it. Open it in the browser to be signed in."""


class AccessReason(Struct, frozen=True, omit_defaults=True):
    """One capability about a server, and its origin."""

    capability: Any
    why: str
    origin: str
    name: str | None = None
    at: int | None = None
    denies: bool | None = None


class MyServer(Struct, frozen=True, omit_defaults=True):
    """A server the caller may use."""

    namespace: str
    state: str
    why: str
    tools: int
    reasons: list[AccessReason]


class MyServers(Struct, frozen=True, omit_defaults=True):
    """The servers the caller may use, by namespace."""

    servers: list[MyServer]


class ServerTool(Struct, frozen=True, omit_defaults=True):
    """A tool of a server, with its name on this hub."""

    name: str
    own: str
    title: str
    description: str
    schema: dict[str, Any]
    annotations: dict[str, Any]
    risk: str
    held: str
    findings: list[str]
    may_call: bool


class MyTools(Struct, frozen=True, omit_defaults=True):
    """A server the caller may use, with a page of the tools they may call."""

    server: MyServer
    tools: list[ServerTool]
    next: str | None


class TriedTool(Struct, frozen=True, omit_defaults=True):
    """The answer of a tool."""

    seconds: float
    result: dict[str, Any] | None
    error: dict[str, Any] | None


class Connection(Struct, frozen=True, omit_defaults=True):
    """A server that wants its own sign-in, as it is for the caller."""

    namespace: str
    """The server."""
    state: str
    """Whether you are signed in; `lapsed` is a sign-in that the server takes no more."""
    issuer: str
    """Where you signed in; empty for not yet."""
    scope: str
    """What was asked for there."""
    since: int | None
    """When you did, in seconds since 1970."""
    shared: bool
    """Whether one sign-in is for everyone."""
    may_sign_in: bool
    """Whether you can sign in; a shared one is for operators."""


class ConnectionList(Struct, frozen=True, omit_defaults=True):
    """The servers that want their own sign-in."""

    connections: list[Connection]
    """By namespace."""


class ConnectionBegun(Struct, frozen=True, omit_defaults=True):
    """Where to sign in."""

    url: str
    """Where to go, in a browser."""


class TapeRow(Struct, frozen=True, omit_defaults=True):
    """One tape."""

    name: str
    place: str
    path: str
    bytes: int
    modified_at: float
    started: str
    ended: str | None
    recording: bool
    messages: int | None
    client: str
    server: str
    compressed: bool
    redaction_key: str


class TapeRows(Struct, frozen=True, omit_defaults=True):
    """Some tapes, the last written first."""

    tapes: list[TapeRow]
    next_cursor: str | None


class TapeEntries(Struct, frozen=True, omit_defaults=True):
    """Some lines of a tape, each an object as the tape format has it."""

    entries: list[dict[str, Any]]
    next_cursor: str | None


class TapeMessage(Struct, frozen=True, omit_defaults=True):
    """One message in a timeline."""

    offset: int
    bytes: int
    seq: int | None
    time: float | None
    direction: str
    shape: str
    method: str
    name: str
    summary: str
    failed: bool
    request: int | None
    seconds: float | None
    verdict: str
    by: str
    redacted: int


class TapeTimeline(Struct, frozen=True, omit_defaults=True):
    """Some messages of a tape, in their order."""

    messages: list[TapeMessage]
    next_cursor: str | None
    previous_cursor: str | None
    begin: int
    end: int
    size: int | None
    recording: bool


class TapePair(Struct, frozen=True, omit_defaults=True):
    """One message in full, in the tape format, with the other half of its call."""

    line: dict[str, Any]
    other: dict[str, Any] | None
    outcome: str
    seconds: float | None
    complete: bool


class TapeCall(Struct, frozen=True, omit_defaults=True):
    """A request."""

    seq: int
    offset: int
    time: float
    from_client: bool
    method: str
    name: str
    asked: str


class TapeAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer to a request, which may have been on an earlier page."""

    request: int
    seconds: float
    outcome: str
    said: str


class TapeCalls(Struct, frozen=True, omit_defaults=True):
    """Some requests and answers of a tape."""

    calls: list[TapeCall]
    answers: list[TapeAnswer]
    messages: int
    next_cursor: str | None
    end: int
    size: int | None
    recording: bool


class Use(Struct, frozen=True, omit_defaults=True):
    """How much of a quota of the hub is used; a limit of 0 is none."""

    used: int
    limit: int


class FreeDisk(Struct, frozen=True, omit_defaults=True):
    """How many bytes are free where the hub stores, and how many must stay free."""

    free: int
    least: int


class HubStatus(Struct, frozen=True, omit_defaults=True):
    """Who runs here, since when, and how much of each quota is used."""

    pid: int
    version: str
    uptime: float
    url: str
    quotas: dict[str, Use]
    disk: FreeDisk | None


class Checked(Struct, frozen=True, omit_defaults=True):
    """What is wrong with the database."""

    whole: bool
    faults: list[str]


class ShownSetting(Struct, frozen=True, omit_defaults=True):
    """A setting as it is in effect, and where it comes from; secrets are masked."""

    value: Any
    origin: str


class ShownSettings(Struct, frozen=True, omit_defaults=True):
    """All settings by their paths."""

    file: str | None
    settings: dict[str, ShownSetting]


class RoomOfHub(Struct, frozen=True, omit_defaults=True):
    """A room as the operator sees it."""

    name: str
    owner: str | None
    access: str
    durable: bool
    members: int
    messages: int
    bytes: int
    created_at: int
    last_at: float | None
    present: int


class RoomRows(Struct, frozen=True, omit_defaults=True):
    """A page of rooms by name."""

    rooms: list[RoomOfHub]
    next: str | None


class ListedNode(Struct, frozen=True, omit_defaults=True):
    """A node as an operator sees it."""

    name: str
    process: str
    address: str
    version: str
    started_at: float
    lease_seconds: float
    rooms: int
    draining: bool
    drained: bool
    differing: list[str]


class HubNodes(Struct, frozen=True, omit_defaults=True):
    """The nodes of the hub; none where its database is a file."""

    nodes: list[ListedNode]


class DrainedNode(Struct, frozen=True, omit_defaults=True):
    """The node that gives its rooms away."""

    node: ListedNode


class AuditLine(Struct, frozen=True, omit_defaults=True):
    """One line of the audit log; unknown fields are left out."""

    id: int
    at: float
    action: str
    by: str
    about: str
    name: str | None = None
    detail: dict[str, Any] | None = None
    account: str | None = None
    outcome: str | None = None
    room: str | None = None
    server: str | None = None
    credential_id: str | None = None
    request: str | None = None
    seconds: float | None = None


class AuditLines(Struct, frozen=True, omit_defaults=True):
    """Lines of the audit log, the newest first unless others are asked for."""

    lines: list[AuditLine]


class PersonRow(Struct, frozen=True, omit_defaults=True):
    """An account as the operator sees it in a list."""

    handle: str
    display_name: str
    account_type: str
    created_at: int
    suspended_at: int | None
    operator_since: int | None
    mail_bytes: int
    room_bytes: int
    rooms: int
    seen_at: int | None


class PersonRows(Struct, frozen=True, omit_defaults=True):
    """A page of accounts by handle."""

    people: list[PersonRow]
    next: str | None


class PersonDetails(Struct, frozen=True, omit_defaults=True):
    """One account as the operator sees it."""

    handle: str
    display_name: str
    account_type: str
    created_at: int
    suspended_at: int | None
    operator_since: int | None
    mail_bytes: int
    room_bytes: int
    rooms: int
    seen_at: int | None
    bio: str
    privacy: str
    quotas: dict[str, Use]


class AddedPerson(Struct, frozen=True, omit_defaults=True):
    """A new account, and what opens it; neither secret is shown again."""

    handle: str
    token: str
    recovery_code: str
    hub: str


class SuspendedPerson(Struct, frozen=True, omit_defaults=True):
    """Whether an account was changed, and since when it is suspended."""

    handle: str
    changed: bool
    suspended_at: int | None


class OperatorPerson(Struct, frozen=True, omit_defaults=True):
    """Whether anything was changed, and since when an account is an operator."""

    handle: str
    changed: bool
    operator_since: int | None


class RemovedPerson(Struct, frozen=True, omit_defaults=True):
    """Who was removed."""

    handle: str


class HeldCapability(Struct, frozen=True, omit_defaults=True):
    """A capability and where it is from."""

    capability: Any
    origin: str
    name: str | None = None
    at: int | None = None


class GrantRow(Struct, frozen=True, omit_defaults=True):
    """The number of someone's grants."""

    handle: str
    state: str
    leads_to: str | None
    groups: list[str]
    settings: int
    granted: int


class Overview(Struct, frozen=True, omit_defaults=True):
    """What everyone holds, and a page of those who hold more, by handle."""

    everyone: list[HeldCapability]
    people: list[GrantRow]
    next: str | None


class Person(Struct, frozen=True, omit_defaults=True):
    """All rights of one handle; without an account, those that wait for it."""

    handle: str
    account: str | None
    account_type: str | None
    held: list[HeldCapability]


class Granted(Struct, frozen=True, omit_defaults=True):
    """The new grants, those that existed already, and warnings about likely mistakes."""

    handle: str
    granted: list[str]
    already: list[str]
    warnings: list[str]


class Revoked(Struct, frozen=True, omit_defaults=True):
    """The revoked grants."""

    handle: str
    revoked: list[str]


class Access(Struct, frozen=True, omit_defaults=True):
    """What someone may use of a server, and why."""

    may: str
    tools: int
    reasons: list[AccessReason]
    names: list[str]


class ServerShare(Struct, frozen=True, omit_defaults=True):
    """What someone can use of one server."""

    namespace: str
    tools: int
    access: Access


class Explained(Struct, frozen=True, omit_defaults=True):
    """Whether someone can call a tool, in one sentence, and what changes it."""

    tool: str
    may: str
    sentence: str
    change: str


class AccessOf(Struct, frozen=True, omit_defaults=True):
    """What someone can use of each server."""

    handle: str
    servers: list[ServerShare]
    answer: Explained | None


class InvitedHandle(Struct, frozen=True, omit_defaults=True):
    """An invite for one handle; it is not shown again."""

    handle: str
    invite_code: str
    invite_url: str
    until: int


class Group(Struct, frozen=True, omit_defaults=True):
    """A group: who is in it, and what it can use of each server."""

    name: str
    members: list[str]
    from_company: list[str]
    servers: list[ServerShare]


class Groups(Struct, frozen=True, omit_defaults=True):
    """The groups, by name."""

    groups: list[Group]


class Servers(Struct, frozen=True, omit_defaults=True):
    """Every server: its state, what it offers, and how it is used."""

    backends: list[dict[str, Any]]
    editable: bool


class Reloaded(Struct, frozen=True, omit_defaults=True):
    """What reading the settings again came to; servers are told by their namespaces."""

    file: str | None
    backends: int
    added: list[str]
    removed: list[str]
    changed: list[str]
    rights: bool
    restart: list[str]
    notes: list[str]


class ChangedTools(Struct, frozen=True, omit_defaults=True):
    """A page of changed tools, their number, and the servers not reached yet."""

    tools: list[ChangedTool]
    count: int
    starting: list[str]


class AcceptedTools(Struct, frozen=True, omit_defaults=True):
    """The names of tools that are shown again."""

    accepted: list[str]


class ShownServer(Struct, frozen=True, omit_defaults=True):
    """A server, and a page of its tools by name."""

    server: dict[str, Any]
    instructions: str
    everyone: bool
    trusted: bool
    tools: list[ServerTool]
    next: str | None


class ServerHistory(Struct, frozen=True, omit_defaults=True):
    """The calls of one server; every list has a value for each minute, the oldest first."""

    namespace: str
    calls: list[int]
    errors: list[int]
    refused: list[int]
    mean_ms: list[float | None]
    slowest_ms: list[float | None]


class Histories(Struct, frozen=True, omit_defaults=True):
    """What came of calls, minute by minute; the minutes since a server was started, at most."""

    until: int
    seconds: int
    count: int
    servers: list[ServerHistory]


class GroupAccess(Struct, frozen=True, omit_defaults=True):
    """One group's access to a server."""

    name: str
    members: int
    access: Access


class PersonAccess(Struct, frozen=True, omit_defaults=True):
    """One handle's access to a server."""

    handle: str
    account: bool
    access: Access


class ServerAccess(Struct, frozen=True, omit_defaults=True):
    """Who can use a server, and why: everyone, groups, and a page of people with their own."""

    namespace: str
    tools: int
    everyone: Access
    groups: list[GroupAccess]
    people: list[PersonAccess]
    next: str | None


class Named(Struct, frozen=True, omit_defaults=True):
    """One item of a server: its name at the hub, and its own name."""

    name: str
    own: str
    findings: list[str]


class Tried(Struct, frozen=True, omit_defaults=True):
    """What came of a test."""

    ok: bool
    namespace: str
    transport: str
    target: str
    why: str
    seconds: float
    server: str
    version: str
    era: str
    tools: list[Named]
    prompts: list[Named]
    resources: list[Named]
    templates: list[Named]
    faults: list[str]
    advice: str


class TestedServer(Struct, frozen=True, omit_defaults=True):
    """What came of a test, and what should be known of the description."""

    tried: Tried
    notes: list[str]


class AddedServer(Struct, frozen=True, omit_defaults=True):
    """A server that was tested, saved and started."""

    namespace: str
    file: str
    tried: Tried
    notes: list[str]


class RemovedServer(Struct, frozen=True, omit_defaults=True):
    """A server that is gone; the accepted versions of its tools are kept."""

    namespace: str
    file: str


class ServerSettings(Struct, frozen=True, omit_defaults=True):
    """What can be changed of a server while the hub runs."""

    namespace: str
    everyone: bool
    trusted: bool
    enabled: bool


class RestartedServer(Struct, frozen=True, omit_defaults=True):
    """A server that is being reached anew."""

    namespace: str


class Rule(Struct, frozen=True, omit_defaults=True):
    """A rule, as its file has it."""

    name: str
    when: dict[str, Any]
    action: str
    options: dict[str, Any]


class RuleList(Struct, frozen=True, omit_defaults=True):
    """The rules in their order, and their file; none where the hub has none."""

    file: str | None
    rules: list[Rule]


class HeldList(Struct, frozen=True, omit_defaults=True):
    """What is held, the longest waiting first."""

    held: list[Held]
    proxies: int | None


class HeldMessage(Struct, frozen=True, omit_defaults=True):
    """One held message in full."""

    message: dict[str, Any]
    held: Held


class Released(Struct, frozen=True, omit_defaults=True):
    """What goes on."""

    released: Held


class Dropped(Struct, frozen=True, omit_defaults=True):
    """A held message that was dropped."""

    dropped: Held


class KeptBackup(Struct, frozen=True, omit_defaults=True):
    """A backup in the data folder."""

    name: str
    size: int
    at: int


class KeptBackups(Struct, frozen=True, omit_defaults=True):
    """The newest backups in the data folder, and when the hub made one last, wherever it is."""

    folder: str | None
    last_at: int | None
    backups: list[KeptBackup]


class BackedUp(Struct, frozen=True, omit_defaults=True):
    """A finished backup, with a warning about its key."""

    path: str
    size: int
    master_key_id: str | None
    warning: str


class ExportedPerson(Struct, frozen=True, omit_defaults=True):
    """What was written; `said` is how many messages to rooms."""

    handle: str
    threads: int
    messages: int
    rooms: int
    said: int


class KeyInUse(Struct, frozen=True, omit_defaults=True):
    """The id of the master key, and where it comes from."""

    id: str
    source: str


class RotatedKey(Struct, frozen=True, omit_defaults=True):
    """A change of the master key, told by the ids of the keys."""

    old: str
    new: str
    settled: bool
    kept: str | None
    withdrawn: str | None


class CancelledRotation(Struct, frozen=True, omit_defaults=True):
    """The key that is awaited no more."""

    cancelled: str


class Hub(Http):
    """A hub, asked over HTTP: a method for each route.

    Methods wait for their answer; in asyncio, call them with `asyncio.to_thread`.
    """

    def create_account(
        self,
        handle: str,
        *,
        client_public_key: str | None = None,
        invite_code: str | None = None,
        account_type: Literal["person", "agent"] | None = None,
    ) -> Registration:
        """Register an account.

        Keep the recovery code: it is the only way back if the token is lost.
        """
        return self.ask("POST", "/v1/accounts", Registration, locals())

    def recover_account(self, handle: str, recovery_code: str) -> Recovery:
        """Get an account back."""
        return self.ask("POST", "/v1/accounts/recover", Recovery, locals())

    def get_account(self) -> OwnAccount:
        """Read your own account."""
        return self.ask("GET", "/v1/me", OwnAccount)

    def change_profile(
        self,
        *,
        display_name: str | None = None,
        bio: str | None = None,
        privacy: Literal["public", "contacts_only", "private"] | None = None,
        status: str | None = None,
        client_public_key: str | None = None,
        payload_formats: list[str] | None = None,
    ) -> ProfileChange:
        """Change your profile."""
        return self.ask("PATCH", "/v1/me", ProfileChange, locals())

    def change_handle(self, new_handle: str) -> HandleChanged:
        """Change your handle."""
        return self.ask("PUT", "/v1/me/handle", HandleChanged, locals())

    def delete_account(self, confirm: str) -> AccountDeleted:
        """Delete your account."""
        return self.ask("DELETE", "/v1/me", AccountDeleted, locals())

    def export_me(self, file: IO[bytes]) -> None:
        """Download everything the hub keeps of you."""
        self.ask("GET", "/v1/me/export", None, into=file)

    def send_message(
        self,
        to: str,
        *,
        body: str | None = None,
        encrypted_payload: dict[str, Any] | None = None,
        priority: Literal["urgent", "normal", "low", "fyi"] | None = None,
        reply_to: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Send a message."""
        return self.ask("POST", "/v1/messages", Sent, locals())

    def list_messages(
        self,
        *,
        thread_id: str | None = None,
        limit: int | None = None,
        before: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> Messages:
        """Read your messages."""
        return self.ask("GET", "/v1/messages", Messages, locals(), wait=wait or 0)

    def reply_to_message(
        self,
        message_id: str,
        *,
        body: str | None = None,
        encrypted_payload: dict[str, Any] | None = None,
        priority: Literal["urgent", "normal", "low", "fyi"] | None = None,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Reply to a message."""
        return self.ask("POST", "/v1/messages/{message_id}/replies", Sent, locals())

    def delete_message(self, message_id: str) -> MessageDeleted:
        """Delete your copy of a message."""
        return self.ask("DELETE", "/v1/messages/{message_id}", MessageDeleted, locals())

    def list_threads(
        self,
        *,
        state: Literal["active", "archived", "muted", "starred"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ThreadPage:
        """List your threads."""
        return self.ask("GET", "/v1/threads", ThreadPage, locals())

    def read_thread(
        self, thread_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> ThreadMessages:
        """Read a thread.

        The messages of both sides, newest first. They stay unread.
        """
        return self.ask("GET", "/v1/threads/{thread_id}", ThreadMessages, locals())

    def get_digest(self) -> Digest:
        """Read what is unread, in short."""
        return self.ask("GET", "/v1/digest", Digest)

    def delete_thread(self, thread_id: str) -> ThreadDone:
        """Delete a thread from your mailbox."""
        return self.ask("DELETE", "/v1/threads/{thread_id}", ThreadDone, locals())

    def mark_read(self, thread_id: str, *, message_ids: list[str] | None = None) -> ThreadDone:
        """Mark a thread as read."""
        return self.ask("PUT", "/v1/threads/{thread_id}/read", ThreadDone, locals())

    def archive_thread(self, thread_id: str) -> ThreadState:
        """Archive a thread."""
        return self.ask("PUT", "/v1/threads/{thread_id}/archive", ThreadState, locals())

    def unarchive_thread(self, thread_id: str) -> ThreadState:
        """Unarchive a thread."""
        return self.ask("DELETE", "/v1/threads/{thread_id}/archive", ThreadState, locals())

    def star_thread(self, thread_id: str) -> ThreadState:
        """Star a thread."""
        return self.ask("PUT", "/v1/threads/{thread_id}/star", ThreadState, locals())

    def unstar_thread(self, thread_id: str) -> ThreadState:
        """Unstar a thread."""
        return self.ask("DELETE", "/v1/threads/{thread_id}/star", ThreadState, locals())

    def mute_thread(self, thread_id: str) -> ThreadState:
        """Mute a thread."""
        return self.ask("PUT", "/v1/threads/{thread_id}/mute", ThreadState, locals())

    def unmute_thread(self, thread_id: str) -> ThreadState:
        """Unmute a thread."""
        return self.ask("DELETE", "/v1/threads/{thread_id}/mute", ThreadState, locals())

    def list_contacts(self, *, limit: int | None = None, cursor: str | None = None) -> ContactPage:
        """List your contacts."""
        return self.ask("GET", "/v1/contacts", ContactPage, locals())

    def add_contact(self, handle: str, *, nickname: str | None = None) -> ContactAdded:
        """Add a contact."""
        return self.ask("PUT", "/v1/contacts/{handle}", ContactAdded, locals())

    def remove_contact(self, handle: str) -> ContactRemoved:
        """Remove a contact."""
        return self.ask("DELETE", "/v1/contacts/{handle}", ContactRemoved, locals())

    def look_up(self, handle: str) -> PublicProfile:
        """Look someone up."""
        return self.ask("GET", "/v1/people/{handle}", PublicProfile, locals())

    def search_people(self, query: str) -> FoundUsers:
        """Search for people."""
        return self.ask("GET", "/v1/people", FoundUsers, locals())

    def block(self, handle: str) -> Blocked:
        """Block someone."""
        return self.ask("PUT", "/v1/blocks/{handle}", Blocked, locals())

    def unblock(self, handle: str) -> Blocked:
        """Unblock someone."""
        return self.ask("DELETE", "/v1/blocks/{handle}", Blocked, locals())

    def list_blocks(self, *, limit: int | None = None, cursor: str | None = None) -> BlockedPage:
        """List whom you block."""
        return self.ask("GET", "/v1/blocks", BlockedPage, locals())

    def create_invite(self, *, message: str | None = None) -> InviteMade:
        """Invite someone to register."""
        return self.ask("POST", "/v1/invites", InviteMade, locals())

    def list_my_invites(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> OpenInvites:
        """List your open invitations."""
        return self.ask("GET", "/v1/me/invites", OpenInvites, locals())

    def list_invites(self, *, limit: int | None = None, cursor: str | None = None) -> OpenInvites:
        """List all open invitations."""
        return self.ask("GET", "/v1/invites", OpenInvites, locals())

    def withdraw_my_invite(self, invite: str) -> None:
        """Withdraw an invitation of yours."""
        self.ask("DELETE", "/v1/me/invites/{invite}", None, locals())

    def withdraw_invite(self, invite: str) -> None:
        """Withdraw anyone's invitation."""
        self.ask("DELETE", "/v1/invites/{invite}", None, locals())

    def list_rooms(self, *, limit: int | None = None, cursor: str | None = None) -> RoomPage:
        """List the rooms you can see.

        Open rooms, invite-only rooms, and private ones you are in.
        """
        return self.ask("GET", "/v1/rooms", RoomPage, locals())

    def create_room(
        self,
        name: str,
        *,
        access: Literal["open", "invite", "private"] | None = None,
        capabilities: list[Any] | UnsetType | None = UNSET,
        grants: dict[str, list[Any]] | None = None,
        policy: dict[str, Any] | None = None,
        backends: list[str] | UnsetType | None = UNSET,
        durable: bool | None = None,
    ) -> Room:
        """Create a room.

        You own it, and have the capability `*` there.
        """
        return self.ask("POST", "/v1/rooms", Room, locals(), nulls=("capabilities", "backends"))

    def read_messages(
        self,
        room: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        wait: int | None = None,
        fold: bool | None = None,
        search: str | None = None,
        sender: str | None = None,
        kind: Literal["chat", "proposal", "request", "response", "presence", "reasoning", "other"]
        | None = None,
        thread: str | None = None,
    ) -> MessagePage:
        """Read messages.

        In order: with `after` the first messages that follow it, otherwise the last ones. A page
        ends early when it comes to more than 1 MiB; one message is always shown.
        """
        return self.ask("GET", "/v1/rooms/{room}/messages", MessagePage, locals(), wait=wait or 0)

    def mark_room_read(self, room: str, *, seq: int | None = None) -> ReadRoom:
        """Mark a room as read.

        Up to the message with this `seq`, or without it all of it. Nobody else is told. It never
        moves back.
        """
        return self.ask("PUT", "/v1/rooms/{room}/read", ReadRoom, locals())

    def list_unread(self) -> UnreadRooms:
        """List the rooms with something new.

        Rooms you are in with unread messages or mentions, and those you are invited to. Mail has
        `GET /v1/digest`.
        """
        return self.ask("GET", "/v1/unread", UnreadRooms)

    def post_message(self, room: str, message: dict[str, Any]) -> dict[str, Any]:
        """Say something."""
        return self.ask(
            "POST", f"/v1/rooms/{quote(room, safe='')}/messages", dict[str, Any], body=message
        )

    def list_room_tools(
        self, room: str, *, to: str | None = None, wait: int | None = None
    ) -> OfferedTools:
        """List the tools of participants.

        Everyone who serves tools is asked; the room's history has nothing of it.
        """
        return self.ask("GET", "/v1/rooms/{room}/tools", OfferedTools, locals(), wait=wait or 0)

    def list_proposals(
        self,
        room: str,
        *,
        state: Literal["open", "fulfilled", "rejected", "withdrawn", "expired"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ProposalPage:
        """List proposals and their outcomes.

        The latest first.
        """
        return self.ask("GET", "/v1/rooms/{room}/proposals", ProposalPage, locals())

    def get_proposal(self, room: str, proposal: str) -> Proposal:
        """Read one proposal and what came of it.

        With its message, as long as the history has it.
        """
        return self.ask("GET", "/v1/rooms/{room}/proposals/{proposal}", Proposal, locals())

    def list_waiting(
        self, room: str, *, after: int | None = None, limit: int | None = None
    ) -> WaitingPage:
        """List what waits for you.

        Open requests to you, and open proposals that you may decide on, the oldest first. A page
        ends early when it comes to more than 1 MiB; where `more` is true, go on with `after` the
        greatest `seq` of it.
        """
        return self.ask("GET", "/v1/rooms/{room}/waiting", WaitingPage, locals())

    def approve_proposal(
        self, room: str, proposal: str, *, to: str | None = None, wait: int | None = None
    ) -> Outcome:
        """Approve a proposal.

        The request that was proposed is made in your name and by your right to it, and the answer
        says what came of it. It needs no body. Where the one who is asked takes longer than
        `wait`, the answer has neither `result` nor `error`.
        """
        return self.ask(
            "POST",
            f"/v1/rooms/{quote(room, safe='')}/proposals/{quote(proposal, safe='')}/approve",
            Outcome,
            query={"to": to, "wait": wait},
        )

    def reject_proposal(self, room: str, proposal: str, reason: str) -> Outcome:
        """Reject a proposal.

        Everyone in the room reads the reason.
        """
        return self.ask("POST", "/v1/rooms/{room}/proposals/{proposal}/reject", Outcome, locals())

    def invite(
        self,
        room: str,
        *,
        handle: str | None = None,
        guest: str | None = None,
        capabilities: list[Any] | None = None,
    ) -> Invitation:
        """Invite someone.

        By handle, or someone without an account as a guest. It appears in the room as
        `room.invite`, and needs that capability; the guest's token is shown to you alone.
        """
        return self.ask("POST", "/v1/rooms/{room}/invites", Invitation, locals())

    def list_invitations(self, room: str) -> OpenInvitations:
        """List a room's open invitations."""
        return self.ask("GET", "/v1/rooms/{room}/invites", OpenInvitations, locals())

    def withdraw_invitation(self, room: str, invited: str) -> None:
        """Withdraw an invitation into a room."""
        self.ask("DELETE", "/v1/rooms/{room}/invites/{invited}", None, locals())

    def get_room(self, room: str) -> Room:
        """Read a room's settings."""
        return self.ask("GET", "/v1/rooms/{room}", Room, locals())

    def change_room(
        self,
        room: str,
        *,
        access: Literal["open", "invite", "private"] | None = None,
        capabilities: list[Any] | UnsetType | None = UNSET,
        grants: dict[str, list[Any]] | None = None,
        policy: dict[str, Any] | None = None,
        backends: list[str] | UnsetType | None = UNSET,
        owners: list[str] | None = None,
    ) -> Room:
        """Change a room's settings."""
        return self.ask(
            "PATCH", "/v1/rooms/{room}", Room, locals(), nulls=("capabilities", "backends")
        )

    def delete_room(self, room: str) -> None:
        """Delete a room and its history."""
        self.ask("DELETE", "/v1/rooms/{room}", None, locals())

    def list_participants(
        self, room: str, *, limit: int | None = None, cursor: str | None = None
    ) -> ParticipantPage:
        """List who is here now, and who is away."""
        return self.ask("GET", "/v1/rooms/{room}/participants", ParticipantPage, locals())

    def exchange_invitation(self, room: str, token: str) -> Guest:
        """Enter as a guest."""
        return self.ask("POST", "/v1/rooms/{room}/guests", Guest, locals())

    def list_rights(self, room: str) -> RoomRights:
        """List who may do what in a room."""
        return self.ask("GET", "/v1/rooms/{room}/grants", RoomRights, locals())

    def grant_in_room(
        self, room: str, recipient: str, capabilities: list[Any], *, reason: str | None = None
    ) -> dict[str, Any]:
        """Give someone in a room more rights."""
        return self.ask("POST", "/v1/rooms/{room}/grants", dict[str, Any], locals())

    def revoke_in_room(
        self,
        room: str,
        *,
        recipient: str | None = None,
        grant_id: str | None = None,
        capabilities: list[Any] | None = None,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Take rights in a room back."""
        return self.ask("POST", "/v1/rooms/{room}/revocations", dict[str, Any], locals())

    def kick(self, room: str, participant: str, *, reason: str | None = None) -> dict[str, Any]:
        """Remove someone from a room."""
        return self.ask(
            "DELETE", "/v1/rooms/{room}/participants/{participant}", dict[str, Any], locals()
        )

    def list_asks(
        self,
        *,
        kind: Literal["proposal", "held", "tool"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Asks:
        """List what waits for your decision.

        Proposals in all your rooms that you may decide on; for operators also messages that a
        rule holds, and tools that changed or are new. The riskiest are first, then those that end
        soonest. `limit=0` only counts.
        """
        return self.ask("GET", "/v1/asks", Asks, locals())

    def list_decisions(self, *, limit: int | None = None, cursor: str | None = None) -> Decisions:
        """List what you decided."""
        return self.ask("GET", "/v1/decisions", Decisions, locals())

    def list_credentials(self) -> Tokens:
        """List your tokens.

        Without their secrets.
        """
        return self.ask("GET", "/v1/me/credentials", Tokens)

    def list_credentials_of(self, handle: str) -> Tokens:
        """List someone's tokens."""
        return self.ask("GET", "/v1/people/{handle}/credentials", Tokens, locals())

    def create_credential(
        self,
        *,
        label: str | None = None,
        expires_in: int | None = None,
        scope: str | None = None,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
    ) -> CreatedCredential:
        """Create a token."""
        return self.ask(
            "POST",
            "/v1/me/credentials",
            CreatedCredential,
            body={
                "label": label,
                "expires_in": expires_in,
                "scope": scope,
                "ticket": ticket,
                "passkey": passkey,
            },
            headers={"folkmoot-confirm": token},
        )

    def create_credential_for(
        self,
        handle: str,
        *,
        label: str | None = None,
        expires_in: int | None = None,
        scope: str | None = None,
    ) -> CreatedCredential:
        """Create a token for someone."""
        return self.ask("POST", "/v1/people/{handle}/credentials", CreatedCredential, locals())

    def revoke_credential(self, credential: str) -> None:
        """Revoke a token."""
        self.ask("DELETE", "/v1/me/credentials/{credential}", None, locals())

    def revoke_credential_of(self, handle: str, credential: str) -> None:
        """Revoke someone's token."""
        self.ask("DELETE", "/v1/people/{handle}/credentials/{credential}", None, locals())

    def read_activity(
        self, *, limit: int | None = None, before: int | None = None, credential: str | None = None
    ) -> Activity:
        """Read your activity."""
        return self.ask("GET", "/v1/me/activity", Activity, locals())

    def create_code(self) -> CreatedCode:
        """Create a link that signs a browser in."""
        return self.ask("POST", "/v1/me/codes", CreatedCode)

    def create_code_for(self, handle: str, *, operate: bool | None = None) -> CreatedCode:
        """Create a link that signs a browser in for someone."""
        return self.ask("POST", "/v1/people/{handle}/codes", CreatedCode, locals())

    def describe(self) -> dict[str, Any]:
        """Read this document."""
        return self.ask("GET", "/v1/openapi.json", dict[str, Any])

    def list_my_servers(self) -> MyServers:
        """List the servers that you may use."""
        return self.ask("GET", "/v1/me/servers", MyServers)

    def list_my_tools(self, namespace: str, *, after: str | None = None) -> MyTools:
        """List the tools of a server that you may call."""
        return self.ask("GET", "/v1/me/servers/{namespace}", MyTools, locals())

    def call_tool(
        self,
        name: str,
        *,
        arguments: dict[str, Any] | None = None,
        era: Literal["stateless", "handshake"] | None = None,
    ) -> TriedTool:
        """Call a tool of a server."""
        return self.ask("POST", "/v1/tools/call", TriedTool, locals())

    def list_connections(self) -> ConnectionList:
        """List the servers that you sign in to."""
        return self.ask("GET", "/v1/me/connections", ConnectionList)

    def begin_connection(
        self, *, namespace: str | None = None, ticket: str | None = None
    ) -> ConnectionBegun:
        """Begin to sign in to a server."""
        return self.ask("POST", "/v1/me/connections", ConnectionBegun, locals())

    def forget_connection(self, namespace: str) -> None:
        """Sign out of a server."""
        self.ask("DELETE", "/v1/me/connections/{namespace}", None, locals())

    def list_tapes(self, *, limit: int | None = None, cursor: str | None = None) -> TapeRows:
        """List tapes."""
        return self.ask("GET", "/v1/tapes", TapeRows, locals())

    def read_tape(
        self,
        tape: str,
        *,
        place: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> TapeEntries:
        """Read a tape."""
        return self.ask("GET", "/v1/tapes/{tape}", TapeEntries, locals())

    def get_tape(self, tape: str, *, place: str | None = None) -> TapeRow:
        """Show one tape.

        One tape as the list has it.
        """
        return self.ask("GET", "/v1/tapes/{tape}/about", TapeRow, locals())

    def list_tape_messages(
        self,
        tape: str,
        *,
        place: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        before: str | None = None,
        last: bool | None = None,
        method: str | None = None,
        name: str | None = None,
        direction: Literal["client_to_server", "server_to_client"] | None = None,
        text: str | None = None,
        errors: bool | None = None,
    ) -> TapeTimeline:
        """Read a tape's timeline.

        Messages of a tape in a line each, from a place on, before a place, or the last ones, and
        only those that a filter accepts. At most 4 MiB of the tape are read for an answer, which
        says where to go on. A compressed tape has to be decompressed up to that place.
        """
        return self.ask("GET", "/v1/tapes/{tape}/messages", TapeTimeline, locals())

    def get_tape_message(self, tape: str, offset: int, *, place: str | None = None) -> TapePair:
        """Show a message of a tape.

        One message in full, with the request that it answers or the answer that it got, if that
        is within 4 MiB. A line of more than 512 KiB is only named.
        """
        return self.ask("GET", "/v1/tapes/{tape}/messages/{offset}", TapePair, locals())

    def list_tape_calls(
        self,
        tape: str,
        *,
        place: str | None = None,
        cursor: str | None = None,
        compare: Literal["exact", "kinds"] | None = None,
    ) -> TapeCalls:
        """List the calls of a tape.

        Requests and answers without their contents, from a place on: for statistics, and to
        compare tapes. At most 2 MiB of the tape are read for an answer.
        """
        return self.ask("GET", "/v1/tapes/{tape}/calls", TapeCalls, locals())

    def download_tape(self, tape: str, file: IO[bytes], *, place: str | None = None) -> None:
        """Download a tape.

        The whole tape as it is stored, compressed if it is.
        """
        self.ask(
            "GET", f"/v1/tapes/{quote(tape, safe='')}/file", None, query={"place": place}, into=file
        )

    def get_status(self) -> HubStatus:
        """Show the hub's status."""
        return self.ask("GET", "/v1/status", HubStatus)

    def check_database(self) -> Checked:
        """Check the database."""
        return self.ask("POST", "/v1/check", Checked)

    def get_settings(self) -> ShownSettings:
        """Show the settings."""
        return self.ask("GET", "/v1/settings", ShownSettings)

    def list_all_rooms(self, *, after: str | None = None) -> RoomRows:
        """List every room."""
        return self.ask("GET", "/v1/hub/rooms", RoomRows, locals())

    def list_nodes(self) -> HubNodes:
        """List the nodes."""
        return self.ask("GET", "/v1/nodes", HubNodes)

    def drain_node(self, *, node: str | None = None) -> DrainedNode:
        """Drain a node."""
        return self.ask("POST", "/v1/nodes/drain", DrainedNode, locals())

    def read_audit(
        self,
        *,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
        since: int | None = None,
        until: int | None = None,
        by: str | None = None,
        action: str | None = None,
        room: str | None = None,
        server: str | None = None,
        about: str | None = None,
        outcome: str | None = None,
        text: str | None = None,
    ) -> AuditLines:
        """Read the audit log."""
        return self.ask("GET", "/v1/audit", AuditLines, locals())

    def list_accounts(
        self, *, after: str | None = None, suspended: bool | None = None, text: str | None = None
    ) -> PersonRows:
        """List all accounts."""
        return self.ask("GET", "/v1/accounts", PersonRows, locals())

    def get_account_of(self, handle: str) -> PersonDetails:
        """Show an account."""
        return self.ask("GET", "/v1/accounts/{handle}", PersonDetails, locals())

    def add_account(
        self, handle: str, *, account_type: Literal["person", "agent"] | None = None
    ) -> AddedPerson:
        """Create an account."""
        return self.ask("PUT", "/v1/accounts/{handle}", AddedPerson, locals())

    def suspend_account(self, handle: str, *, reason: str | None = None) -> SuspendedPerson:
        """Suspend an account."""
        return self.ask("POST", "/v1/accounts/{handle}/suspend", SuspendedPerson, locals())

    def restore_account(self, handle: str, *, reason: str | None = None) -> SuspendedPerson:
        """Restore a suspended account."""
        return self.ask("POST", "/v1/accounts/{handle}/restore", SuspendedPerson, locals())

    def set_operator(
        self, handle: str, *, reason: str | None = None, operator: bool | None = None
    ) -> OperatorPerson:
        """Make a person an operator, or not."""
        return self.ask("POST", "/v1/accounts/{handle}/operator", OperatorPerson, locals())

    def remove_account(self, handle: str, *, reason: str | None = None) -> RemovedPerson:
        """Delete an account for good."""
        return self.ask("DELETE", "/v1/accounts/{handle}", RemovedPerson, locals())

    def list_grants(self, *, after: str | None = None) -> Overview:
        """List who has more rights."""
        return self.ask("GET", "/v1/grants", Overview, locals())

    def get_grants(self, handle: str) -> Person:
        """Show someone's capabilities."""
        return self.ask("GET", "/v1/people/{handle}/grants", Person, locals())

    def grant(self, handle: str, patterns: list[str]) -> Granted:
        """Grant someone capabilities."""
        return self.ask("POST", "/v1/people/{handle}/grants", Granted, locals())

    def revoke(
        self, handle: str, *, patterns: list[str] | None = None, everything: bool | None = None
    ) -> Revoked:
        """Revoke what was granted."""
        return self.ask("DELETE", "/v1/people/{handle}/grants", Revoked, locals())

    def get_access_of(self, handle: str, *, tool: str | None = None) -> AccessOf:
        """Show what someone can use."""
        return self.ask("GET", "/v1/people/{handle}/access", AccessOf, locals())

    def set_access_of(
        self, handle: str, tools: list[str], *, allowed: bool | None = None
    ) -> AccessOf:
        """Allow someone tools."""
        return self.ask("PUT", "/v1/people/{handle}/access", AccessOf, locals())

    def invite_for(self, handle: str, *, days: int | None = None) -> InvitedHandle:
        """Create an invite for a handle."""
        return self.ask("POST", "/v1/people/{handle}/invite", InvitedHandle, locals())

    def list_groups(self) -> Groups:
        """List the groups."""
        return self.ask("GET", "/v1/groups", Groups)

    def set_group(self, group: str, members: list[str]) -> Groups:
        """Create or change a group."""
        return self.ask("PUT", "/v1/groups/{group}", Groups, locals())

    def remove_group(self, group: str) -> None:
        """Remove a group."""
        self.ask("DELETE", "/v1/groups/{group}", None, locals())

    def set_group_access(
        self, group: str, tools: list[str], *, allowed: bool | None = None
    ) -> Groups:
        """Allow a group tools."""
        return self.ask("PUT", "/v1/groups/{group}/access", Groups, locals())

    def list_servers(self) -> Servers:
        """List the servers."""
        return self.ask("GET", "/v1/servers", Servers)

    def reload_settings(self) -> Reloaded:
        """Reload the settings."""
        return self.ask("POST", "/v1/settings/reload", Reloaded)

    def list_pins(self, *, namespace: str | None = None) -> ChangedTools:
        """List tools that are held back."""
        return self.ask("GET", "/v1/pins", ChangedTools, locals())

    def accept_tools(self, tools: list[dict[str, Any]]) -> AcceptedTools:
        """Accept tools that changed."""
        return self.ask("POST", "/v1/pins/accept", AcceptedTools, locals())

    def get_server(self, namespace: str, *, after: str | None = None) -> ShownServer:
        """Show a server."""
        return self.ask("GET", "/v1/servers/{namespace}", ShownServer, locals())

    def get_server_history(self, *, namespace: str | None = None) -> Histories:
        """Show the calls of servers."""
        return self.ask("GET", "/v1/server-history", Histories, locals())

    def get_server_access(
        self, namespace: str, *, tool: str | None = None, after: str | None = None
    ) -> ServerAccess:
        """Show who may use a server."""
        return self.ask("GET", "/v1/servers/{namespace}/access", ServerAccess, locals())

    def test_server(
        self,
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
        text: str | None = None,
        name: str | None = None,
    ) -> TestedServer:
        """Test a server."""
        return self.ask(
            "POST",
            "/v1/server-tests",
            TestedServer,
            body={"text": text, "name": name},
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def add_server(
        self,
        text: str,
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
        name: str | None = None,
        everyone: bool | None = None,
        per_user: bool | None = None,
    ) -> AddedServer:
        """Add a server."""
        return self.ask(
            "POST",
            "/v1/servers",
            AddedServer,
            body={"text": text, "name": name, "everyone": everyone, "per_user": per_user},
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def remove_server(
        self,
        namespace: str,
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
    ) -> RemovedServer:
        """Remove a server."""
        return self.ask(
            "DELETE",
            f"/v1/servers/{quote(namespace, safe='')}",
            RemovedServer,
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def set_server(
        self,
        namespace: str,
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
        everyone: bool | None = None,
        trusted: bool | None = None,
        enabled: bool | None = None,
    ) -> ServerSettings:
        """Change a server's settings."""
        return self.ask(
            "PATCH",
            f"/v1/servers/{quote(namespace, safe='')}",
            ServerSettings,
            body={"everyone": everyone, "trusted": trusted, "enabled": enabled},
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def restart_server(self, namespace: str) -> RestartedServer:
        """Restart a server."""
        return self.ask("POST", "/v1/servers/{namespace}/restart", RestartedServer, locals())

    def change_settings(
        self,
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
        registration: Literal["auto", "open", "invite", "closed"] | None = None,
        record: bool | None = None,
        keep_mail_days: int | None = None,
        new_tools: Literal["hold", "list"] | None = None,
        audit_arguments: Literal["hash", "record", "none"] | None = None,
    ) -> ShownSettings:
        """Change settings."""
        return self.ask(
            "PATCH",
            "/v1/settings",
            ShownSettings,
            body={
                "registration": registration,
                "record": record,
                "keep_mail_days": keep_mail_days,
                "new_tools": new_tools,
                "audit_arguments": audit_arguments,
            },
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def list_rules(self) -> RuleList:
        """List the rules."""
        return self.ask("GET", "/v1/rules", RuleList)

    def add_rule(
        self,
        rule: str,
        action: Literal["block", "hold", "delay"],
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
        tool: str | None = None,
        caller: str | None = None,
        group: str | None = None,
        reason: str | None = None,
        seconds: float | None = None,
    ) -> RuleList:
        """Add a rule."""
        return self.ask(
            "POST",
            "/v1/rules",
            RuleList,
            body={
                "rule": rule,
                "action": action,
                "tool": tool,
                "caller": caller,
                "group": group,
                "reason": reason,
                "seconds": seconds,
            },
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def remove_rule(
        self,
        rule: str,
        *,
        token: str | None = None,
        ticket: str | None = None,
        passkey: str | None = None,
    ) -> RuleList:
        """Remove a rule."""
        return self.ask(
            "DELETE",
            f"/v1/rules/{quote(rule, safe='')}",
            RuleList,
            headers={
                "folkmoot-confirm": token,
                "folkmoot-ticket": ticket,
                "folkmoot-passkey": passkey,
            },
        )

    def list_held(self, *, proxies: bool | None = None) -> HeldList:
        """List held messages."""
        return self.ask("GET", "/v1/held", HeldList, locals())

    def get_held(self, held_id: int, *, proxy: int | None = None) -> HeldMessage:
        """Show a held message."""
        return self.ask("GET", "/v1/held/{held_id}", HeldMessage, locals())

    def release_held(
        self, held_id: int, *, proxy: int | None = None, message: dict[str, Any] | None = None
    ) -> Released:
        """Release a held message."""
        return self.ask("POST", "/v1/held/{held_id}/release", Released, locals())

    def drop_held(
        self, held_id: int, *, proxy: int | None = None, reason: str | None = None
    ) -> Dropped:
        """Drop a held message."""
        return self.ask("POST", "/v1/held/{held_id}/drop", Dropped, locals())

    def list_backups(self) -> KeptBackups:
        """Show the backups."""
        return self.ask("GET", "/v1/backups", KeptBackups)

    def back_up_now(self) -> BackedUp:
        """Back up now."""
        return self.ask("POST", "/v1/backups", BackedUp)

    def back_up(self, path: str, *, overwrite: bool | None = None) -> BackedUp:
        """Back up the database."""
        return self.ask("POST", "/v1/backup", BackedUp, locals())

    def export_account(
        self, handle: str, path: str, *, overwrite: bool | None = None
    ) -> ExportedPerson:
        """Export someone's data."""
        return self.ask("POST", "/v1/accounts/{handle}/export", ExportedPerson, locals())

    def get_key(self) -> KeyInUse:
        """Show the master key's id."""
        return self.ask("GET", "/v1/key", KeyInUse)

    def rotate_key(
        self, *, new: str | None = None, keep: str | None = None, discard: bool | None = None
    ) -> RotatedKey:
        """Replace the master key."""
        return self.ask("POST", "/v1/key/rotate", RotatedKey, locals())

    def cancel_rotation(self) -> CancelledRotation:
        """Cancel a pending rotation."""
        return self.ask("POST", "/v1/key/cancel", CancelledRotation)
