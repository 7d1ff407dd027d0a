// Shows one card for each click: first that it was sent, then the answer.

const KEPT = 60;
const TITLES = {
  0: "No answer", 201: "Order placed", 401: "No user given", 404: "No such product",
  422: "Sold out", 500: "Failed", 503: "The store of the locks does not answer",
};

/** Puts a waiting card at the head of the list and returns the card and a function that fills it. */
export function card(list, user, server, size = "") {
  const item = document.createElement("li");
  item.className = `card ${size}`;
  item.dataset.status = "pending";
  item.dataset.user = user;
  item.append(part("b", "status", "···"), part("span", "what", "Waiting"), part("span", "meta", `${user} · ${server.name}`));
  list.prepend(item);
  while (list.children.length > KEPT) list.lastElementChild.remove();
  return { item, answer: (answer) => fill(item, answer, user, server) };
}

/** Marks an order that the customer did not mean to place. */
export function markDuplicate(item) {
  wrong(item, ": charged twice");
}

/** Marks a charge beside an earlier one for the same request. */
export function markChargedAgain(item) {
  wrong(item, ": charged again");
}

/** Marks the orders that were accepted when the shelf was empty. */
export function markOversold(list, ids) {
  for (const item of list.children) if (ids.has(item.dataset.order)) wrong(item, ": none left");
}

function wrong(item, why) {
  if (item.classList.contains("wrong")) return;
  item.classList.add("wrong");
  item.querySelector(".what").textContent = item.querySelector(".what").textContent.replace(/ placed| taken/, "") + why;
}

/** Returns the card in one sentence, for screen readers. */
export function spoken({ dataset, children }) {
  return `${dataset.status}: ${children[1].textContent}, for ${dataset.user}.`;
}

function fill(item, { status, ms, retryAfter, replayed, body }, user, server) {
  item.dataset.status = String(status);
  if (body.code) item.dataset.code = body.code;
  if (body.id && status === 201) item.dataset.order = body.id;
  if (replayed) item.dataset.replayed = "true";
  item.querySelector(".status").textContent = status || "–";
  item.querySelector(".what").textContent = sentence(status, body);
  const meta = [user, body.code, replayed && "Idempotency-Replayed", `${ms} ms`, server.name].filter(Boolean).join(" · ");
  item.querySelector(".meta").textContent = meta;
  item.title = meta;
  if (retryAfter !== undefined) countDown(item, retryAfter);
}

function sentence(status, body) {
  if (status === 201) return body.charge ? `Charge ${body.charge} taken` : `Order ${body.id} placed`;
  if (status === 409) {
    const why = { stale_fencing_token: "Refused: stale token" }[body.code];
    if (why) return why;
    return /cool/.test(body.code ?? "") ? "Refused: an order was placed a moment ago" : "Refused: the first order is still under way";
  }
  return TITLES[status] ?? body.detail ?? body.title ?? "An unexpected answer";
}

function countDown(item, total) {
  const shown = part("span", "retry", "");
  item.append(shown);
  const end = performance.now() + total * 1000;
  const tick = () => {
    const left = Math.ceil((end - performance.now()) / 1000);
    shown.textContent = `Retry-After ${total} s · ${left > 0 ? `${left} s left` : "may try again"}`;
    shown.classList.toggle("over", left <= 0);
    if (left > 0 && item.isConnected) setTimeout(tick, 200);
  };
  tick();
}

export function part(tag, name, text) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}
