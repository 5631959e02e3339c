// What is drawn over a page: cells by level, fixations in order, frames of lines; and what a cell is, in words.

export const CELL = 32; // pixels of a cell at level 0
export const FIXATION = "#e4007c";
export const READ = "#00875a"; // frames of lines
// Finest to coarsest, the colours of homunculus.viz.
export const LEVELS = ["#b30021", "#e4572e", "#d99a00", "#2e8b57", "#2676b8", "#5b3fa0", "#3a3a3a"];

export const colour = (level) => LEVELS[Math.min(Math.round(level), LEVELS.length - 1)];
export const percent = (share) => `${Math.round(100 * share)}%`;
const short = (number) => String(Number(number.toPrecision(3)));
const SVG = "http://www.w3.org/2000/svg";

export function element(name, words = {}, ...children) {
  const made = Object.assign(document.createElement(name), words);
  made.append(...children);
  return made;
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Coarse cells first, so that the fine ones lie on top.
export const coarseFirst = (look) => look.tokens
  .map((token, i) => ({ ...token, i }))
  .sort((a, b) => b.level - a.level);

export function drawCells(svg, look) {
  svg.setAttribute("viewBox", `0 0 ${look.image.width} ${look.image.height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-label", `${look.allocator}: ${look.tokens.length} cells`);
  svg.replaceChildren(...coarseFirst(look).map(({ box: [x0, y0, x1, y1], level, i }) => drawn("rect", {
    x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0),
    fill: colour(level), stroke: colour(level), "data-cell": i,
  })));
}

export function drawLines(svg, lines, { width, height } = { width: 1, height: 1 }) {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren(...lines.map(({ box: [x0, y0, x1, y1] }) => drawn("rect", {
    x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0),
  })));
}

// Marks {x, y, text, kind}; those of one key are moved, so that the eye can follow.
export function drawFixations(box, marks, { width, height }) {
  const before = new Map([...box.children].map((mark) => [mark.dataset.key, mark]));
  box.replaceChildren(...marks.map(({ key, x, y, text, kind }) => {
    const mark = before.get(key) ?? element("div", {}, element("span"));
    mark.dataset.key = key;
    mark.className = `fixation ${kind}`;
    mark.firstChild.textContent = text;
    mark.firstChild.hidden = !text;
    const move = () => {
      mark.style.left = `${(100 * x) / width}%`;
      mark.style.top = `${(100 * y) / height}%`;
    };
    if (before.has(key)) requestAnimationFrame(move);
    else move();
    return mark;
  }));
}

export function legend(look) {
  const counts = new Map();
  for (const { level } of look.tokens) counts.set(level, (counts.get(level) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a - b).map(([level, count]) => ({
    colour: colour(level), text: `level ${short(level)}: ${count} cells of ${short(CELL * 2 ** level)} px`,
  }));
}

export function drawLegend(list, looks) {
  const named = (look) => (looks.length > 1 ? `${look.allocator}, ` : "");
  const rows = looks.flatMap((look) => legend(look).map(({ colour, text }) => ({ colour, text: named(look) + text })));
  list.replaceChildren(...rows.map(({ colour, text }) => {
    const swatch = drawn("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" });
    swatch.append(drawn("rect", { x: 1.5, y: 1.5, width: 11, height: 11, fill: "none", stroke: colour, "stroke-width": 3 }));
    return element("li", {}, swatch, text);
  }));
}

export function describe(look, i) {
  const { box: [x0, y0, x1, y1], level, relevance } = look.tokens[i];
  const where = `${short(x1 - x0)} × ${short(y1 - y0)} px at ${short(x0)}, ${short(y0)}`;
  return `${look.allocator}, cell ${i + 1} of ${look.tokens.length}: level ${short(level)}, ` +
    `relevance ${short(relevance)}, ${where}`;
}

export const facts = (look) =>
  `${look.allocator}: ${look.tokens.length} tokens, ${percent(look.coverage)} of the ` +
  `${look.image.width} × ${look.image.height} page covered`;

export const centre = ([x0, y0, x1, y1]) => [(x0 + x1) / 2, (y0 + y1) / 2];

export function nearest(look, x, y) {
  const far = ({ box }) => Math.hypot(centre(box)[0] - x, centre(box)[1] - y);
  return look.tokens.reduce((best, token, i) => (far(token) < far(look.tokens[best]) ? i : best), 0);
}

const WAYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

// The cell that an arrow key leads to: ahead rather than aside, near rather than far.
export function neighbour(look, from, key) {
  const [wx, wy] = WAYS[key], [x, y] = centre(look.tokens[from].box);
  let best = from, least = Infinity;
  look.tokens.forEach(({ box }, i) => {
    const [dx, dy] = [centre(box)[0] - x, centre(box)[1] - y];
    const ahead = dx * wx + dy * wy, aside = Math.abs(dx * wy) + Math.abs(dy * wx);
    if (ahead > 0 && aside <= 2 * ahead && ahead + 2 * aside < least) [best, least] = [i, ahead + 2 * aside];
  });
  return best;
}
