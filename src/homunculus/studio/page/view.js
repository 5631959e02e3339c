// What is shown: the state of the page, and everything that is drawn of it.

import * as draw from "./drawing.js";
import { DEFAULTS } from "./link.js";
import { showPicture } from "./pages.js";

export const $ = (id) => document.getElementById(id);
const TRAIL = 5; // earlier fixations that are shown

export const [looked, knownFrame] = [$("looked"), $("known")];
export const stage = looked.querySelector(".stage"), page = looked.querySelector(".page");
export const maps = [...looked.querySelectorAll(".cells")], knowns = [...knownFrame.querySelectorAll(".known")];
export const frames = [...knownFrame.querySelectorAll(".lines")]; // of the lines that were read

export const state = { ...DEFAULTS, pages: 0 }; // what the address says, and how many pages the file has
export const views = []; // one, or two when comparing: {look, known, said}
export const asked = []; // history: {image, page, question, fixation, summary}
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

// The lines that were read for the answers: frames on the picture, and a list; a click on an entry looks there.
export function showLines(lookAt) {
  frames.forEach((svg, i) => draw.drawLines(svg, views[i]?.said?.lines ?? [], views[i]?.look.image));
  const answered = views.map((view, i) => ({ ...view, i })).filter(({ said }) => said);
  const counts = answered.map(({ look, said: { lines } }) =>
    `${views.length > 1 ? `${look.allocator}: ` : ""}${lines.length} ${lines.length === 1 ? "line" : "lines"} read`);
  const lists = answered.map(({ look, said, i }) => {
    const entries = said.lines.map((line, n) => lineEntry(line, frames[i].children[n], look.image, lookAt));
    return draw.element("ol", { ariaLabel: `Lines read, ${look.allocator}` }, ...entries);
  });
  $("lines").hidden = !answered.length;
  $("lines").replaceChildren(draw.element("summary", { textContent: counts.join("; ") }), ...lists);
}

function lineEntry({ text, confidence, box }, frame, image, lookAt) {
  const button = draw.element("button", { type: "button", textContent: text });
  for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => frame.classList.add("here"));
  for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => frame.classList.remove("here"));
  button.addEventListener("click", () => lookAt(...draw.centre(box), image));
  const sure = draw.element("span", { className: "faint", textContent: draw.percent(confidence) });
  return draw.element("li", {}, button, " ", sure);
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
    return draw.element("li", {}, again, ` ${entry.summary}`);
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
