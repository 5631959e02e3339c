// What a user does with pointer and files: drop and paste, drag the divider, give a token.

export function wireFiles(field, sendFile) {
  field.addEventListener("change", ({ target }) => { if (target.files[0]) sendFile(target.files[0]); });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", ({ relatedTarget }) => { if (!relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files[0]) sendFile(event.dataTransfer.files[0]);
  });
  addEventListener("paste", ({ clipboardData }) => { if (clipboardData.files[0]) sendFile(clipboardData.files[0]); });
}

export function swipeTo(field, share) {
  const bounded = Math.min(100, Math.max(0, share));
  field.value = bounded;
  document.documentElement.style.setProperty("--swipe", `${bounded}%`);
}

export function wireDividers(field) {
  field.addEventListener("input", () => swipeTo(field, Number(field.value)));
  for (const divider of document.querySelectorAll(".divider")) {
    divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
    divider.addEventListener("pointermove", (event) => {
      if (!divider.hasPointerCapture(event.pointerId)) return;
      const { left, width } = divider.parentElement.getBoundingClientRect();
      swipeTo(field, (100 * (event.clientX - left)) / width);
    });
  }
}

export function askForToken(dialog, field) {
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? field.value : ""), { once: true });
    dialog.returnValue = "";
  });
}
