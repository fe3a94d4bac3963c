// Translates while you type: a line of the left side is a line of the right side. A click on a
// translation shows the best ones of its line, a click on one of these where it was made from.
"use strict";

const PAUSE = 300; // milliseconds without a key before a request goes out
const element = (id) => document.getElementById(id);
let shown = 0; // the line whose details are shown
let latest = null; // to abort the request that a newer one replaces

function make(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

function options() {
  const number = (id) => element(id).valueAsNumber;
  const beam = number("beam");
  return { beam, nbest: Math.min(number("nbest"), beam), lenpen: number("lenpen") };
}

function say(text, isError = false) {
  element("status").textContent = text;
  element("status").classList.toggle("error", isError);
}

async function post(body, signal) {
  for (;;) {
    const response = await fetch("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    const answer = await response.json();
    if (response.ok) return answer.results;
    if (response.status !== 429) throw new Error(answer.error);
    say("The server is busy; waiting ...");
    await new Promise((go) => setTimeout(go, 1000 * (response.headers.get("Retry-After") || 1)));
    signal.throwIfAborted();
  }
}

async function translate() {
  latest?.abort();
  const wrong = document.querySelector("input:invalid");
  if (wrong) return say(`${wrong.labels[0].textContent.trim()}: ${wrong.validationMessage}`, true);
  const { signal } = (latest = new AbortController());
  const lines = element("source").value.split("\n");
  shown = Math.min(shown, lines.length - 1);
  try {
    say("Translating ...");
    const start = performance.now();
    const results = await post({ text: lines, ...options(), nbest: 1 }, signal);
    element("target").replaceChildren(...results.map(showLine));
    await showDetail(lines[shown], signal);
    say(`${Math.round(performance.now() - start)} ms`);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  }
}

function showLine(result, line) {
  const item = make("li", "");
  const choose = () => {
    shown = line;
    translate();
  };
  item.append(make("button", result.translations[0].text, { onclick: choose }));
  item.firstChild.setAttribute("aria-pressed", line === shown);
  return item;
}

async function showDetail(text, signal) {
  element("detail").hidden = !text.trim();
  if (!text.trim()) return;
  const [result] = await post({ text, ...options(), attention: true }, signal);
  const buttons = result.translations.map((translation) => {
    const button = make("button", translation.text);
    button.append(make("small", translation.score.toFixed(3)));
    button.onclick = () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
      element("maps").replaceChildren(...translation.attention.map(drawMap));
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
  head.append(make("td", ""), ...source.map((subword) => make("th", subword, { scope: "col" })));
  const body = table.createTBody();
  weights.forEach((row, i) => {
    const line = body.insertRow();
    line.append(make("th", target[i], { scope: "row" }));
    row.forEach((weight, j) => {
      const cell = line.insertCell();
      cell.style.background = `rgb(var(--accent) / ${weight})`; // the more, the darker
      cell.title = `${target[i]} ← ${source[j]}: ${weight.toFixed(3)}`;
    });
  });
  return table;
}

let pause;
for (const id of ["source", "beam", "nbest", "lenpen"])
  element(id).addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(translate, PAUSE);
  });
fetch("healthz").then((response) => response.json()).then(({ model }) => {
  element("model").textContent = model;
});
