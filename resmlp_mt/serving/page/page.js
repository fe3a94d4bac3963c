// Translates while you type: a line of the left side is a line of the right side. A click on a word
// of a translation shows what else could stand there, the best translations of its line, and where
// each of these was made from. All lines are one text, so that blocks of code stay as they are.
"use strict";

const PAUSE = 300; // milliseconds without a key before a request goes out
const BEST = 3, OTHERS = 6; // translations of a line, and alternatives of a word
const element = (id) => document.getElementById(id);
let shown = 0; // the line whose details are shown
let latest = null; // to abort the request that a newer one replaces
let widest = OTHERS; // beam that the server takes

function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function list(id, buttons) {
  element(id).replaceChildren(...buttons.map((button) => make("li", {}, button)));
}

function languages() {
  return { source: element("from").value || "auto", target: element("to").value || null };
}

// Tell the browser which languages are shown, for fonts and voices, where they are known.
function nameLanguages() {
  const name = (id, where) => document.querySelectorAll(where).forEach((e) => {
    e.lang = element(id).value.replace("auto", "").replaceAll("_", "-");
  });
  name("from", "#source, #maps thead");
  name("to", "#target, #word, #alternatives, #hypotheses, #maps tbody");
}

function say(text, isError = false) {
  element("status").textContent = text;
  element("status").classList.toggle("error", isError);
}

async function post(asked, signal) {
  const key = element("key").value;
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const body = JSON.stringify({ ...languages(), ...asked });
  const response = await fetch("translate", { method: "POST", headers, body, signal });
  if (response.ok) return (await response.json()).results[0];
  const proxys = () => ({ error: response.statusText });
  throw new Error((await response.json().catch(proxys)).error);
}

// Do what takes requests, in the place of what was begun before.
async function work(what) {
  latest?.abort();
  const { signal } = (latest = new AbortController());
  try {
    say("Translating ...");
    const start = performance.now();
    await what(signal);
    say(`${Math.round(performance.now() - start)} ms`);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  }
}

function translate() {
  const lines = element("source").value.split("\n");
  shown = Math.min(shown, lines.length - 1);
  nameLanguages();
  return work(async (signal) => {
    const result = await post({ text: lines.join("\n"), parts: true }, signal);
    element("instead").hidden = true;
    element("target").replaceChildren(...showLines(result, lines));
    await showDetail(lines[shown], signal);
  });
}

// The lines of a translation, as words of which each can be clicked, but for those of code. Parts
// were translated one by one.
function showLines({ parts, translations: [translation] }, lines) {
  const items = [make("li", { dir: "auto" })];
  const add = (text) => text.split("\n").forEach((piece, i) => {
    if (i) items.push(make("li", { dir: "auto" }));
    items.at(-1).append(piece);
  });
  let rest = translation.text;
  translation.parts.forEach((text, i) => {
    const start = rest.indexOf(text);
    add(rest.slice(0, start));
    const line = items.length - 1;
    if (text.includes("\n")) add(text);
    else items.at(-1).append(showPart(parts[i], text, line, lines[line]));
    rest = rest.slice(start + text.length);
  });
  add(rest);
  return items;
}

function showPart(source, text, line, whole) {
  let part = make("span");
  const words = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text);
  for (const { segment, index, isWordLike } of words) {
    const onclick = ({ currentTarget: chosen }) => {
      shown = line;
      work(async (signal) => {
        for (const button of element("target").querySelectorAll("button"))
          button.setAttribute("aria-pressed", button === chosen);
        const take = (other) => {
          const next = showPart(source, other, line, whole);
          part.replaceWith(next);
          part = next;
        };
        await showInstead(source, segment, text.slice(0, index), take, signal);
        await showDetail(whole, signal);
      });
    };
    part.append(isWordLike ? make("button", { onclick }, segment) : segment);
  }
  return part;
}

// What else could stand in the place of a word; a click takes it, and one can go on from there.
async function showInstead(text, word, prefix, take, signal) {
  const count = Math.min(OTHERS, widest);
  const asked = { text, prefix, alternatives: true, beam: count, nbest: count };
  const { translations } = await post({ ...asked, split_sentences: false }, signal);
  const begun = prefix.trimEnd(); // a comma may follow at once
  element("word").textContent = word;
  list("alternatives", translations.map(({ text: other }) => {
    const same = other.startsWith(begun) ? begun.length : 0;
    const known = make("span", { className: "begun" }, other.slice(0, same));
    return make("button", { dir: "auto", onclick: () => take(other) }, known, other.slice(same));
  }));
  element("instead").hidden = false;
}

async function showDetail(text, signal) {
  element("detail").hidden = !text.trim();
  if (!text.trim()) return;
  const asked = { text, nbest: Math.min(BEST, widest), attention: true };
  const { translations } = await post(asked, signal);
  const buttons = translations.map(({ text, score, attention }) => {
    const onclick = ({ currentTarget: chosen }) => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === chosen));
      element("maps").replaceChildren(...attention.map(drawMap));
      nameLanguages();
    };
    const shown = make("small", { dir: "ltr" }, score.toFixed(3));
    return make("button", { dir: "auto", onclick }, text, shown);
  });
  list("hypotheses", buttons);
  buttons[0].click();
}

function drawMap({ source, target, weights }) {
  const name = (subword, scope) => make("th", { scope, dir: "auto" }, subword);
  const names = source.map((subword) => name(subword, "col"));
  const cells = (row, i) => row.map((weight, j) => make("td", {
    title: `${target[i]} ← ${source[j]}: ${weight.toFixed(3)}`,
    style: `background: rgb(var(--accent) / ${weight})`, // the more, the darker
  }));
  const rows = weights.map((row, i) => make("tr", {}, name(target[i], "row"), ...cells(row, i)));
  const head = make("thead", {}, make("tr", {}, make("td"), ...names));
  return make("table", {}, head, make("tbody", {}, ...rows));
}

function addLanguages(known) {
  const pairs = known.flatMap(({ code, targets }) =>
    targets.filter((target) => target !== code).map((target) => [code, target]));
  ["from", "to"].forEach((id, side) => {
    const codes = pairs.map((pair) => pair[side]);
    const named = known.filter(({ code }) => codes.includes(code));
    element(id).append(...named.map(({ code, name }) => make("option", { value: code }, name)));
    element(id).parentElement.hidden = pairs.length < 2;
    if (named.length === 1) element(id).value = named[0].code; // there is no choice
  });
  nameLanguages();
}

let pause;
for (const id of ["source", "from", "to", "key"])
  element(id).addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(translate, PAUSE);
  });
const show = (path, use) => fetch(path).then((response) => response.json()).then(use);
show("healthz", ({ model }) => { element("model").textContent = model; });
show("languages", addLanguages);
show("frontend/settings", ({ keyRequired, maxBeam }) => {
  element("key").parentElement.hidden = !keyRequired;
  widest = maxBeam;
});
