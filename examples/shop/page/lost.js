// Loses the answer to an order, and sends the order again under the same key, as a careful client does.

import { card, part } from "/page/answers.js";
import { anywhere, nextServer, order } from "/page/servers.js";

const PATHS = { plain: "/plain/orders", locked: "/idempotent/orders" };

/** Shows the request without an answer, the repeated request, and the orders that the shop has then. */
export async function loseAnAnswer(lane, user, list, slow) {
  const path = PATHS[lane] + (slow ? "" : "?pay=fast");
  const headers = { "idempotency-key": crypto.randomUUID() };
  list.replaceChildren(part("li", "step", "The client sends the order. The shop writes it, and the connection breaks:"));
  await send(list, path, user, { ...headers, "x-lose-answer": "1" });
  list.append(part("li", "step", "The client sends the same request again:"));
  const again = await send(list, path, user, headers);
  const orders = (await anywhere("/orders"))?.filter((order) => order.user === user).length;
  const result = part("li", "step", `The shop has ${orders === 1 ? "1 order" : `${orders ?? "an unknown number of"} orders`} of this customer.`);
  result.dataset.orders = String(orders);
  if (orders > 1) again.classList.add("wrong");
  list.append(result);
}

async function send(list, path, user, headers) {
  const server = nextServer();
  const { item, answer } = card(list, user, server);
  list.append(item);
  answer(await order(server, path, user, headers));
  return item;
}
