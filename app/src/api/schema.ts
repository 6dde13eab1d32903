/** Made by `make docs` from the hub's OpenAPI document; change it there. */

export type AcceptTools = {
  tools: Array<{
  namespace: string;
  name: string;
  changed_hash: string;
}>;
};

export type AcceptedTools = {
  accepted: Array<string>;
};

export type Access = {
  may: "all" | "some" | "none";
  tools: number;
  reasons: Array<AccessReason>;
  names: Array<string>;
};

export type AccessOf = {
  handle: string;
  servers: Array<ServerShare>;
  answer: Explained | null;
};

export type AccessReason = {
  capability: unknown;
  why: string;
  origin: string;
  name?: string;
  at?: number;
  denies?: boolean;
};

export type AccountDeleted = {
  handle: string;
  message: string;
  backups: string;
};

export type Activity = {
  lines: Array<ActivityLine>;
};

export type ActivityLine = {
  id: number;
  at: number;
  action: string;
  about: string;
  outcome: string | null;
  room: string | null;
  server: string | null;
  credential_id: string | null;
  seconds: number | null;
};

export type AddAccount = {
  account_type?: "person" | "agent" | null;
};

export type AddContact = {
  nickname?: string | null;
};

export type AddPasskey = {
  ticket: string;
  credential: string;
  name?: string | null;
};

export type AddRule = {
  rule: string;
  action: "block" | "hold" | "delay";
  tool?: string | null;
  caller?: string | null;
  group?: string | null;
  reason?: string | null;
  seconds?: number | null;
};

export type AddServer = {
  text?: string | null;
  name?: string | null;
  table?: object | null;
  everyone?: boolean | null;
  per_user?: boolean | null;
  tested?: boolean | null;
};

export type AddedPerson = {
  handle: string;
  token: string;
  recovery_code: string;
  hub: string;
};

export type AddedServer = {
  namespace: string;
  file: string;
  tried: Tried | null;
  notes: Array<string>;
};

export type ApproveAsk = {
  reason?: string | null;
};

export type ApproveAskLonger = {
  seconds: number;
  same?: Array<string> | null;
  reason?: string | null;
};

export type Ask = {
  id: string;
  kind: "proposal" | "held" | "tool" | "call";
  risk: "destroys" | "unknown" | "acts" | "changes" | "reads";
  what: string;
  by: string;
  to: Array<string>;
  since: string;
  until: string | null;
  may: Array<string>;
  room?: string;
  proposal?: Proposal;
  held?: Held;
  tool?: ChangedTool;
  call?: AskedCall;
};

export type Asked = {
  status: "asked";
  ask_id: string;
  expires_at: string;
  url: string;
  message: string;
};

export type AskedCall = {
  id: string;
  state: "open" | "approved" | "rejected" | "withdrawn" | "expired" | "edited" | "running" | "done" | "unknown";
  tool: string;
  arguments: object;
  why: string;
  by: string;
  by_type: string;
  client: string;
  to: string;
  digest: string;
  created_at: string;
  expires_at: string;
  rule: string;
  person: boolean;
  decided_at: string | null;
  presence: string | null;
  reason: string | null;
  receipt: string | null;
  result: object | null;
  lasts_until: string | null;
  same: Array<string>;
  edited_as: string | null;
  approved_before: number;
};

export type Asks = {
  asks: Array<Ask>;
  count: number;
  counts: Counts;
  complete: boolean;
  next_cursor: string | null;
};

export type AuditLine = {
  id: number;
  at: number;
  action: string;
  by: string;
  about: string;
  name?: string;
  detail?: Record<string, unknown>;
  account?: string;
  outcome?: string;
  room?: string;
  server?: string;
  credential_id?: string;
  request?: string;
  seconds?: number;
};

export type AuditLines = {
  lines: Array<AuditLine>;
};

export type Authorization = {
  name: string;
  host: string;
  sent_to: string;
  handle: string;
  scopes: Array<ScopeOffered>;
  redirect: string | null;
};

