// Requests to the service: a token if it wants one, patience if it is busy, and its own sentence if something is wrong.

const PATIENCE = 6; // tries while the service is busy

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// Told by the page: how to ask for a token, and where to say that we wait.
export const ask = { token: async () => "", notice: () => {} };
let asking = null; // one dialog for however many requests

async function tokenFromUser() {
  asking ??= ask.token().finally(() => { asking = null; });
  const token = await asking;
  if (token) sessionStorage.setItem("token", token);
  return token;
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

async function sentence(response) {
  try {
    const said = await response.json();
    return said.error?.message ?? `the service answered with status ${response.status}`;
  } catch {
    return `the service answered with status ${response.status}`;
  }
}

async function send(path, options) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  try {
    return await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("the service cannot be reached; is it still running?", 0);
  }
}

export async function request(path, options = {}) {
  let asked = false;
  for (let tries = 1; ; tries++) {
    const response = await send(path, options);
    if (response.ok) return response;
    if (response.status === 401 && !asked) {
      asked = true;
      if (await tokenFromUser()) continue;
    }
    if (response.status === 401) sessionStorage.removeItem("token"); // it was wrong: the next request asks again
    if (response.status === 429 && tries < PATIENCE) {
      const seconds = Math.min(60, Number(response.headers.get("Retry-After")) || 1);
      ask.notice(`The service is busy; trying again in ${seconds} s.`);
      await pause(seconds, options.signal);
      continue;
    }
    throw new ApiError(await sentence(response), response.status);
  }
}

const json = (words, signal) => ({
  method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(words),
});

export const health = async () => (await fetch("/healthz")).json();
export const names = async () => (await request("/v1/allocators")).json();
export const known = async (id) => (await request(`/v1/images/${encodeURIComponent(id)}`)).json();
export const look = async (words, signal) => (await request("/v1/look", json(words, signal))).json();

export async function upload(file) {
  const body = new FormData();
  body.append("image", file, file.name);
  return (await request("/v1/images", { method: "POST", body })).json();
}

export async function picture(id, page, side, signal) {
  const path = `/v1/images/${encodeURIComponent(id)}/pages/${page}?side=${side}`;
  return (await request(path, { signal })).blob();
}

export async function reconstruction(words, side, signal) {
  return (await request(`/v1/reconstruction?side=${side}`, json(words, signal))).blob();
}

// The answer as it grows: `grow(text)` for each further piece; at the end what the service says of the whole.
export async function answer({ question, ...how }, grow, signal) {
  const words = { ...how, stream: true, messages: [{ role: "user", content: question }] };
  const response = await request("/v1/chat/completions", json(words, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", text = "", whole = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") continue;
      const said = JSON.parse(data);
      if (said.error) throw new ApiError(said.error.message, 0);
      text += said.choices[0]?.delta?.content ?? "";
      whole = said.homunculus ?? whole;
      grow(text);
    }
  }
  if (!whole) throw new ApiError("the answer broke off; ask again", 0);
  return whole;
}
