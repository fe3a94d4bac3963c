// Translates while you type: a line of the left side is a line of the right side. A click on a word
// of a translation shows what else could stand there, the best translations of its line, and where
// each of these was made from. All lines are one text, so that blocks of code stay as they are.
"use strict";

const PAUSE = 300; // milliseconds without a key before a request goes out
const OTHERS = 6; // alternatives of a word
const element = (id) => document.getElementById(id);
let shown = 0; // the line whose details are shown
let latest = null; // to abort the request that a newer one replaces
let pairs = []; // source and target that there are translations between
let glossary = {}; // the terms, as a request has them

function make(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

function options() {
  const number = (id) => element(id).valueAsNumber;
  const beam = number("beam");
  const languages = { source: element("from").value || "auto", target: element("to").value || null };
  return { beam, nbest: Math.min(number("nbest"), beam), lenpen: number("lenpen"), ...languages };
}

// Read the terms, and have the browser know what is wrong with them.
function readTerms() {
  const said = new Map(), begun = new Map(); // by term: its translation, and its line
  let problem = "";
  element("terms").value.split("\n").forEach((line, i) => {
    if (!line.trim() || problem) return;
    const [term, translation, ...rest] = line.split("=").map((side) => side.trim());
    if (!term || !translation || rest.length) problem = `line ${i + 1} is not like “bike = Drahtesel”`;
    else if (begun.has(term)) problem = `“${term}” is in line ${begun.get(term)} and in line ${i + 1}`;
    said.set(term, translation);
    begun.set(term, i + 1);
  });
  element("terms").setCustomValidity(problem);
  glossary = Object.fromEntries(said);
}

// Tell the browser which languages are shown, for fonts and voices; none, where it may be several.
function nameLanguages() {
  const { source, target } = options();
  const left = pairs.filter(([s, t]) => [s, "auto"].includes(source) && [t, null].includes(target));
  const [from, to] = [0, 1].map((side) => {
    const codes = new Set(left.map((pair) => pair[side]));
    return codes.size === 1 ? [...codes][0].replaceAll("_", "-") : "";
  });
  const set = (lang, where) => document.querySelectorAll(where).forEach((e) => { e.lang = lang; });
  set(from, "#source, #maps thead");
  set(to, "#target, #word, #alternatives, #hypotheses, #maps tbody");
}

function say(text, isError = false) {
  element("status").textContent = text;
  element("status").classList.toggle("error", isError);
}

function key() {
  return element("key").value ? { Authorization: `Bearer ${element("key").value}` } : {};
}

async function post(body, signal) {
  for (;;) {
    const response = await fetch("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...key() },
      body: JSON.stringify(body),
      signal,
    });
    if (response.ok) return (await response.json()).results;
    const { error } = await response.json().catch(() => ({ error: response.statusText })); // a proxy's
    if (response.status !== 429) throw new Error(error);
    say("The server is busy; waiting ...");
    await new Promise((go) => setTimeout(go, 1000 * (response.headers.get("Retry-After") || 1)));
    signal.throwIfAborted();
  }
}

// Do what takes requests, in the place of what was begun before.
async function work(what) {
  latest?.abort();
  readTerms();
  const wrong = document.querySelector("input:invalid, textarea:invalid");
  if (wrong) return say(`${wrong.labels[0].textContent.trim()}: ${wrong.validationMessage}`, true);
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
    const text = lines.join("\n");
    const [result] = await post({ text, ...options(), glossary, nbest: 1, parts: true }, signal);
    element("instead").hidden = true;
    element("target").replaceChildren(...showLines(result, lines));
    await showDetail(lines[shown], signal);
  });
}

