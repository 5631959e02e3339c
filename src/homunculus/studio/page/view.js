// What is shown: the state of the page, and everything that is drawn of it.

import * as draw from "./drawing.js";
import { DEFAULTS } from "./link.js";
import { showPicture } from "./pages.js";

export const $ = (id) => document.getElementById(id);
const TRAIL = 5; // earlier fixations that are shown

export const [looked, knownFrame] = [$("looked"), $("known")];
export const stage = looked.querySelector(".stage"), page = looked.querySelector(".page");
export const maps = [...looked.querySelectorAll(".cells")], knowns = [...knownFrame.querySelectorAll(".known")];

export const state = { ...DEFAULTS, pages: 0 }; // what the address says, and how many pages the file has
export const views = []; // one, or two when comparing: {look, known, said}
export const asked = []; // history: {image, page, question, fixation, line}
export let here = { map: 0, cell: -1 }; // the cell that is pointed at

// ---- words for the user ---------------------------------------------------------------------------------------------

export const say = (text) => { $("status").textContent = text; };

export function complain(text) {
  $("error").hidden = !text;
  $("error").textContent = text;
}

export function busy(now) {
  if (now === undefined) return $("answers").getAttribute("aria-busy") === "true";
  $("answers").setAttribute("aria-busy", now);
  if (now) for (const name of ["save-png", "save-json"]) $(name).disabled = true; // half of a look is not kept
}

export function failed(error) {
  if (error.name === "AbortError") return;
  say("");
  busy(false);
  complain(error.message);
}

export const guarded = (action) => (...given) => Promise.resolve(action(...given)).catch(failed);

// ---- what is shown --------------------------------------------------------------------------------------------------

export function showQuestions(rules) {
  const before = [...$("answers").children].map((box) => box.querySelector(".text")?.textContent ?? "");
  const boxes = rules.map((rule, i) => {
    const text = draw.element("p", { className: "text", textContent: state.question ? before[i] || "..." : "A free look." });
    const sure = draw.element("p", { className: "sure faint", textContent: state.question || "Ask something about the page." });
    return draw.element("div", { className: state.question ? "answer old" : "answer" }, text, sure);
  });
  $("answers").replaceChildren(...boxes);
  return boxes;
}

export function showLook(i) {
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

export async function showKnown(i, picture) {
  await showPicture(knowns[i], picture);
  knownFrame.querySelector(".empty").hidden = true;
  knownFrame.querySelector(".stage").hidden = false;
}

// Where each question looked, numbered in the order of asking; the marks of now are moved.
export function showFixations() {
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

export function showComparing(rules) {
  const two = rules.length > 1;
  document.body.classList.toggle("comparing", two);
  $("swipe-field").hidden = !two;
  for (const each of document.querySelectorAll(".divider, .stage > .second")) each.toggleAttribute("hidden", !two);
  $("swipe-names").textContent = two ? `${rules[0]} left of it, ${rules[1]} right` : "";
  views.length = Math.min(views.length, rules.length);
}

export function showHistory(askAgain) {
  $("no-history").hidden = asked.length > 0;
  $("history").replaceChildren(...asked.map((entry) => {
    const again = draw.element("button", { type: "button", textContent: entry.question });
    again.addEventListener("click", () => askAgain(entry));
    return draw.element("li", {}, again, ` ${entry.line}`);
  }));
}

export function showSettings() {
  for (const name of ["allocator", "relevance", "budget", "fovea", "question"]) $(name).value = state[name];
  $("compare").checked = Boolean(state.second);
  $("second-field").hidden = !state.second;
  if (state.second) $("second").value = state.second;
  $("budget-said").textContent = state.budget;
  $("fovea-said").textContent = Number(state.fovea).toFixed(2);
  $("fovea").disabled = state.allocator !== "foveated" && state.second !== "foveated";
}

export function pointAt(map, cell) {
  maps[here.map].querySelector(".here")?.classList.remove("here");
  here = { map, cell };
  if (cell < 0 || !views[map]) return;
  maps[map].querySelector(`[data-cell="${cell}"]`)?.classList.add("here");
  $("cell").textContent = draw.describe(views[map].look, cell);
}
