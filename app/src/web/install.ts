/** Have the browser keep this page, so that it opens without the hub too and can be installed. */

const WORKER = "/worker.js";

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(given: string): string }): {
    createScriptURL(given: string): string;
  };
}

/** The page's own policy allows this one address of a script, and no other. */
function trusted(): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = types?.createPolicy("folkmoot-worker", { createScriptURL: () => WORKER });
  return policy ? policy.createScriptURL(WORKER) : WORKER;
}

export function keepPage(): void {
  // Absent without TLS, and where the reader has turned it off.
  if (!("serviceWorker" in navigator)) return;
  void navigator.serviceWorker
    .register(trusted(), { scope: "/", updateViaCache: "none" })
    .catch(() => {});
}
