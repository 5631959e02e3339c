// The page: what the user does changes the state, `run` looks and asks, `show...` draws what came of it.

import * as api from "./api.js";
import * as draw from "./drawing.js";
import { askForToken, wireDividers, wireFiles } from "./gestures.js";
import { asJson, asPng, save } from "./keep.js";
import { DEFAULTS, fromHash, toHash } from "./link.js";
import { showPicture, showThumbnails, wireThumbnails } from "./pages.js";

const $ = (id) => document.getElementById(id);
const SIDE = 1600; // pixels of pictures, the longer way
const DELAY = 300; // ms that a slider must rest
const TRAIL = 5; // earlier fixations that are shown

const [looked, knownFrame] = [$("looked"), $("known")];
const stage = looked.querySelector(".stage"), page = looked.querySelector(".page");
const maps = [...looked.querySelectorAll(".cells")], knowns = [...knownFrame.querySelectorAll(".known")];

let state = { ...DEFAULTS };
let pages = 0; // of the file
let views = []; // one, or two when comparing: {look, known, said}
let asked = []; // history: {image, page, question, fixation, line}
let turn = new AbortController(); // of the look under way
let opening = null; // the page that is about to be shown: a question waits for it
let here = { map: 0, cell: -1 }; // the cell that is pointed at
let rest = 0; // timer of a slider

// ---- words for the user ---------------------------------------------------------------------------------------------

const say = (text) => { $("status").textContent = text; };

function complain(text) {
  $("error").hidden = !text;
  $("error").textContent = text;
}

const busy = (now) => now === undefined
  ? $("answers").getAttribute("aria-busy") === "true"
  : $("answers").setAttribute("aria-busy", now);

function failed(error) {
  if (error.name === "AbortError") return;
  say("");
  busy(false);
  complain(error.message);
}

const guarded = (action) => (...given) => Promise.resolve(action(...given)).catch(failed);

async function watchHealth() {
  const { state: health, failure } = await api.health();
  if (health === "loading") {
    say("The reader is loading. Choose a page and ask already: it will answer as soon as it is there.");
    setTimeout(guarded(watchHealth), 1000);
  } else if (health === "failed") {
    complain(`The reader could not be loaded: ${failure}`);
  } else if (!busy()) {
    say("Ready.");
  }
}

// ---- the page -------------------------------------------------------------------------------------------------------

const sendFile = guarded(async (file, question = "") => {
  complain("");
  say(`Sending ${file.name} ...`);
  const linked = state.image && !pages ? state : null; // a link to an image that was forgotten: the rest of it holds
  const image = await api.upload(file);
  pages = image.pages;
  if (linked) state = { ...state, image: image.id, page: Math.min(state.page, pages - 1) };
  else state = { ...state, image: image.id, page: 0, question: "", x: null, y: null };
  const box = new DataTransfer(); // the field shows what came by other ways too
  box.items.add(file);
  $("file").files = box.files;
  $("file-name").textContent = pages > 1 ? `${file.name}, ${pages} pages` : file.name;
  if (question && !$("question").value) $("question").value = question;
  $("question").focus();
  await openPage();
});

const loadExample = guarded(async () => {
  const file = await (await fetch("/static/example.webp")).blob();
  await sendFile(new File([file], "example.webp", { type: "image/webp" }), "What is the total?");
});

async function openPage() {
  showThumbnails($("pages"), state.image, pages, state.page);
  turn.abort();
  opening?.abort();
  const mine = opening = new AbortController();
  say("Opening the page ...");
  busy(true);
  try {
    const shown = await api.picture(state.image, state.page, SIDE, mine.signal);
    mine.signal.throwIfAborted(); // another page was turned to meanwhile
    for (const map of maps) map.replaceChildren();
    looked.querySelector(".fixations").replaceChildren();
    views = [];
    looked.querySelector(".empty").hidden = true;
    stage.hidden = false;
    await showPicture(page, shown);
    mine.signal.throwIfAborted();
  } finally {
    if (opening === mine) opening = null;
  }
  await run();
}