export type AwayMember = {
  id: string;
  type: "person" | "agent" | "guest";
  role: "owner" | "member" | "guest" | "backend";
};

export type BackUp = {
  path: string;
  overwrite?: boolean | null;
};

export type BackedUp = {
  path: string;
  size: number;
  master_key_id: string | null;
  warning: string;
};

export type BeginConnection = {
  namespace?: string | null;
  ticket?: string | null;
};

export type BeginPresence = {
  operation: string;
  arguments?: object | null;
};

export type Blocked = {
  handle: string;
  action: "block" | "unblock";
  message: string;
};

export type BlockedPage = {
  blocked: Array<string>;
  next_cursor: string | null;
};

export type BrowserSession = {
  handle: string | null;
  display_name: string | null;
  expires_at: number | null;
  scope: string | null;
  guest: string | null;
  room: string | null;
  registration: "open" | "invite" | "closed";
  company: string | null;
};

export type CallTool = {
  name: string;
  arguments?: object | null;
  era?: "stateless" | "handshake" | null;
};

export type CancelledRotation = {
  cancelled: string;
};

export type Capability = string | {
  kind: string;
  payload?: object;
  to?: string | Array<string>;
};

export type ChangeHandle = {
  new_handle: string;
};

export type ChangeProfile = {
  display_name?: string | null;
  bio?: string | null;
  privacy?: "public" | "contacts_only" | "private" | null;
  status?: string | null;
  client_public_key?: string | null;
  payload_formats?: Array<string> | null;
};

export type ChangeRoom = {
  access?: "open" | "invite" | "private";
  capabilities?: Array<Capability> | null;
  grants?: Record<string, Array<Capability>>;
  policy?: PolicyChange;
  backends?: Array<string> | null;
  owners?: Array<string>;
};

export type ChangeSettings = {
  registration?: "auto" | "open" | "invite" | "closed" | null;
  record?: boolean | null;
  keep_mail_days?: number | null;
  new_tools?: "hold" | "list" | null;
  audit_arguments?: "hash" | "record" | "none" | null;
};

export type ChangedTool = {
  namespace: string;
  name: string;
  canonical: string;
  changed_hash: string;
  new: boolean;
  findings: Array<string>;
  since: number;
  lines: Array<string>;
  pinned: Record<string, unknown> | null;
  changed: Record<string, unknown> | null;
};

export type ChangedTools = {
  tools: Array<ChangedTool>;
  count: number;
  starting: Array<string>;
};

export type Checked = {
  whole: boolean;
  faults: Array<string>;
};

export type Comings = {
  came: number;
  left: number;
};

export type Connection = {
  namespace: string;
  state: "none" | "live" | "lapsed";
  issuer: string;
  scope: string;
  since: number | null;
  shared: boolean;
  may_sign_in: boolean;
};

export type ConnectionBegun = {
  url: string;
};

export type ConnectionList = {
  connections: Array<Connection>;
};

export type ConnectionMade = {
  namespace: string;
};

export type Contact = {
  handle: string;
  display_name: string;
  nickname: string;
  added_at: number;
};

export type ContactAdded = {
  contact: string;
  nickname: string;
  message: string;
};

export type ContactPage = {
  contacts: Array<Contact>;
  next_cursor: string | null;
};

export type ContactRemoved = {
  contact: string;
  message: string;
};

export type Copied = {
  copied: number;
  pages: number;
};

export type Counts = {
  proposal: number;
  held: number;
  tool: number;
  call: number;
};

export type CreateAccount = {
  handle: string;
  client_public_key?: string | null;
  invite_code?: string | null;
  account_type?: "person" | "agent" | null;
};

export type CreateAsk = {
  tool: string;
  arguments?: object | null;
  why?: string | null;
  to?: string | null;
  expires_in?: number | null;
};

export type CreateCodeFor = {
  operate?: boolean | null;
};

export type CreateCredential = {
  label?: string;
  expires_in?: number;
  scope?: string;
  ticket?: string | null;
  passkey?: string | null;
};

export type CreateCredentialFor = {
  label?: string;
  expires_in?: number;
  scope?: string;
};

