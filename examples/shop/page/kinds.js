// Uses the other kinds of locks: one lock of two keys, permits, and readers beside one writer.

import { part } from "/page/answers.js";
import { anywhere, nextServer } from "/page/servers.js";
import { euros } from "/page/state.js";

const USES = { transfers, exports: exportSixTimes, catalogue };

/** Runs one use, and shows a line for each answer when it arrives. */
export async function use(name, list) {
  list.replaceChildren();
  await USES[name]((text) => list.append(part("li", "step", text)));
}

async function transfers(say) {
  const move = async (from, to, cents) => {
    const answer = await send("POST", "/transfers", { from, to, cents });
    say(`${euros(cents)} from ${from} to ${to}: ${answer.ok ? "moved" : refusal(answer)}.`);
  };
  await Promise.all([move("red", "blue", 500), move("blue", "red", 200)]);
  const cards = await anywhere("/cards") ?? [];
  say(cards.map(({ name, cents }) => `${name} ${euros(cents)}`).join(", ") +
    `. The sum is ${euros(cards.reduce((sum, { cents }) => sum + cents, 0))}.`);
}

async function exportSixTimes(say) {
  await Promise.all(Array.from({ length: 6 }, async () => {
    const answer = await send("POST", "/exports", {}, { "x-tenant": "acme" });
    say(answer.ok ? "200: exported." : `${refusal(answer)}.`);
  }));
}

async function catalogue(say) {
  const both = ({ mug, lamp }) => `mug ${euros(mug)}, lamp ${euros(lamp)}`;
  const before = await anywhere("/catalogue");
  if (!before) return say("No answer.");
  const after = { mug: before.mug + 100, lamp: before.lamp + 100 };
  const read = async () => {
    const answer = await send("GET", "/catalogue");
    say(answer.ok ? `Read in ${answer.ms} ms: ${both(answer.body)}.` : `${refusal(answer)}.`);
  };
  const write = async () => {
    const answer = await send("PUT", "/catalogue", after);
    say(answer.ok ? `Changed in ${answer.ms} ms: ${both(after)}.` : `${refusal(answer)}.`);
  };
  await Promise.all([read(), read(), write(), read(), read()]);
}

async function send(method, path, body, headers = {}) {
  const sent = performance.now();
  try {
    const response = await fetch(nextServer().base + path, {
      method,
      headers: body ? { "content-type": "application/json", ...headers } : headers,
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    const ms = Math.round(performance.now() - sent);
    return { ok: response.ok, status: response.status, ms, body: text ? JSON.parse(text) : {} };
  } catch {
    return { ok: false, status: 0, body: {} };
  }
}

function refusal({ status, body }) {
  return status ? `${status}: refused with ${body.code}` : "no answer";
}
