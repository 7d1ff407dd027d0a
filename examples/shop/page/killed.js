// Kills the process that takes a charge, and sends the same request to the other process.

import { card, markChargedAgain, part } from "/page/answers.js";
import { anywhere, isBack, order, servers } from "/page/servers.js";
import { euros } from "/page/state.js";

const CENTS = 1800;

/** Shows the request without an answer, the repeated request, and the charges in the database. */
export async function killAProcess(way, user, list) {
  // This page's own process survives.
  const [survivor, victim] = servers;
  const headers = { "idempotency-key": crypto.randomUUID() };
  const send = async (server, more) => {
    const { item, answer } = card(list, user, server);
    list.append(item);
    const result = await order(server, `/${way}/charges`, user, { ...headers, ...more }, { cents: CENTS });
    answer(result);
    return { item, status: result.status };
  };
  list.replaceChildren(part("li", "step", `${victim.name} charges the customer ${euros(CENTS)} and is killed:`));
  const killed = await send(victim, { "x-kill-process": "1" });
  if (killed.status !== 0) return list.append(part("li", "step", "The process was not killed. Try again."));
  list.append(part("li", "step", `The same request to ${survivor.name}, which waits until the lock of ${victim.name} has run out:`));
  const again = await send(survivor);
  const charges = (await anywhere("/charges"))?.filter((charge) => charge.user === user);
  if (charges?.length > 1) markChargedAgain(again.item);
  list.append(result(charges));
  const back = await isBack(victim);
  list.append(part("li", "step", back ? `${victim.name} has been started again.` : `${victim.name} is not back. Look into the shop's terminal.`));
}

function result(charges) {
  const line = part("li", "step", "");
  if (!charges) {
    line.textContent = "The database gives no answer.";
    return line;
  }
  line.dataset.charges = String(charges.length);
  const cents = charges.reduce((sum, charge) => sum + charge.cents, 0);
  line.append("The database has ", part("b", "", charges.length === 1 ? "1 charge" : `${charges.length} charges`), ` of this customer: ${euros(cents)}.`);
  return line;
}
