// Refreshes the list while its box is ticked. Without this script the page works, and is refreshed by hand.
'use strict';

const EVERY = 5000;
const found = document.getElementById('found');
const follow = document.getElementById('follow');

// Only the list is refreshed.
if (found) follow.parentElement.hidden = false;

async function refresh() {
  if (!found || !follow.checked || document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const now = page.getElementById('found');
    // The search, the box and their focus stay.
    if (now && now.innerHTML !== found.innerHTML) found.innerHTML = now.innerHTML;
  } catch {
    // The next round tries again.
  }
}

setInterval(refresh, EVERY);
