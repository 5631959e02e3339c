// The strip of a file's pages, and pictures that came as bytes, since a plain address could not bring a token.

import { picture } from "./api.js";
import { element } from "./drawing.js";

export async function showPicture(img, blob) {
  const before = img.src, mine = URL.createObjectURL(blob);
  img.src = mine;
  if (before) URL.revokeObjectURL(before);
  try {
    await img.decode();
  } catch (error) {
    if (img.src === mine) throw error; // else another picture has taken its place
  }
}

const thumbnails = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    thumbnails.unobserve(target);
    picture(target.dataset.image, target.dataset.page, 160)
      .then((blob) => showPicture(target.firstChild, blob)).catch(() => {}); // the number stands there all the same
  }
}, { rootMargin: "200px" });

export function showThumbnails(strip, image, pages, current) {
  strip.hidden = pages < 2;
  if (strip.dataset.image !== image) {
    strip.dataset.image = image;
    thumbnails.disconnect();
    strip.replaceChildren(...Array.from({ length: pages > 1 ? pages : 0 }, (_, n) => {
      const button = element("button", { type: "button" }, element("img", { alt: "" }), `Page ${n + 1}`);
      Object.assign(button.dataset, { image, page: n });
      thumbnails.observe(button);
      return button;
    }));
  }
  [...strip.children].forEach((button, n) => {
    button.tabIndex = n === current ? 0 : -1; // one stop for Tab, arrows go on
    if (n === current) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  });
}

export function wireThumbnails(strip, turnTo) {
  strip.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button) turnTo(Number(button.dataset.page));
  });
  strip.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], buttons = [...strip.children];
    if (!step) return;
    event.preventDefault();
    buttons[Math.min(buttons.length - 1, Math.max(0, buttons.indexOf(document.activeElement) + step))].focus();
  });
}
