/** What the hub's operations take and give, as far as the pages use it. Times are epoch seconds. */

export type Priority = "urgent" | "normal" | "low" | "fyi";
export type ThreadState = "active" | "archived" | "muted" | "starred";
export type Privacy = "public" | "contacts_only" | "private";
export type EncryptionMode = "e2e" | "server_assisted";

export interface EncryptedPayload {
  ciphertext: string;
  nonce: string;
  sender_public_key: string;
}

export interface Message {
  id: string;
  thread_id: string;
  from_handle: string;
  to_handle: string;
  body: string | null;
  priority: Priority;
  encryption_mode: EncryptionMode;
  encrypted_payload?: EncryptedPayload | null;
  reply_to: string | null;
  created_at: number;
  unread?: boolean;
  /** Why a message has no text, when the hub could not open it. */
  error?: string;
}

export interface Thread {
  id: string;
  subject: string;
  other_handle: string;
  other_display_name: string;
  last_message_body: string | null;
  last_message_at: number;
  unread_count: number;
  member_state: ThreadState;
}

export interface Digest {
  total_unread: number;
  threads_with_unread: number;
  recent_senders: string[];
  urgent_count: number;
}

/** Someone's profile, as others see it. */
export interface Person {
  handle: string;
  display_name: string;
  bio?: string;
  status?: string;
  account_type?: "person" | "agent";
  client_public_key?: string | null;
  payload_formats?: string[];
}

export interface Profile extends Person {
  bio: string;
  status: string;
  privacy: Privacy;
  public_key: string;
  client_public_key: string | null;
}

export interface Contact {
  handle: string;
  display_name: string;
  nickname: string;
}

export interface SignedUp {
  handle: string;
  token: string;
  recovery_code?: string;
  server_url: string;
  settings: unknown;
  next: string;
}

export interface Opened {
  hub?: string;
  handle: string;
  digest: Digest;
  threads: Thread[];
}

interface Sent {
  message_id: string;
  thread_id: string;
}

interface Content {
  body?: string;
  encrypted_payload?: EncryptedPayload;
  priority?: Priority;
  idempotency_key?: string;
}

interface Page {
  limit?: number;
  cursor?: string;
}

type Toggle = [{ thread_id: string; undo?: boolean }, { state: ThreadState }];

/** Each operation: its arguments, and its answer. */
export interface Operations {
  "msg/register": [{ handle: string; invite_code?: string }, SignedUp];
  "msg/recover": [{ handle: string; recovery_code: string }, SignedUp];
  "msg/whoami": [Record<string, never>, Profile];
  "msg/set_profile": [
    {
      display_name?: string;
      bio?: string;
      status?: string;
      privacy?: Privacy;
      client_public_key?: string;
      payload_formats?: string[];
    },
    Profile,
  ];
  "msg/open_inbox": [Record<string, never>, Opened];
  "msg/send": [Content & { to: string; reply_to?: string }, Sent];
  "msg/reply": [Content & { message_id: string }, Sent];
  "msg/threads": [Page, { threads: Thread[]; next_cursor: string | null }];
  "msg/thread": [
    Page & { thread_id: string; peek?: boolean },
    { thread: Thread; messages: Message[]; next_cursor: string | null },
  ];
  "msg/digest": [Record<string, never>, Digest];
  "msg/delete_message": [{ message_id: string }, unknown];
  "msg/delete_thread": [{ thread_id: string; confirm: boolean }, unknown];
  "msg/mark_read": [{ thread_id: string }, unknown];
  "msg/archive": Toggle;
  "msg/star": Toggle;
  "msg/mute": Toggle;
  "msg/contacts": [Page, { contacts: Contact[]; next_cursor: string | null }];
  "msg/add_contact": [{ handle: string; nickname?: string }, unknown];
  "msg/remove_contact": [{ handle: string }, unknown];
  "msg/lookup": [{ handle: string }, Person];
  "msg/search_users": [{ query: string }, { results: Person[] }];
  "msg/block": [{ handle: string; action: "block" | "unblock" }, unknown];
  "msg/blocks": [Page, { blocked: string[]; next_cursor: string | null }];
  "msg/invite": [{ message?: string }, { invite_code: string; invite_url: string }];
}

export type OperationName = keyof Operations;
