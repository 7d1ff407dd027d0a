// Refreshes the list while its box is ticked. Without this script the page works, and is refreshed by hand.
'use strict';

const EVERY = 5000;
const box = () => document.getElementById('follow');

function begin() {
  const follow = box();
  if (!follow) return;
  for (const hidden of follow.parentElement.querySelectorAll('[hidden]')) hidden.hidden = false;
}

async function refresh() {
  const follow = box();
  if (!follow || !follow.checked || document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    // The box and the focus stay; only the count and the table are replaced.
    replace(page, '[data-testid=count]');
    replace(page, '.wide');
  } catch {
    // The next round tries again.
  }
}

function replace(page, part) {
  const [before, after] = [document.querySelector(part), page.querySelector(part)];
  if (before && after) {
    if (before.innerHTML !== after.innerHTML) before.innerHTML = after.innerHTML;
  } else if (before) {
    before.remove();
  } else if (after) {
    document.querySelector('main').append(after);
  }
}

begin();
setInterval(refresh, EVERY);
