/** Before anything else: zod must not try whether it may make functions from text. */
import { config } from "zod/v4";

config({ jitless: true });
