/** Made by `make docs` from the hub's OpenAPI document; change it there. */

export type CreateAccount = {
  handle: string;
  client_public_key?: string | null;
  invite_code?: string | null;
  account_type?: "person" | "agent" | null;
};

export type Registration = {
  handle: string;
  token: string;
  recovery_code: string;
  public_key: string;
  message: string;
  server_url: string;
  settings: object;
  next: string;
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
  settings: object;
  next: string;
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
  quotas: object;
};

export type ChangeProfile = {
  display_name?: string | null;
  bio?: string | null;
  privacy?: "public" | "contacts_only" | "private" | null;
  status?: string | null;
  client_public_key?: string | null;
  payload_formats?: Array<string> | null;
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

export type Sent = {
  message_id: string;
  thread_id: string;
  to: string;
  encryption_mode: "server_assisted" | "e2e";
  created_at: number;
  quota_warning?: string;
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

export type Thread = {
  id: string;
  subject: string;
  other_handle: string;
  other_display_name: string;
  last_message_body: string | null;
  last_message_at: number;
  unread_count: number;
  member_state: "active" | "archived" | "muted" | "starred";
  last_read_at: number;
  created_at: number;
  updated_at: number;
};

export type ThreadPage = {
  threads: Array<Thread>;
  next_cursor: string | null;
};

export type ThreadMessages = {
  thread: Thread;
  messages: Array<MailMessage>;
  next_cursor: string | null;
};

export type ThreadState = {
  thread_id: string;
  state: "active" | "archived" | "muted" | "starred";
  message: string;
};

export type Digest = {
  total_unread: number;
  threads_with_unread: number;
  recent_senders: Array<string>;
  urgent_count: number;
  more_senders?: number;
};

export type Contact = {
  handle: string;
  display_name: string;
  nickname: string;
  added_at: number;
};

export type ContactPage = {
  contacts: Array<Contact>;
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

export type FoundUser = {
  handle: string;
  display_name: string;
  bio?: string;
  account_type?: "person" | "agent";
};

export type FoundUsers = {
  results: Array<FoundUser>;
};

export type BlockedPage = {
  blocked: Array<string>;
  next_cursor: string | null;
};

export type InviteMade = {
  invite_code: string;
  invite_url: string;
  message: string;
};

export type BrowserSession = {
  handle: string | null;
  display_name: string | null;
  expires_at: number | null;
  registration: "open" | "invite" | "closed";
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

export type Credentials = {
  credentials: Array<Credential>;
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

export type HandleChanged = {
  old_handle: string;
  new_handle: string;
  redirects_until: number;
  message: string;
};

export type AccountDeleted = {
  handle: string;
  message: string;
  backups: string;
};

export type EncryptedPayload = {
  ciphertext: string;
  nonce: string;
  sender_public_key: string;
};