export type CreateInvite = {
  message?: string | null;
};

export type CreateRoom = {
  name: string;
  access?: "open" | "invite" | "private" | null;
  durable?: boolean | null;
  capabilities?: Array<Capability> | null;
  grants?: Record<string, Array<Capability>> | null;
  policy?: PolicyChange | null;
  backends?: Array<string> | null;
};

export type CreatedCode = {
  code: string;
  expires_at: number;
  url: string;
};

export type CreatedCredential = {
  id: string;
  kind: "token" | "browser" | "app" | "device";
  label: string;
  scope: string;
  created_at: number;
  used_at: number | null;
  expires_at: number | null;
  current: boolean;
  token: string;
};

export type Credential = {
  id: string;
  kind: "token" | "browser" | "app" | "device";
  label: string;
  scope: string;
  created_at: number;
  used_at: number | null;
  expires_at: number | null;
  current: boolean;
};

export type DecideAuthorization = {
  query: string;
  allow?: boolean | null;
  scopes?: Array<string> | null;
};

export type DecideDeviceAuthorization = {
  user_code: string;
  allow: boolean;
  scopes?: Array<string> | null;
};

export type Decided = {
  redirect: string;
};

export type Decision = {
  id: string;
  at: string;
  kind: "proposal" | "held" | "tool" | "call";
  decision: "approved" | "rejected" | "released" | "edited" | "dropped" | "accepted";
  what: string;
  about: string;
  by: string | null;
  room: string | null;
  server: string | null;
  seq: number | null;
  reason: string | null;
  outcome: string;
  ended_at: string | null;
};

export type Decisions = {
  decisions: Array<Decision>;
  next_cursor: string | null;
};

export type DeviceDecided = {
  allowed: boolean;
};

export type Digest = {
  total_unread: number;
  threads_with_unread: number;
  recent_senders: Array<string>;
  urgent_count: number;
  more_senders?: number;
  rooms?: Array<UnreadRoom>;
  asks?: number;
};

export type Document = object;

export type DrainNode = {
  node?: string | null;
};

export type DrainedNode = {
  node: ListedNode;
};

export type DropHeld = {
  proxy?: number | null;
  reason?: string | null;
};

export type Dropped = {
  dropped: Held;
};

export type EditAsk = {
  arguments: object;
  reason?: string | null;
};

export type EncryptedPayload = {
  ciphertext: string;
  nonce: string;
  sender_public_key: string;
};

export type Envelope = {
  protocol: "mcpx/v1";
  id?: string | null;
  from?: string | null;
  to?: Array<string> | null;
  kind: string;
  correlation_id?: Array<string> | string | null;
  context?: string | null;
  payload?: object | null;
};

export type Error = {
  error: {
  code: string;
  message: string;
  retry_after?: number;
  attempted_kind?: string | null;
  your_capabilities?: Array<Capability>;
};
};

export type ExchangeInvitation = {
  token: string;
};

export type Explained = {
  tool: string;
  may: "all" | "some" | "none";
  sentence: string;
  change: "" | "allow" | "deny" | "restore" | "accept";
};

export type ExportAccount = {
  path: string;
  overwrite?: boolean | null;
};

export type ExportedPerson = {
  handle: string;
  threads: number;
  messages: number;
  rooms: number;
  said: number;
};

export type FinishConnection = {
  query: string;
};

export type Fold = {
  first: number;
  last: number;
  protocol: number;
  presence: Record<string, Comings>;
  others: number;
};

export type FollowedEvent = {
  event: string;
  data: Record<string, unknown>;
};

export type FoundUser = {
  handle: string;
  display_name: string;
  bio?: string;
  account_type?: "person" | "agent";
};

export type FoundUsers = {
  results: Array<FoundUser>;
};

export type FreeDisk = {
  free: number;
  least: number;
};

export type Grant = {
  patterns: Array<string>;
};

export type GrantInRoom = {
  recipient: string;
  capabilities: Array<Capability>;
  reason?: string;
};

