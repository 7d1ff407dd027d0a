// Colours the Rust on the page, and makes the curl command and its copy button.

const RUST = /(?<comment>\/\/[^\n]*)|(?<attribute>#\[|^\)\]|\)\](?=\n))|(?<string>"(?:[^"\\]|\\.)*")|(?<keyword>\b(?:async|await|fn|let|pub|crate|self|Ok|Err|return|match|if|mut|move|for|in|impl)\b)|(?<type>\b[A-Z]\w*)|(?<name>\bdistributed_lock\b)/gm;

export function colour(element) {
  const text = element.textContent;
  const out = [];
  let from = 0;
  for (const match of text.matchAll(RUST)) {
    const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
    const span = document.createElement("span");
    span.className = `r-${kind}`;
    span.textContent = match[0];
    out.push(text.slice(from, match.index), span);
    from = match.index + match[0].length;
  }
  element.replaceChildren(...out, text.slice(from));
}

export function curl(origins, slow) {
  const query = slow ? "" : "?pay=fast";
  const click = (origin) => `curl -si '${origin}/orders${query}' -H 'x-user-id: ada' \\
  -H 'content-type: application/json' -d '{"sku":"mug","quantity":1}'`;
  return `${click(origins[0])} &
sleep 0.15
${click(origins[origins.length - 1])}
wait`;
}

export function copyButton(button, text) {
  button.addEventListener("click", async () => {
    let done = true;
    try { await navigator.clipboard.writeText(text()); } catch { done = false; }
    if (!done) getSelection()?.selectAllChildren(button.previousElementSibling);
    button.textContent = done ? "Copied" : "Selected; copy the text";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
