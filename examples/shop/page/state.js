// Shows the live view: shelves, orders, and the locks held now.

import { anywhere, everywhere } from "/page/servers.js";
import { markOversold, part } from "/page/answers.js";

const SHOWN = 40;
export const euros = (cents) => `€${(cents / 100).toFixed(2)}`;
const byId = (id) => document.getElementById(id);

export async function showShelvesAndOrders() {
  const [shelves, orders] = await Promise.all([anywhere("/stock"), anywhere("/orders")]);
  for (const lane of ["plain", "locked"]) {
    const shelf = shelves?.find((s) => s.lane === lane && s.sku === "mug");
    if (shelf) showShelf(byId(`stock-${lane}`), shelf);
    const sold = orders?.filter((o) => o.lane === lane && o.sku === "mug");
    if (sold) showOrders(lane, sold);
    if (shelf && sold) markOversold(byId(`answers-${lane}`), beyond(sold, shelf.initial));
  }
}

/** Shows the reports of the last days. */
export async function showNights() {
  const nights = await anywhere("/nights");
  byId("nights").replaceChildren(...(nights ?? []).map(({ ends, orders, cents, port }) => {
    const night = part("li", "step", `${new Date(ends).toLocaleTimeString()}: ${orders} ${orders === 1 ? "order" : "orders"}, ${euros(cents)}, written by :${port}`);
    night.dataset.ends = ends;
    return night;
  }));
}

/** Returns the ids of the orders beyond the initial stock, oldest first. */
function beyond(orders, initial) {
  let total = 0;
  return new Set(orders.toReversed().filter((o) => (total += o.quantity) > initial).map((o) => String(o.id)));
}

function showShelf(place, { stock, sold, initial, oversold }) {
  place.dataset.stock = stock;
  place.dataset.sold = sold;
  place.dataset.oversold = oversold;
  const cells = part("div", "cells", "");
  cells.setAttribute("aria-hidden", "true");
  for (let n = 0; n < initial; n++) cells.append(part("i", n < stock ? "full" : "", ""));
  const numbers = part("p", "numbers", "");
  numbers.append(part("b", "", stock), ` on the shelf, `, part("b", "", sold), ` sold of ${initial}`);
  place.replaceChildren(numbers, cells);
  if (oversold > 0) {
    const still = stock > 0 ? `, and the shelf still says ${stock}` : "";
    place.append(part("p", "oversold", `Oversold by ${oversold}${still}.`));
  } else if (sold + stock !== initial) {
    place.append(part("p", "oversold", `${initial - stock} left the shelf, but ${sold} were sold.`));
  }
}

function showOrders(lane, orders) {
  const total = orders.reduce((sum, o) => sum + o.cents, 0);
  byId(`count-${lane}`).textContent = orders.length ? `${orders.length}, ${euros(total)} charged` : "";
  byId(`orders-${lane}`).replaceChildren(...orders.slice(0, SHOWN).map((o) => {
    const row = part("li", "", "");
    row.append(part("b", "", `#${o.id}`), part("span", "", o.user), part("span", "", `${o.quantity} × ${o.sku}`),
      part("code", "", lane === "locked" ? `token …${String(o.fencing_token).slice(-6)}` : "no token"));
    return row;
  }));
  if (!orders.length) byId(`orders-${lane}`).replaceChildren(part("li", "none", "None yet."));
}

// The longest time left that the page has seen of a lock. It is the lock's full bar.
const longest = new Map();

export async function showLocks() {
  const answers = await everywhere("/locks");
  const rows = answers.flatMap(({ server, body }) => body.map((lock) => ({ ...lock, server: server.name })));
  const list = byId("locks");
  const seen = new Set();
  for (const lock of rows) {
    const id = `${lock.key}#${lock.fencing_token}`;
    seen.add(id);
    longest.set(id, Math.max(longest.get(id) ?? 0, lock.remaining_ms));
    const row = [...list.children].find((r) => r.dataset.id === id) ?? list.appendChild(lockRow(id, lock));
    row.querySelector(".left").textContent = `${(lock.remaining_ms / 1000).toFixed(1)} s`;
    row.querySelector(".fill").style.transform = `scaleX(${lock.remaining_ms / longest.get(id)})`;
  }
  for (const row of [...list.children]) if (!seen.has(row.dataset.id)) row.remove();
  for (const id of [...longest.keys()]) if (!seen.has(id)) longest.delete(id);
  if (!list.children.length) list.append(part("li", "none", "None. A lock is held only while its work runs."));
  return rows.length;
}

function lockRow(id, lock) {
  const row = part("li", "lock", "");
  row.dataset.id = id;
  row.dataset.key = lock.key;
  const bar = part("span", "track", "");
  bar.append(part("span", "fill", ""));
  row.append(part("code", "", lock.key), part("span", "left", ""), bar,
    part("small", "", `fencing token ${lock.fencing_token} · ${lock.server}`));
  return row;
}