export type GrantRow = {
  handle: string;
  state: "account" | "redirect" | "nobody";
  leads_to: string | null;
  groups: Array<string>;
  settings: number;
  granted: number;
};

export type Granted = {
  handle: string;
  granted: Array<string>;
  already: Array<string>;
  warnings: Array<string>;
};

export type Group = {
  name: string;
  members: Array<string>;
  from_company: Array<string>;
  servers: Array<ServerShare>;
};

export type GroupAccess = {
  name: string;
  members: number;
  access: Access;
};

export type Groups = {
  groups: Array<Group>;
};

export type Guest = {
  credential: string | null;
  guest: string;
  room: string;
};

export type HandleChanged = {
  old_handle: string;
  new_handle: string;
  redirects_until: number;
  message: string;
};

export type Held = {
  id: number;
  since: number;
  direction: string;
  type: string;
  method: string;
  tool: string;
  session: string;
  rule: string;
  reason: string;
  until: number | null;
  preview: string;
  who: string;
  proxy: number | null;
};

export type HeldCapability = {
  capability: unknown;
  origin: string;
  name?: string;
  at?: number;
};

export type HeldList = {
  held: Array<Held>;
  proxies: number | null;
};

export type HeldMessage = {
  message: Record<string, unknown>;
  held: Held;
};

export type Histories = {
  until: number;
  seconds: number;
  count: number;
  servers: Array<ServerHistory>;
};

export type HubNodes = {
  nodes: Array<ListedNode>;
};

export type HubStatus = {
  pid: number;
  version: string;
  uptime: number;
  url: string;
  quotas: Record<string, Use>;
  disk: FreeDisk | null;
};

export type Invite = unknown;

export type InviteFor = {
  days?: number | null;
};

export type InviteMade = {
  invite_code: string;
  invite_url: string;
  message: string;
};

export type InvitedHandle = {
  handle: string;
  invite_code: string;
  invite_url: string;
  until: number;
};

export type InvitedToRoom = {
  room: string;
  handle?: string;
  guest?: string;
  token?: string;
  expires_at?: string;
  message: string;
};

export type JudgeCall = {
  tool: string;
  arguments?: object | null;
};

export type JudgedCall = {
  verdict: "allow" | "ask" | "deny";
  rule: string;
  to: string;
  person: boolean;
  sentence: string;
};

export type KeptBackup = {
  name: string;
  size: number;
  at: number;
};

export type KeptBackups = {
  folder: string | null;
  last_at: number | null;
  backups: Array<KeptBackup>;
};

export type KeyInUse = {
  id: string;
  source: string;
};

export type LastingAsks = {
  asks: Array<AskedCall>;
};

export type ListedNode = {
  name: string;
  process: string;
  address: string;
  version: string;
  started_at: number;
  lease_seconds: number;
  rooms: number;
  draining: boolean;
  drained: boolean;
  differing: Array<string>;
};

export type MailMessage = {
  id: string;
  thread_id: string;
  from_handle: string;
  to_handle: string;
  body: string | null;
  priority: "urgent" | "normal" | "low" | "fyi";
  encryption_mode: "server_assisted" | "e2e";
  reply_to: string | null;
  created_at: number;
  unread: boolean;
  encrypted_payload?: EncryptedPayload;
  error?: string;
};

export type MarkRead = {
  message_ids?: Array<string> | null;
};

export type MarkRoomRead = {
  seq?: number | null;
};

export type Message = {
  seq: number;
  ts: string;
  protocol: "mcpx/v1";
  id: string;
  from: string;
  to?: Array<string>;
  kind: string;
  correlation_id?: Array<string>;
  context?: string;
  payload?: object | null;
  edits?: Array<number>;
};

export type MessageDeleted = {
  message_id: string;
  message: string;
};

export type MessagePage = {
  messages: Array<Message>;
  first_seq: number;
  last_seq: number;
  oldest_seq?: number;
  folded?: Array<Fold>;
  from_seq?: number;
  through_seq?: number;
};

export type Messages = {
  messages: Array<MailMessage>;
  next_cursor: string | null;
};