const turnTo = guarded(async (number) => {
  Object.assign(state, { page: number, x: null, y: null });
  await openPage();
});

// ---- looking and asking ---------------------------------------------------------------------------------------------

function wordsFor(allocator) {
  const { image, page: number, question, relevance, budget, fovea, x, y } = state;
  const words = { image_id: image, page: number, question, allocator, relevance, budget };
  if (allocator === "foveated") words.fovea = fovea;
  return x === null ? words : { ...words, x, y };
}

const run = guarded(async () => {
  turn.abort();
  turn = new AbortController();
  const { signal } = turn;
  history.replaceState(null, "", toHash(state));
  if (!state.image || !pages || opening) return;
  complain("");
  say("Looking ...");
  busy(true);
  const rules = state.second ? [state.allocator, state.second] : [state.allocator];
  showComparing(rules);
  const boxes = showQuestions(rules);
  try {
    views = await Promise.all(rules.map((rule, i) => lookOnce(rule, i, boxes[i], signal)));
  } catch (error) {
    if (!signal.aborted) turn.abort(); // the other look is of no use either
    throw error;
  }
  busy(false);
  for (const name of ["save-png", "save-json", "link"]) $(name).disabled = false;
  say("Ready.");
  if (state.question) remember();
});

async function lookOnce(rule, i, box, signal) {
  const words = wordsFor(rule);
  const look = await api.look(words, signal);
  signal.throwIfAborted();
  views[i] = { look };
  showLook(i);
  const [, said] = await Promise.all([
    showKnown(i, words, signal),
    state.question ? answerInto(box, words, signal) : null,
  ]);
  return { look, known: knowns[i], said };
}

async function answerInto(box, words, signal) {
  const [text, sure] = box.querySelectorAll(".text, .sure");
  const whole = await api.answer(words, (grown) => {
    box.classList.remove("old");
    text.textContent = grown;
  }, signal);
  text.textContent = whole.answer || "(no answer)";
  sure.textContent = `${draw.percent(whole.confidence)} sure, ${words.allocator}, ${whole.tokens} tokens`;
  return { text: whole.answer, confidence: whole.confidence, line: `${text.textContent} (${sure.textContent})` };
}

function remember() {
  const { image, page: number, question } = state, { look, said } = views[0];
  const last = asked.at(-1), same = last && last.image === image && last.page === number && last.question === question;
  const entry = { image, page: number, question, fixation: look.fixations[0], line: said.line };
  asked = [...(same ? asked.slice(0, -1) : asked), entry];
  showHistory();
  showFixations();
}

// ---- what is shown --------------------------------------------------------------------------------------------------

function showQuestions(rules) {
  const before = [...$("answers").children].map((box) => box.querySelector(".text")?.textContent ?? "");
  const boxes = rules.map((rule, i) => {
    const text = draw.element("p", { className: "text", textContent: state.question ? before[i] || "..." : "A free look." });
    const sure = draw.element("p", { className: "sure faint", textContent: state.question || "Ask something about the page." });
    return draw.element("div", { className: state.question ? "answer old" : "answer" }, text, sure);
  });
  $("answers").replaceChildren(...boxes);
  return boxes;
}

function showLook(i) {
  here.cell = -1;
  draw.drawCells(maps[i], views[i].look);
  showFixations();
  const looks = views.filter(Boolean).map(({ look }) => look);
  draw.drawLegend($("legend"), looks);
  $("facts").textContent = looks.map(draw.facts).join("; ");
  $("cell").textContent = "Point at a cell to see its level and relevance.";
  $("free").hidden = state.x === null;
  page.alt = `The page${state.question ? `, looked at for: ${state.question}` : ""}`;
}

async function showKnown(i, words, signal) {
  const picture = await api.reconstruction(words, SIDE, signal);
  signal.throwIfAborted();
  await showPicture(knowns[i], picture);
  knownFrame.querySelector(".empty").hidden = true;
  knownFrame.querySelector(".stage").hidden = false;
}

