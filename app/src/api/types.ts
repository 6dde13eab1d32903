/** The hub's operations that the pages use: each with its arguments and its answer. */
import type * as hub from "./schema";

export type { Contact, Digest, EncryptedPayload, Thread } from "./schema";

export type Message = hub.MailMessage;
export type Priority = Message["priority"];
export type ThreadState = hub.Thread["member_state"];
export type Privacy = hub.OwnAccount["privacy"];
export type Profile = hub.OwnAccount;
/** Someone else: a search finds less of them than a look-up, and hides what they hide. */
export type Person = Pick<hub.PublicProfile, "handle" | "display_name"> & Partial<hub.PublicProfile>;
export type SignedUp = hub.Recovery & Partial<Pick<hub.Registration, "recovery_code">>;

/** What `msg/open_inbox` answers; it is for MCP alone, so the OpenAPI document does not have it. */
export interface Opened {
  hub?: string;
  handle: string;
  digest: hub.Digest;
  threads: hub.Thread[];
}

type Nothing = Record<string, never>;
type Page = { limit?: number; cursor?: string };
type Toggle = [{ thread_id: string; undo?: boolean }, hub.ThreadState];

export interface Operations {
  "msg/register": [hub.CreateAccount, hub.Registration];
  "msg/recover": [hub.RecoverAccount, hub.Recovery];
  "msg/whoami": [Nothing, Profile];
  "msg/set_profile": [hub.ChangeProfile, hub.ProfileChange];
  "msg/open_inbox": [Nothing, Opened];
  "msg/send": [hub.SendMessage, hub.Sent];
  "msg/reply": [hub.ReplyToMessage & { message_id: string }, hub.Sent];
  "msg/threads": [Page, hub.ThreadPage];
  "msg/thread": [Page & { thread_id: string; peek?: boolean }, hub.ThreadMessages];
  "msg/digest": [Nothing, hub.Digest];
  "msg/delete_message": [{ message_id: string }, unknown];
  "msg/delete_thread": [{ thread_id: string; confirm: boolean }, unknown];
  "msg/mark_read": [{ thread_id: string }, unknown];
  "msg/archive": Toggle;
  "msg/star": Toggle;
  "msg/mute": Toggle;
  "msg/contacts": [Page, hub.ContactPage];
  "msg/add_contact": [{ handle: string; nickname?: string }, unknown];
  "msg/remove_contact": [{ handle: string }, unknown];
  "msg/lookup": [{ handle: string }, Person];
  "msg/search_users": [{ query: string }, hub.FoundUsers];
  "msg/block": [{ handle: string; action: "block" | "unblock" }, unknown];
  "msg/blocks": [Page, hub.BlockedPage];
  "msg/invite": [{ message?: string }, hub.InviteMade];
}

export type OperationName = keyof Operations;