// The lines of a translation, as words of which each can be clicked, but for those of code. Parts
// were translated one by one.
function showLines({ parts, translations: [translation] }, lines) {
  const items = [make("li", "", { dir: "auto" })];
  const add = (text) => text.split("\n").forEach((piece, i) => {
    if (i) items.push(make("li", "", { dir: "auto" }));
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
  const part = make("span", "");
  const words = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text);
  for (const { segment, index, isWordLike } of words) {
    const choose = () => {
      shown = line;
      work(async (signal) => {
        mark(button);
        await showInstead(part, segment, text.slice(0, index), { source, line, whole }, signal);
        await showDetail(whole, signal);
      });
    };
    const button = make("button", segment, { onclick: choose });
    part.append(isWordLike ? button : segment);
  }
  return part;
}

function mark(chosen) {
  for (const button of element("target").querySelectorAll("button"))
    button.setAttribute("aria-pressed", button === chosen);
}

// What else could stand in the place of a word; a click takes it, and one can go on from there. A
// beginning goes without terms.
async function showInstead(part, word, prefix, { source, line, whole }, signal) {
  const { beam, lenpen, ...languages } = options();
  const count = Math.min(Math.max(beam, OTHERS), Number(element("beam").max));
  const asked = { ...languages, lenpen, beam: count, nbest: count, split_sentences: false };
  const [result] = await post({ text: source, prefix, alternatives: true, ...asked }, signal);
  const begun = prefix.trimEnd(); // a comma may follow at once
  element("word").textContent = word;
  element("alternatives").replaceChildren(...result.translations.map(({ text }) => {
    const item = make("li", "");
    const same = text.startsWith(begun) ? begun.length : 0;
    const button = make("button", "", { dir: "auto" });
    button.append(make("span", text.slice(0, same), { className: "begun" }), text.slice(same));
    button.onclick = () => {
      const other = showPart(source, text, line, whole);
      part.replaceWith(other);
      part = other;
    };
    item.append(button);
    return item;
  }));
  element("instead").hidden = false;
}

async function showDetail(text, signal) {
  element("detail").hidden = !text.trim();
  if (!text.trim()) return;
  const [result] = await post({ text, ...options(), glossary, attention: true }, signal);
  const buttons = result.translations.map((translation) => {
    const button = make("button", translation.text, { dir: "auto" });
    button.append(make("small", translation.score.toFixed(3), { dir: "ltr" }));
    button.onclick = () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
      element("maps").replaceChildren(...translation.attention.map(drawMap));
      nameLanguages();
    };
    return button;
  });
  element("hypotheses").replaceChildren(...buttons.map((button) => {
    const item = make("li", "");
    item.append(button);
    return item;
  }));
  buttons[0].click();
}

function drawMap({ source, target, weights }) {
  const table = make("table", "");
  const head = table.createTHead().insertRow();
  const name = (subword, scope) => make("th", subword, { scope, dir: "auto" });
  head.append(make("td", ""), ...source.map((subword) => name(subword, "col")));
  const body = table.createTBody();
  weights.forEach((row, i) => {
    const line = body.insertRow();
    line.append(name(target[i], "row"));
    row.forEach((weight, j) => {
      const cell = line.insertCell();
      cell.style.background = `rgb(var(--accent) / ${weight})`; // the more, the darker
      cell.title = `${target[i]} ← ${source[j]}: ${weight.toFixed(3)}`;
    });
  });
  return table;
}

function addLanguages(languages) {
  pairs = languages.flatMap(({ code, targets }) =>
    targets.filter((target) => target !== code).map((target) => [code, target]));
  nameLanguages();
  if (pairs.length < 2) return; // there is no choice
  const choose = (id, codes) => {
    const named = languages.filter(({ code }) => codes.includes(code));
    element(id).append(...named.map(({ code, name }) => make("option", name, { value: code })));
    element(id).parentElement.hidden = false;
  };
  element("from").append(make("option", "any", { value: "auto" }));
  choose("from", languages.filter(({ targets }) => targets.length > 1).map(({ code }) => code));
  element("to").append(make("option", "the other", { value: "" }));
  choose("to", pairs.map(([, target]) => target));
}

let pause;
for (const id of ["source", "terms", "from", "to", "key", "beam", "nbest", "lenpen"])
  element(id).addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(translate, PAUSE);
  });
const show = (path, use) => fetch(path).then((response) => response.json()).then(use);
show("healthz", ({ model }) => {
  element("model").textContent = model;
});
show("languages", addLanguages);
show("frontend/settings", ({ keyRequired, maxBeam }) => {
  element("key").parentElement.hidden = !keyRequired;
  for (const id of ["beam", "nbest"]) {
    element(id).max = maxBeam;
    if (element(id).valueAsNumber > maxBeam) element(id).value = maxBeam;
  }
});