// Where each question looked, numbered in the order of asking; the marks of now are moved.
function showFixations() {
  const look = views[0]?.look ?? views[1]?.look;
  if (!look) return;
  const mine = asked.map((entry, n) => ({ ...entry, n: n + 1 }))
    .filter((entry) => entry.image === state.image && entry.page === state.page);
  const last = mine.at(-1), current = last?.question === state.question ? last : null;
  const past = mine.filter((entry) => entry !== current).slice(-TRAIL);
  const marks = past.map(({ n, fixation: [x, y] }) => ({ key: `past ${n}`, x, y, text: String(n), kind: "past" }));
  views.forEach((view, i) => view?.look.fixations.forEach(([x, y], n) => {
    const text = n ? `.${n + 1}` : String(current?.n ?? (state.question ? asked.length + 1 : ""));
    marks.push({ key: `now ${i} ${n}`, x, y, text: i ? "" : text, kind: i ? "other" : "" });
  }));
  draw.drawFixations(looked.querySelector(".fixations"), marks, look.image);
}

function showComparing(rules) {
  const two = rules.length > 1;
  document.body.classList.toggle("comparing", two);
  $("swipe-field").hidden = !two;
  for (const each of document.querySelectorAll(".divider, .stage > .second")) each.toggleAttribute("hidden", !two);
  $("swipe-names").textContent = two ? `${rules[0]} left of it, ${rules[1]} right` : "";
  views.length = Math.min(views.length, rules.length);
}

function showHistory() {
  $("no-history").hidden = asked.length > 0;
  $("history").replaceChildren(...asked.map((entry) => {
    const again = draw.element("button", { type: "button", textContent: entry.question });
    again.addEventListener("click", () => askAgain(entry));
    return draw.element("li", {}, again, ` ${entry.line}`);
  }));
}

function showSettings() {
  for (const name of ["allocator", "relevance", "budget", "fovea", "question"]) $(name).value = state[name];
  $("compare").checked = Boolean(state.second);
  $("second-field").hidden = !state.second;
  if (state.second) $("second").value = state.second;
  $("budget-said").textContent = state.budget;
  $("fovea-said").textContent = Number(state.fovea).toFixed(2);
  $("fovea").disabled = state.allocator !== "foveated" && state.second !== "foveated";
}

function pointAt(map, cell) {
  maps[here.map].querySelector(".here")?.classList.remove("here");
  here = { map, cell };
  if (cell < 0 || !views[map]) return;
  maps[map].querySelector(`[data-cell="${cell}"]`)?.classList.add("here");
  $("cell").textContent = draw.describe(views[map].look, cell);
}

// ---- what the user does ---------------------------------------------------------------------------------------------

function lookAt(x, y, { width, height }) {
  Object.assign(state, { x: Math.round(Math.min(width, Math.max(0, x))), y: Math.round(Math.min(height, Math.max(0, y))) });
  run();
}

const askAgain = guarded(async ({ image, page: number, question }) => {
  $("question").value = question;
  const turned = image !== state.image || number !== state.page;
  if (image !== state.image) pages = (await api.known(image)).pages;
  Object.assign(state, { image, page: number, question, x: null, y: null });
  await (turned ? openPage() : run());
});

function onAsk(event) {
  event.preventDefault();
  if (!pages) {
    complain("Choose a page first: drop a file, or load the example.");
    return;
  }
  Object.assign(state, { question: $("question").value.trim(), x: null, y: null });
  run();
}

function onSetting() {
  for (const name of ["allocator", "relevance"]) state[name] = $(name).value;
  for (const name of ["budget", "fovea"]) state[name] = Number($(name).value);
  state.second = $("compare").checked ? $("second").value : "";
  const typed = $("question").value;
  showSettings();
  $("question").value = typed; // what is typed but not asked stays
  clearTimeout(rest);
  rest = setTimeout(run, DELAY);
}

