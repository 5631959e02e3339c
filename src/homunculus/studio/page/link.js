// The view as an address: what is asked of which page, and how, after the #.

export const DEFAULTS = {
  image: "", page: 0, question: "", allocator: "foveated", relevance: "query", budget: 273, fovea: 0,
  second: "", x: null, y: null,
};

const within = (value, low, high, other) => {
  const number = Number(value);
  return value !== null && value !== "" && Number.isFinite(number) ? Math.min(high, Math.max(low, number)) : other;
};

export function toHash(state) {
  const words = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (state[name] !== usual && state[name] !== null) words.set(name, state[name]);
  }
  return `#${words}`;
}

// Whatever a link says is brought into bounds; names are checked by the service.
export function fromHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name) => words.get(name) ?? DEFAULTS[name];
  const [x, y] = ["x", "y"].map((name) => within(words.get(name), 0, 1e6, null));
  return {
    image: text("image"),
    page: Math.round(within(words.get("page"), 0, 1e6, 0)),
    question: text("question").slice(0, 2000),
    allocator: text("allocator"),
    relevance: text("relevance"),
    budget: Math.round(within(words.get("budget"), 16, 1024, DEFAULTS.budget)),
    fovea: within(words.get("fovea"), 0, 1, DEFAULTS.fovea),
    second: text("second"),
    ...(x === null || y === null ? { x: null, y: null } : { x, y }), // half a place is none
  };
}