export type MyServer = {
  namespace: string;
  state: string;
  why: string;
  tools: number;
  reasons: Array<AccessReason>;
};

export type MyServers = {
  servers: Array<MyServer>;
};

export type MyTools = {
  server: MyServer;
  tools: Array<ServerTool>;
  next: string | null;
};

export type Named = {
  name: string;
  own: string;
  findings: Array<string>;
};

export type OfferedTools = {
  room: string;
  tools: Array<Record<string, unknown>>;
  unanswered?: Array<string>;
  left_out?: number;
  not_asked?: number;
};

export type OpenInvitation = {
  handle: string | null;
  guest: string | null;
  invited_by: string | null;
  expires_at: string | null;
};

export type OpenInvitations = {
  invitations: Array<OpenInvitation>;
};

export type OpenInvite = {
  id: string;
  created_at: number;
  until: number | null;
  handle: string | null;
  invited_by: string | null;
  has_message: boolean;
};

export type OpenInvites = {
  invites: Array<OpenInvite>;
  next_cursor: string | null;
};

export type OpenRequest = {
  id: string;
  seq: number;
  kind: string;
  requester: string;
  state: "waiting" | "running" | "interrupted";
  expires_at: string;
  proposer?: string;
  message?: Message;
};

export type OperatorPerson = {
  handle: string;
  changed: boolean;
  operator_since: number | null;
};

export type Outcome = {
  id: string;
  state: "open" | "fulfilled" | "rejected" | "withdrawn" | "expired";
  by: string;
  seq: number;
  decision: string;
  to?: string;
  result?: object;
  error?: object;
  reason?: string;
  rejections?: number;
};

export type Overview = {
  everyone: Array<HeldCapability>;
  people: Array<GrantRow>;
  next: string | null;
};

export type OwnAccount = {
  handle: string;
  display_name: string;
  bio: string;
  privacy: "public" | "contacts_only" | "private";
  status: string;
  account_type: "person" | "agent";
  public_key: string;
  client_public_key: string | null;
  payload_formats: Array<string>;
  created_at: number;
  quotas: Record<string, Record<string, number>>;
};

export type Participant = {
  id: string;
  type: "person" | "agent" | "guest" | "backend" | "gateway";
  role: "owner" | "member" | "guest" | "backend" | "gateway";
  offers_tools: boolean | null;
};

export type ParticipantPage = {
  participants: Array<Participant>;
  next_cursor: string | null;
  away?: Array<AwayMember>;
};

export type Passkey = {
  id: string;
  name: string;
  rp_id: string;
  created_at: number;
  used_at: number | null;
};

export type PasskeyChallenge = {
  ticket: string;
  options: Record<string, unknown>;
};

export type PasskeyList = {
  passkeys: Array<Passkey>;
};

export type Person = {
  handle: string;
  account: string | null;
  account_type: string | null;
  held: Array<HeldCapability>;
};

export type PersonAccess = {
  handle: string;
  account: boolean;
  access: Access;
};

export type PersonDetails = {
  handle: string;
  display_name: string;
  account_type: "person" | "agent";
  created_at: number;
  suspended_at: number | null;
  operator_since: number | null;
  mail_bytes: number;
  room_bytes: number;
  rooms: number;
  seen_at: number | null;
  bio: string;
  privacy: string;
  quotas: Record<string, Use>;
};

export type PersonRow = {
  handle: string;
  display_name: string;
  account_type: "person" | "agent";
  created_at: number;
  suspended_at: number | null;
  operator_since: number | null;
  mail_bytes: number;
  room_bytes: number;
  rooms: number;
  seen_at: number | null;
};

export type PersonRows = {
  people: Array<PersonRow>;
  next: string | null;
};

export type PolicyChange = {
  quorum?: number | null;
  proposal_seconds?: number | null;
  request_seconds?: number | null;
  keep_messages?: number | null;
  keep_days?: number | null;
  progress_seconds?: number | null;
  loop_guard?: number | null;
};