function onMapKey(event, map) {
  const look = views[map]?.look;
  if (!look) return;
  const cell = here.map === map && here.cell >= 0 ? here.cell : draw.nearest(look, ...look.fixations[0]);
  if (event.key.startsWith("Arrow")) pointAt(map, draw.neighbour(look, cell, event.key));
  else if (event.key === "Home") pointAt(map, 0);
  else if (event.key === "End") pointAt(map, look.tokens.length - 1);
  else if (event.key === "Enter") lookAt(...draw.centre(look.tokens[cell].box), look.image);
  else if (event.key === "Escape") event.target.blur();
  else return;
  event.preventDefault();
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied.");
  } catch {
    say("The address of this page is the link; copy it from there.");
  }
}

function savePng() {
  const shown = { page, views, question: state.question, divider: $("swipe").value / 100, cells: $("show-cells").checked };
  save(asPng(shown), "look.png");
}

function wireMaps() {
  maps.forEach((map, i) => {
    map.addEventListener("pointermove", ({ target }) => {
      if (target.dataset.cell !== undefined) pointAt(i, Number(target.dataset.cell));
    });
    map.addEventListener("pointerleave", () => { if (document.activeElement !== map) pointAt(i, -1); });
    map.addEventListener("focus", () => {
      const look = views[i]?.look;
      if (look && map.matches(":focus-visible")) pointAt(i, draw.nearest(look, ...look.fixations[0]));
    });
    map.addEventListener("blur", () => pointAt(i, -1));
    map.addEventListener("keydown", (event) => onMapKey(event, i));
    map.addEventListener("click", (event) => {
      const { left, top, width, height } = map.getBoundingClientRect(), image = views[i]?.look.image;
      if (!image) return;
      lookAt(((event.clientX - left) / width) * image.width, ((event.clientY - top) / height) * image.height, image);
    });
  });
}

function wire() {
  $("ask").addEventListener("submit", onAsk);
  for (const name of ["budget", "fovea", "allocator", "relevance", "compare", "second"]) $(name).addEventListener("input", onSetting);
  $("show-cells").addEventListener("change", ({ target }) => stage.classList.toggle("bare", !target.checked));
  $("free").addEventListener("click", () => {
    Object.assign(state, { x: null, y: null });
    run();
  });
  $("save-png").addEventListener("click", guarded(savePng));
  $("save-json").addEventListener("click", () => save(asJson(views), "look.json"));
  $("link").addEventListener("click", copyLink);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // what follows the # is the view
    $("question").focus();
  });
  addEventListener("hashchange", guarded(restore));
  $("example").addEventListener("click", loadExample);
  wireMaps();
  wireDividers($("swipe"));
  wireFiles($("file"), sendFile);
  wireThumbnails($("pages"), turnTo);
}

// ---- the beginning --------------------------------------------------------------------------------------------------

async function fillSelects() {
  const { allocators, relevances } = await api.names();
  const options = (names) => names.map((name) => draw.element("option", { value: name, textContent: name }));
  $("allocator").replaceChildren(...options(allocators));
  $("second").replaceChildren(...options(allocators));
  $("second").value = "uniform";
  $("relevance").replaceChildren(...options(relevances));
}

async function restore() {
  state = fromHash(location.hash);
  for (const name of ["allocator", "relevance", "second"]) { // a name that there is not: the usual one
    if (![...$(name).options].some(({ value }) => value === state[name])) state[name] = DEFAULTS[name];
  }
  showSettings();
  pages = 0;
  if (!state.image) return;
  try {
    pages = (await api.known(state.image)).pages;
  } catch (error) {
    if (error.status !== 404) throw error;
    complain("The server has forgotten the page of this link. Choose the same file again: question and settings are kept.");
    return;
  }
  $("file-name").textContent = pages > 1 ? `From a link, ${pages} pages` : "From a link";
  state.page = Math.min(state.page, pages - 1);
  await openPage();
}

Object.assign(api.ask, { token: () => askForToken($("token-dialog"), $("token")), notice: say });
if (matchMedia("(max-width: 899px)").matches) $("settings").open = false;
wire();
guarded(watchHealth)();
guarded(async () => {
  await fillSelects();
  await restore();
})();
