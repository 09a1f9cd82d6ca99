// Search over all chapters, and buttons that copy blocks of code. The pages work without it.
const form = document.getElementById("search");
const input = form.querySelector("input");
const results = document.getElementById("results");
const status = results.querySelector("p");
const list = results.querySelector("ol");
const docs = form.dataset.docs;
const MOST = 20;
const BEFORE = 50;
const AROUND = 150;

form.hidden = false;

let index;
/** All sections: path, chapter, anchor, heading, text, and the text to look in. */
function load() {
  index ??= fetch(`${docs}search.json`)
    .then((response) => response.json())
    .then((chapters) => chapters.flatMap(([path, chapter, sections]) => sections.map(([anchor, heading, text]) => ({
      path, chapter, anchor, heading, text,
      title: `${chapter} ${heading}`.toLowerCase(),
      body: text.toLowerCase(),
    }))));
  // After a failure the next attempt loads it again.
  index.catch(() => (index = undefined));
  return index;
}

const count = (text, word) => text.split(word).length - 1;

/** How often a word stands by itself. */
const whole = (text, word) => (text.match(new RegExp(`(?<!\\w)${word.replace(/\W/g, "\\$&")}(?!\\w)`, "g")) ?? []).length;

/** Chapters for those who work on Tidegate itself, and lists of words: they come behind all others. */
const LAST = /^(adr\/|contributing|architecture|testing|spec-notes|glossary|changelog|logs)/i;
/** Chapters that show how something is done come first. */
const FIRST = /^(start|tutorials|how-to|from)\//;

/** How well a section fits: every word must occur; those in titles and whole words count most. */
function score(section, words) {
  let sum = 0;
  for (const word of words) {
    const [inTitle, inBody] = [count(section.title, word), count(section.body, word)];
    if (inTitle + inBody === 0) return 0;
    sum += inTitle * 20 + Math.min(inBody, 8) + whole(section.title, word) * 20 + Math.min(whole(section.body, word), 4) * 4;
  }
  return LAST.test(section.path) ? sum / 10 : FIRST.test(section.path) ? sum * 2 : sum;
}

/** The text around the first word that occurs, with the words marked. */
function excerpt({ text, body }, words) {
  const at = Math.max(0, Math.min(...words.map((word) => body.indexOf(word)).filter((place) => place >= 0), body.length));
  const from = at < body.length ? Math.max(0, at - BEFORE) : 0;
  const part = text.slice(from, from + AROUND);
  const nodes = [];
  let rest = 0;
  const lower = part.toLowerCase();
  while (rest < part.length) {
    const next = words.map((word) => [lower.indexOf(word, rest), word.length]).filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0])[0];
    if (!next) break;
    nodes.push(part.slice(rest, next[0]));
    const mark = document.createElement("mark");
    mark.textContent = part.slice(next[0], next[0] + next[1]);
    nodes.push(mark);
    rest = next[0] + next[1];
  }
  return [from > 0 ? "…" : "", ...nodes, part.slice(rest), from + AROUND < text.length ? "…" : ""];
}

function item(section, words) {
  const link = document.createElement("a");
  link.href = `${docs}${section.path}${section.anchor ? `#${section.anchor}` : ""}`;
  const title = document.createElement("strong");
  title.textContent = section.heading === section.chapter ? section.chapter : `${section.chapter} › ${section.heading}`;
  link.append(title, ...excerpt(section, words));
  const entry = document.createElement("li");
  entry.append(link);
  return entry;
}

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    results.hidden = true;
    return;
  }
  const asked = input.value;
  let sections;
  try {
    sections = await load();
  } catch {
    results.hidden = false;
    list.replaceChildren();
    status.textContent = "The search index cannot be loaded. Try again.";
    return;
  }
  if (input.value !== asked) return;
  const found = sections.map((section) => [score(section, words), section]).filter(([of]) => of > 0).sort((a, b) => b[0] - a[0]);
  status.textContent = found.length === 0 ? "Nothing found." : `${found.length} section${found.length === 1 ? "" : "s"} found`;
  list.replaceChildren(...found.slice(0, MOST).map(([, section]) => item(section, words)));
  results.hidden = false;
}

input.addEventListener("focus", () => load().catch(() => undefined));
input.addEventListener("input", search);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
list.addEventListener("click", () => (results.hidden = true));
form.addEventListener("keydown", (event) => {
  const links = [input, ...list.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && !results.hidden) {
    event.preventDefault();
    links[(links.indexOf(document.activeElement) + step + links.length) % links.length].focus();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") results.hidden = true;
  else if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    input.focus();
  }
});
document.addEventListener("click", (event) => {
  if (!form.contains(event.target)) results.hidden = true;
});

// On a phone the table of contents begins closed; without the script it is open.
if (matchMedia("(max-width: 800px)").matches) document.querySelector(".contents details").open = false;
else document.querySelector(".contents [aria-current]")?.scrollIntoView({ block: "center" });

for (const block of document.querySelectorAll("article pre")) {
  const frame = document.createElement("div");
  frame.className = "code";
  block.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2_000);
  });
  frame.append(block, button);
}