export type ProfileChange = {
  handle: string;
  display_name: string;
  bio: string;
  privacy: "public" | "contacts_only" | "private";
  status: string;
  account_type: "person" | "agent";
  public_key: string;
  client_public_key: string | null;
  payload_formats: Array<string>;
  message: string;
};

export type Proposal = {
  id: string;
  seq: number;
  kind: string;
  proposer: string;
  to: Array<string>;
  state: "open" | "fulfilled" | "rejected" | "withdrawn" | "expired";
  created_at: string;
  expires_at: string;
  rejections: number;
  closed_by: string | null;
  closed_at: string | null;
  reason?: string;
  message?: Message;
  risk?: "destroys" | "unknown" | "acts" | "changes" | "reads";
};

export type ProposalPage = {
  proposals: Array<Proposal>;
  next_cursor: string | null;
};

export type PublicProfile = {
  handle: string;
  display_name: string;
  bio: string;
  status: string;
  account_type: "person" | "agent";
  public_key: string;
  client_public_key: string | null;
  payload_formats: Array<string>;
};

export type ReadRoom = {
  room: string;
  read_seq: number;
  unread: number;
  mentions: number;
};

export type RecoverAccount = {
  handle: string;
  recovery_code: string;
};

export type Recovery = {
  handle: string;
  token: string;
  message: string;
  server_url: string;
  settings: Record<string, unknown>;
  next: string;
};

export type Registration = {
  handle: string;
  token: string;
  recovery_code: string;
  public_key: string;
  message: string;
  server_url: string;
  settings: Record<string, unknown>;
  next: string;
};

export type RejectAsk = {
  reason?: string | null;
};

export type RejectProposal = {
  reason: string;
};

export type ReleaseHeld = {
  proxy?: number | null;
  message?: object | null;
};

export type Released = {
  released: Held;
};

export type Reloaded = {
  file: string | null;
  backends: number;
  added: Array<string>;
  removed: Array<string>;
  changed: Array<string>;
  rights: boolean;
  restart: Array<string>;
  notes: Array<string>;
};

export type RemovedPerson = {
  handle: string;
};

export type RemovedServer = {
  namespace: string;
  file: string;
};

export type RenamePasskey = {
  name: string;
};

export type ReplyToMessage = {
  body?: string | null;
  encrypted_payload?: {
  ciphertext: string;
  nonce: string;
  sender_public_key: string;
} | null;
  priority?: "urgent" | "normal" | "low" | "fyi" | null;
  idempotency_key?: string | null;
};

export type RestartedServer = {
  namespace: string;
};

export type RestoreAccount = {
  reason?: string | null;
};

export type RevokeInRoom = {
  recipient?: string;
  grant_id?: string;
  capabilities?: Array<Capability>;
  reason?: string;
};

export type Revoked = {
  handle: string;
  revoked: Array<string>;
};

export type Room = {
  name: string;
  access: "open" | "invite" | "private";
  durable: boolean;
  epoch: string;
  role: "owner" | "member" | "guest" | null;
  owners: Array<string>;
  capabilities: Array<Capability>;
  policy: RoomPolicy;
  participants: number;
  first_seq: number;
  last_seq: number;
  created_at: string;
  oldest_seq?: number;
  grants?: Record<string, Array<Capability>>;
  backends?: Array<string>;
  may_enter: boolean;
  invited?: boolean;
  read_seq?: number;
  unread?: number;
  mentions?: number;
};

export type RoomCreated = {
  name: string;
  access: "open" | "invite" | "private";
  durable: boolean;
  epoch: string;
  role: "owner" | "member" | "guest" | null;
  owners: Array<string>;
  capabilities: Array<Capability>;
  policy: RoomPolicy;
  participants: number;
  first_seq: number;
  last_seq: number;
  created_at: string;
  oldest_seq?: number;
  grants?: Record<string, Array<Capability>>;
  backends?: Array<string>;
  may_enter: boolean;
  invited?: boolean;
  read_seq?: number;
  unread?: number;
  mentions?: number;
  message: string;
};

