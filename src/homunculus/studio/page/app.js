// The page: what the user does changes the state, `run` looks and asks, view.js shows what came of it.

import * as api from "./api.js";
import * as draw from "./drawing.js";
import { askForToken, wireDividers, wireFiles } from "./gestures.js";
import { asJson, asPng, save } from "./keep.js";
import { DEFAULTS, fromHash, toHash } from "./link.js";
import { showPicture, showThumbnails, wireThumbnails } from "./pages.js";
import {
  $, asked, busy, complain, guarded, here, knownFrame, knowns, looked, maps, page, pointAt, say, showComparing,
  showFixations, showHistory, showKnown, showLines, showLook, showQuestions, showSettings, stage, state, views,
} from "./view.js";

const SIDE = 1600; // pixels of pictures, the longer way
const DELAY = 300; // ms that a slider must rest

let turn = new AbortController(); // of the look under way
let opening = null; // the page that is about to be shown: a question waits for it
let rest = 0; // timer of a slider
let sending = 0; // files on their way
let early = ""; // what was asked about them

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

async function onItsWay(work) {
  sending += 1;
  try {
    await work();
  } finally {
    sending -= 1;
  }
}

const sendFile = guarded((file, question = "") => onItsWay(async () => {
  complain("");
  say(`Sending ${file.name} ...`);
  const linked = state.image && !state.pages; // a link to an image that was forgotten: the rest of it holds
  const { id: image, pages } = await api.upload(file);
  Object.assign(state, { image, pages });
  if (linked) state.page = Math.min(state.page, pages - 1);
  else Object.assign(state, { page: 0, question: early, x: null, y: null });
  early = "";
  const box = new DataTransfer(); // the field shows what came by other ways too
  box.items.add(file);
  $("file").files = box.files;
  $("file-name").textContent = pages > 1 ? `${file.name}, ${pages} pages` : file.name;
  $("question").value ||= state.question || question;
  $("question").focus();
  await openPage();
}));

const loadExample = guarded(() => onItsWay(async () => {
  const file = await (await fetch("/static/example.webp")).blob();
  await sendFile(new File([file], "example.webp", { type: "image/webp" }), "What is the total?");
}));

async function openPage() {
  showThumbnails($("pages"), state.image, state.pages, state.page);
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
    views.length = 0;
    showLines(lookAt);
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
  if (!state.image || !state.pages || opening) return;
  complain("");
  say("Looking ...");
  busy(true);
  const rules = state.second ? [state.allocator, state.second] : [state.allocator];
  showComparing(rules);
  const boxes = showQuestions(rules);
  try {
    const done = await Promise.all(rules.map((rule, i) => lookOnce(rule, i, boxes[i], signal)));
    signal.throwIfAborted();
    views.splice(0, views.length, ...done);
  } catch (error) {
    if (signal.aborted) return; // another look has taken its place, whatever became of this one
    turn.abort(); // the other look is of no use either
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
  showLines(lookAt); // those of the last answer go
  const said = state.question ? await answerInto(box, words, signal) : null; // nobody waits for the other picture
  signal.throwIfAborted();
  views[i] = { look, said };
  showLines(lookAt);
  await reconstruct(i, words, signal);
  return { look, known: knowns[i], said };
}

async function reconstruct(i, words, signal) {
  const picture = await api.reconstruction(words, SIDE, signal);
  signal.throwIfAborted();
  await showKnown(i, picture);
}

async function answerInto(box, words, signal) {
  const [text, sure] = box.querySelectorAll(".text, .sure");
  const whole = await api.answer(words, (grown) => {
    box.classList.remove("old");
    text.textContent = grown;
  }, signal);
  const { answer, confidence, visual_tokens, lines } = whole;
  text.textContent = answer || "(no answer)";
  sure.textContent = `${draw.percent(confidence)} sure, ${words.allocator}, ${visual_tokens} tokens`;
  return { answer, confidence, visual_tokens, lines, summary: `${text.textContent} (${sure.textContent})` };
}

function remember() {
  const { image, page: number, question } = state, { look, said } = views[0];
  const last = asked.at(-1), same = last && last.image === image && last.page === number && last.question === question;
  const entry = { image, page: number, question, fixation: look.fixations[0], summary: said.summary };
  if (same) asked.pop();
  asked.push(entry);
  showHistory(askAgain);
  showFixations();
}

// ---- what the user does ---------------------------------------------------------------------------------------------

function lookAt(x, y, { width, height }) {
  Object.assign(state, { x: Math.round(Math.min(width, Math.max(0, x))), y: Math.round(Math.min(height, Math.max(0, y))) });
  run();
}

const askAgain = guarded(async ({ image, page: number, question }) => {
  $("question").value = question;
  const turned = image !== state.image || number !== state.page;
  if (image !== state.image) state.pages = (await api.known(image)).pages;
  Object.assign(state, { image, page: number, question, x: null, y: null });
  await (turned ? openPage() : run());
});

function onAsk(event) {
  event.preventDefault();
  if (sending && !opening) {
    early = $("question").value.trim();
    say("The question waits for the page.");
    return;
  }
  if (!state.pages) {
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
  const shown = {
    page, views, question: state.question, divider: $("swipe").value / 100,
    cells: $("show-cells").checked, lines: $("show-lines").checked,
  };
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
  $("show-lines").addEventListener("change", ({ target }) => knownFrame.classList.toggle("unframed", !target.checked));
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
  Object.assign(state, fromHash(location.hash), { pages: 0 });
  for (const name of ["allocator", "relevance", "second"]) { // a name that there is not: the usual one
    if (![...$(name).options].some(({ value }) => value === state[name])) state[name] = DEFAULTS[name];
  }
  const typed = $("question").value;
  showSettings();
  $("question").value ||= typed; // before all this was there
  if (!state.image) return;
  try {
    state.pages = (await api.known(state.image)).pages;
  } catch (error) {
    if (error.status !== 404) throw error;
    complain("The server has forgotten the page of this link. Choose the same file again: question and settings are kept.");
    return;
  }
  $("file-name").textContent = state.pages > 1 ? `From a link, ${state.pages} pages` : "From a link";
  state.page = Math.min(state.page, state.pages - 1);
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
