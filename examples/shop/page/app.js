// Handles the buttons. Each click is one real request in every state of the button.

import { card, markDuplicate, part, spoken } from "/page/answers.js";
import { colour, copyButton, curl } from "/page/code.js";
import { killAProcess } from "/page/killed.js";
import { use } from "/page/kinds.js";
import { loseAnAnswer } from "/page/lost.js";
import { nextServer, order, post, servers, settings } from "/page/servers.js";
import { showLocks, showNights, showShelvesAndOrders } from "/page/state.js";

const PATHS = { plain: "/plain/orders", locked: "/orders" };
// One double click is two clicks within this time.
const DOUBLE_CLICK_MS = 1000;

const byId = (id) => document.getElementById(id);
const tag = Math.random().toString(36).slice(2, 6);
const me = `ada-${tag}`;
const others = ["ben", "cleo", "dan", "eve", "finn", "gus", "hana", "ivo", "june", "kai",
  "lia", "max", "noor", "olga", "pim", "quin", "rosa", "sam", "tom", "uma"];
let visits = 0;
let underWay = 0;
let busyUntil = 0;
const lastClick = { plain: -Infinity, locked: -Infinity };

for (const button of document.querySelectorAll("[data-act]")) {
  button.addEventListener("click", () => {
    const { lane, act } = button.dataset;
    if (act === "buy") return buy(lane);
    visits += 1;
    if (act === "lose") return lose(lane, button);
    if (act === "other") return send(lane, `${others[visits % others.length]}-${tag}${visits}`);
    for (const name of others) send(lane, `${name}-${tag}${visits}`, { size: "small" });
  });
}

function buy(lane) {
  const now = performance.now();
  const isSecond = now - lastClick[lane] < DOUBLE_CLICK_MS;
  lastClick[lane] = isSecond ? -Infinity : now;
  send(lane, me, { isSecond });
}

async function send(lane, user, { isSecond = false, size } = {}) {
  const server = nextServer();
  const { item, answer } = card(byId(`answers-${lane}`), user, server, size);
  underWay += 1;
  const path = PATHS[lane] + (byId("slow-payment").checked ? "" : "?pay=fast");
  const result = await order(server, path, user);
  underWay -= 1;
  answer(result);
  if (isSecond && result.status === 201) markDuplicate(item);
  tally(lane);
  byId(`said-${lane}`).textContent = size ? byId(`tally-${lane}`).textContent : spoken(item);
  refreshSoon();
}

async function lose(lane, button) {
  if (button.hasAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true");
  underWay += 1;
  await loseAnAnswer(lane, `zoe-${tag}${visits}`, byId(`lost-${lane}`), byId("slow-payment").checked);
  underWay -= 1;
  button.removeAttribute("aria-disabled");
  refreshSoon();
}

for (const button of document.querySelectorAll("[data-use]")) {
  button.addEventListener("click", async () => {
    if (button.hasAttribute("aria-disabled")) return;
    button.setAttribute("aria-disabled", "true");
    underWay += 1;
    await use(button.dataset.use, byId(`use-${button.dataset.use}`));
    underWay -= 1;
    button.removeAttribute("aria-disabled");
  });
}

const kills = document.querySelectorAll("[data-kill]");
for (const button of kills) {
  button.addEventListener("click", async () => {
    if (button.hasAttribute("aria-disabled")) return;
    // One process must be left, so the other button waits, too.
    for (const one of kills) one.setAttribute("aria-disabled", "true");
    underWay += 1;
    visits += 1;
    const way = button.dataset.kill;
    await killAProcess(way, `yara-${tag}${visits}`, byId(`killed-${way}`));
    underWay -= 1;
    for (const one of kills) one.removeAttribute("aria-disabled");
  });
}

function tally(lane) {
  const counts = {};
  for (const { dataset } of byId(`answers-${lane}`).children) counts[dataset.status] = (counts[dataset.status] ?? 0) + 1;
  byId(`tally-${lane}`).textContent = Object.entries(counts).filter(([status]) => status !== "pending")
    .map(([status, n]) => `${n} × ${status}`).join(", ");
}

byId("freeze").addEventListener("click", async ({ currentTarget: button }) => {
  if (button.hasAttribute("aria-disabled")) return;
  const list = byId("answers-freeze");
  button.setAttribute("aria-disabled", "true");
  underWay += 1;
  list.replaceChildren(part("li", "step", "An owner has the lock and has read the stock. It freezes for 3 s …"));
  const { status, body } = await post("/freeze").catch(() => ({ status: 0, body: {} }));
  underWay -= 1;
  button.removeAttribute("aria-disabled");
  list.replaceChildren();
  if (body.sold_meanwhile) {
    list.append(
      part("li", "step", `The owner held the lock with token ${body.fencing_token} and froze for ${body.frozen_ms / 1000} s.`),
      part("li", "step", `After ${body.ttl_ms / 1000} s the lock ran out. The next customer got it with token ${body.sold_meanwhile.fencing_token} and placed order ${body.sold_meanwhile.id}.`),
      part("li", "step", "The frozen owner woke up and wrote with its old token:"));
  }
  const { answer } = card(list, "frozen", { name: "" });
  answer({ status, ms: body.frozen_ms ?? 0, body });
  list.append(list.firstElementChild);
  refreshSoon();
});

byId("reset").addEventListener("click", async ({ currentTarget: button }) => {
  if (button.hasAttribute("aria-disabled")) return;
  // Orders that are still under way would otherwise take from the new stock.
  button.setAttribute("aria-disabled", "true");
  while (underWay > 0) await new Promise((later) => setTimeout(later, 50));
  const { status } = await post("/reset").catch(() => ({ status: 0 }));
  button.removeAttribute("aria-disabled");
  button.textContent = status === 204 ? "Fill the shelves again" : `Not filled (${status || "no answer"}), try again`;
  for (const lane of ["plain", "locked"]) {
    byId(`answers-${lane}`).replaceChildren();
    byId(`tally-${lane}`).textContent = "";
  }
  refreshSoon();
});

let refreshing = null;
function refreshSoon() {
  busyUntil = performance.now() + 2500;
  refreshing ??= setTimeout(async () => {
    refreshing = null;
    await showShelvesAndOrders();
  }, 60);
}

// Asks often while orders run or locks are held, and seldom otherwise; one request at a time.
async function watchLocks() {
  const held = document.hidden ? 0 : await showLocks().catch(() => 0);
  const lively = underWay > 0 || held > 0 || performance.now() < busyUntil;
  setTimeout(watchLocks, lively ? 120 : 500);
}

async function watchShelves() {
  if (!document.hidden) await Promise.allSettled([showShelvesAndOrders(), showNights()]);
  setTimeout(watchShelves, 2000);
}

function showCurl() {
  const origins = servers.map((s) => s.base || location.origin);
  byId("curl").textContent = curl(origins, byId("slow-payment").checked);
}

byId("killed").hidden = servers.length < 2;
byId("day").textContent = settings.day_s;
byId("slow-ms").textContent = `${settings.slow_ms} ms`;
byId("where").textContent = `Locks ${settings.store}. ` +
  (servers.length > 1 ? `Two processes, ${servers.map((s) => s.name).join(" and ")}, take the clicks in turn.` : "One process serves the page; start the shop with --pair to see two.");
byId("slow-payment").addEventListener("change", showCurl);
copyButton(byId("copy-curl"), () => byId("curl").textContent);
document.querySelectorAll("code.rust").forEach(colour);
showCurl();
watchLocks();
watchShelves();