export type RoomGrant = {
  id: string;
  recipient: string;
  granter: string | null;
  capabilities: Array<Capability>;
};

export type RoomOfHub = {
  name: string;
  owner: string | null;
  access: string;
  durable: boolean;
  members: number;
  messages: number;
  bytes: number;
  created_at: number;
  last_at: number | null;
  present: number;
};

export type RoomPage = {
  rooms: Array<Room>;
  next_cursor: string | null;
};

export type RoomPolicy = {
  quorum: number;
  proposal_seconds: number;
  request_seconds: number;
  keep_messages: number;
  keep_days: number;
  progress_seconds: number;
  loop_guard: number;
};

export type RoomRights = {
  roles: Record<string, Array<Capability>>;
  grants: Array<RoomGrant>;
};

export type RoomRows = {
  rooms: Array<RoomOfHub>;
  next: string | null;
};

export type RotateKey = {
  new?: string | null;
  keep?: string | null;
  discard?: boolean | null;
};

export type RotatedKey = {
  old: string;
  new: string;
  settled: boolean;
  kept: string | null;
  withdrawn: string | null;
};

export type Rule = {
  name: string;
  when: Record<string, unknown>;
  action: string;
  options: Record<string, unknown>;
};

export type RuleList = {
  file: string | null;
  rules: Array<Rule>;
};

export type ScopeOffered = {
  scope: string;
  description: string;
  chosen: boolean;
};

export type SendMessage = {
  to: string;
  body?: string | null;
  encrypted_payload?: {
  ciphertext: string;
  nonce: string;
  sender_public_key: string;
} | null;
  priority?: "urgent" | "normal" | "low" | "fyi" | null;
  reply_to?: string | null;
  idempotency_key?: string | null;
};

export type Sent = {
  message_id: string;
  thread_id: string;
  to: string;
  encryption_mode: "server_assisted" | "e2e";
  created_at: number;
  quota_warning?: string;
};

export type ServerAccess = {
  namespace: string;
  tools: number;
  everyone: Access;
  groups: Array<GroupAccess>;
  people: Array<PersonAccess>;
  next: string | null;
};

export type ServerHistory = {
  namespace: string;
  calls: Array<number>;
  errors: Array<number>;
  refused: Array<number>;
  mean_ms: Array<number | null>;
  slowest_ms: Array<number | null>;
};

export type ServerSettings = {
  namespace: string;
  everyone: boolean;
  trusted: boolean;
  enabled: boolean;
};

export type ServerShare = {
  namespace: string;
  tools: number;
  access: Access;
};

export type ServerTool = {
  name: string;
  own: string;
  title: string;
  description: string;
  schema: Record<string, unknown>;
  annotations: Record<string, unknown>;
  risk: "destroys" | "unknown" | "acts" | "changes" | "reads";
  held: string;
  findings: Array<string>;
  may_call: boolean;
};

export type Servers = {
  backends: Array<Record<string, unknown>>;
  editable: boolean;
};

export type SetAccessOf = {
  tools: Array<string>;
  allowed?: boolean | null;
};

export type SetGroup = {
  members: Array<string>;
};

export type SetGroupAccess = {
  tools: Array<string>;
  allowed?: boolean | null;
};

export type SetOperator = {
  reason?: string | null;
  operator?: boolean | null;
};

export type SetServer = {
  everyone?: boolean | null;
  trusted?: boolean | null;
  enabled?: boolean | null;
};

export type SetUp = {
  secret: string;
  handle: string;
};

export type ShownServer = {
  server: Record<string, unknown>;
  instructions: string;
  everyone: boolean;
  trusted: boolean;
  tools: Array<ServerTool>;
  next: string | null;
};

export type ShownSetting = {
  value: unknown;
  origin: string;
};

export type ShownSettings = {
  file: string | null;
  settings: Record<string, ShownSetting>;
};

export type SignIn = {
  token: string;
};

export type SignInWithCode = {
  code: string;
};

export type SignInWithPasskey = {
  ticket: string;
  credential: string;
};

export type SignedIn = {
  handle: string;
  display_name: string;
};

