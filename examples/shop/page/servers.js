// Chooses the server of the next click: this server, or in a pair this one and its twin in turn.

export const settings = JSON.parse(document.getElementById("settings").textContent);

// A browser opens six connections to a server. Five for orders leaves one for the live view.
const AT_ONCE = 5;

const MUG = { sku: "mug", quantity: 1 };

const here = { name: `:${location.port || 80}`, base: "" };
const twin = settings.peer && {
  name: `:${settings.peer}`,
  base: `${location.protocol}//${location.hostname}:${settings.peer}`,
};
export const servers = (twin ? [here, twin] : [here])
  .map((server) => ({ ...server, running: 0, waiting: [] }));

let turn = 0;

export function nextServer() {
  return servers[turn++ % servers.length];
}

/** Sends an order, or another request with a customer, as soon as the server has a free connection; `ms` counts from then. */
export async function order(server, path, user, headers = {}, body = MUG) {
  await place(server);
  const sent = performance.now();
  try {
    const response = await fetch(server.base + path, {
      method: "POST",
      headers: { "content-type": "application/json", "x-user-id": user, ...headers },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    const ms = Math.round(performance.now() - sent);
    const replayed = response.headers.get("idempotency-replayed") === "true";
    return { status: response.status, ms, retryAfter: seconds(response), replayed, body: json(text) };
  } catch {
    return { status: 0, ms: Math.round(performance.now() - sent), body: {} };
  } finally {
    server.running -= 1;
    server.waiting.shift()?.();
  }
}

export async function post(path) {
  const response = await fetch(path, { method: "POST" });
  return { status: response.status, body: json(await response.text()) };
}

/** Returns the answers of all servers that answer. */
export async function everywhere(path) {
  const answers = await Promise.allSettled(servers.map(async (server) => {
    const response = await fetch(server.base + path, { signal: AbortSignal.timeout(2000) });
    return { server, body: await response.json() };
  }));
  return answers.filter((a) => a.status === "fulfilled").map((a) => a.value);
}

export async function anywhere(path) {
  for (const server of servers) {
    try {
      const response = await fetch(server.base + path, { signal: AbortSignal.timeout(2000) });
      if (response.ok) return await response.json();
    } catch { /* the twin may answer */ }
  }
  return null;
}

/** Waits until a server answers again, and returns whether it does. */
export async function isBack(server) {
  for (const end = performance.now() + 30_000; performance.now() < end;) {
    try {
      if ((await fetch(`${server.base}/readyz`, { signal: AbortSignal.timeout(2000) })).ok) return true;
    } catch { /* not yet */ }
    await new Promise((later) => setTimeout(later, 200));
  }
  return false;
}

async function place(server) {
  if (server.running >= AT_ONCE) await new Promise((go) => server.waiting.push(go));
  server.running += 1;
}

function seconds(response) {
  const value = response.headers.get("retry-after");
  return value && /^\d+$/.test(value) ? Number(value) : undefined;
}

function json(text) {
  try { return JSON.parse(text); } catch { return { detail: text }; }
}
