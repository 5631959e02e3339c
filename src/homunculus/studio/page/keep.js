// What is shown, as a file: a PNG of both panels, or the look as JSON.

import { FIXATION, READ, coarseFirst, colour, facts, legend } from "./drawing.js";

const MARGIN = 24, LINE = 26, WIDEST = 900;
const INK = "#1b1f24", FAINT = "#5b6470";

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A look with its answer, as `homunculus ask --json` writes it; two of them when two are compared.
export function asJson(views) {
  const entries = views.map(({ look, said }) => {
    const { summary, ...whole } = said ?? {};
    return { ...look, ...whole };
  });
  return new Blob([JSON.stringify(entries.length > 1 ? entries : entries[0]) + "\n"], { type: "application/json" });
}

function wrapped(ink, text, width) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (ink.measureText(longer).width > width && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function drawCells(ink, { look }, scale) {
  for (const { box: [x0, y0, x1, y1], level } of coarseFirst(look)) {
    const corners = [x0 * scale + 0.5, y0 * scale + 0.5, (x1 - x0) * scale - 1, (y1 - y0) * scale - 1];
    ink.fillStyle = colour(level) + "1a";
    ink.fillRect(...corners);
    ink.strokeStyle = colour(level) + "cc";
    ink.strokeRect(...corners);
  }
}

function drawFixations(ink, { look }, scale) {
  ink.strokeStyle = FIXATION;
  for (const [x, y] of look.fixations) {
    for (const [radius, width] of [[15, 4], [3, 3]]) {
      ink.lineWidth = width;
      ink.beginPath();
      ink.arc(x * scale, y * scale, radius, 0, 2 * Math.PI);
      ink.stroke();
    }
  }
  ink.lineWidth = 1;
}

function drawLines(ink, { said }, scale) {
  ink.strokeStyle = READ;
  for (const { box: [x0, y0, x1, y1] } of said?.lines ?? []) ink.strokeRect(x0 * scale, y0 * scale, (x1 - x0) * scale, (y1 - y0) * scale);
}

// Each view has its part of the panel: all of it, or what lies on its side of the divider.
function panel(ink, left, top, width, height, views, divider, draw) {
  views.forEach((view, i) => {
    const from = i ? width * divider : 0, to = views.length > 1 && !i ? width * divider : width;
    ink.save();
    ink.translate(left, top);
    ink.beginPath();
    ink.rect(from, 0, to - from, height);
    ink.clip();
    draw(view);
    ink.restore();
  });
  if (views.length > 1) {
    ink.fillStyle = FIXATION;
    ink.fillRect(left + width * divider - 1, top, 3, height);
  }
  ink.strokeStyle = FAINT;
  ink.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
}

// `shown` has the page's image, the views {look, known, said}, the question, where the divider is, and whether cells and lines are drawn.
export function asPng({ page, views, question, divider, cells, lines }) {
  const { width: full, height: tall } = views[0].look.image;
  const width = Math.min(WIDEST, page.naturalWidth), scale = width / full, height = Math.round(tall * scale);
  const canvas = document.createElement("canvas"), ink = canvas.getContext("2d");
  const sheet = 2 * width + 3 * MARGIN, inner = sheet - 2 * MARGIN;
  ink.font = "18px sans-serif";
  const written = [
    [INK, question || "(a free look)"],
    ...views.flatMap(({ look, said }) => [...(said ? [[FIXATION, said.summary]] : []), [FAINT, facts(look)]]),
  ].flatMap(([ink_, text]) => wrapped(ink, text, inner).map((line) => [ink_, line]));
  const entries = legend(views[0].look);
  const top = MARGIN + LINE * written.length + MARGIN / 2;
  canvas.width = sheet;
  canvas.height = top + height + MARGIN / 2 + LINE * entries.length + MARGIN / 2;
  ink.font = "18px sans-serif"; // a new size forgets it
  ink.fillStyle = "#ffffff";
  ink.fillRect(0, 0, canvas.width, canvas.height);
  written.forEach(([shade, line], i) => {
    ink.fillStyle = shade;
    ink.fillText(line, MARGIN, MARGIN + LINE * i + 16);
  });
  panel(ink, MARGIN, top, width, height, views, divider, (view) => {
    ink.drawImage(page, 0, 0, width, height);
    if (cells) drawCells(ink, view, scale);
    drawFixations(ink, view, scale);
  });
  panel(ink, 2 * MARGIN + width, top, width, height, views, divider, (view) => {
    ink.drawImage(view.known, 0, 0, width, height);
    if (lines) drawLines(ink, view, scale);
  });
  entries.forEach(({ colour, text }, i) => {
    const y = top + height + MARGIN / 2 + LINE * i;
    ink.strokeStyle = colour;
    ink.lineWidth = 3;
    ink.strokeRect(MARGIN + 1.5, y + 1.5, 13, 13);
    ink.fillStyle = FAINT;
    ink.fillText(text, MARGIN + 24, y + 14);
  });
  const letters = atob(canvas.toDataURL("image/png").split(",")[1]); // toBlob waits for idle time, for seconds at worst
  return new Blob([Uint8Array.from(letters, (letter) => letter.charCodeAt(0))], { type: "image/png" });
}