export type SuspendAccount = {
  reason?: string | null;
};

export type SuspendedPerson = {
  handle: string;
  changed: boolean;
  suspended_at: number | null;
};

export type TapeAnswer = {
  request: number;
  seconds: number;
  outcome: string;
  said: string;
};

export type TapeCall = {
  seq: number;
  offset: number;
  time: number;
  from_client: boolean;
  method: string;
  name: string;
  asked: string;
};

export type TapeCalls = {
  calls: Array<TapeCall>;
  answers: Array<TapeAnswer>;
  messages: number;
  next_cursor: string | null;
  end: number;
  size: number | null;
  recording: boolean;
};

export type TapeEntries = {
  entries: Array<Record<string, unknown>>;
  next_cursor: string | null;
};

export type TapeMessage = {
  offset: number;
  bytes: number;
  seq: number | null;
  time: number | null;
  direction: string;
  shape: "request" | "response" | "notification" | "too_long";
  method: string;
  name: string;
  summary: string;
  failed: boolean;
  request: number | null;
  seconds: number | null;
  verdict: string;
  by: string;
  redacted: number;
};

export type TapePair = {
  line: Record<string, unknown>;
  other: Record<string, unknown> | null;
  outcome: string;
  seconds: number | null;
  complete: boolean;
};

export type TapeRow = {
  name: string;
  place: string;
  path: string;
  bytes: number;
  modified_at: number;
  started: string;
  ended: string | null;
  recording: boolean;
  messages: number | null;
  client: string;
  server: string;
  compressed: boolean;
  redaction_key: string;
};

export type TapeRows = {
  tapes: Array<TapeRow>;
  next_cursor: string | null;
};

export type TapeTimeline = {
  messages: Array<TapeMessage>;
  next_cursor: string | null;
  previous_cursor: string | null;
  begin: number;
  end: number;
  size: number | null;
  recording: boolean;
};

export type TestServer = {
  text?: string | null;
  name?: string | null;
  table?: object | null;
};

export type TestedServer = {
  tried: Tried;
  notes: Array<string>;
};

export type Testing = {
  step: "connecting" | "reading";
  seconds: number;
};

export type Thread = {
  id: string;
  subject: string;
  other_handle: string;
  other_display_name: string;
  last_message_body: string;
  last_message_at: number;
  unread_count: number;
  member_state: "active" | "archived" | "muted" | "starred";
  last_read_at: number;
  created_at: number;
  updated_at: number;
  last_message_own?: boolean;
};

export type ThreadDone = {
  thread_id: string;
  message: string;
};

export type ThreadMessages = {
  thread: Thread;
  messages: Array<MailMessage>;
  next_cursor: string | null;
};

export type ThreadPage = {
  threads: Array<Thread>;
  next_cursor: string | null;
};

export type ThreadState = {
  thread_id: string;
  state: "active" | "archived" | "muted" | "starred";
  message: string;
};

export type Tokens = {
  tokens: Array<Credential>;
};

export type ToolProgress = {
  progress: number | null;
  total: number | null;
  message: string;
};

export type Tried = {
  ok: boolean;
  namespace: string;
  transport: string;
  target: string;
  why: string;
  seconds: number;
  server: string;
  version: string;
  era: string;
  tools: Array<Named>;
  prompts: Array<Named>;
  resources: Array<Named>;
  templates: Array<Named>;
  faults: Array<string>;
  advice: string;
};

export type TriedTool = {
  seconds: number;
  result: Record<string, unknown> | null;
  error: Record<string, unknown> | null;
};

export type UnreadRoom = {
  room: string;
  unread: number;
  mentions: number;
  invited: boolean;
};

export type UnreadRooms = {
  rooms: Array<UnreadRoom>;
  unread: number;
  mentions: number;
  invitations: number;
};

export type Use = {
  used: number;
  limit: number;
};

export type WaitingPage = {
  requests: Array<OpenRequest>;
  proposals: Array<Proposal>;
  more: boolean;
};

export type Written = {
  done: number;
  total: number;
};
