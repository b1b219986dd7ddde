"use strict";
// Each key belongs to the element that names it in data-keys, and does what a click on it does.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  const at = event.target;
  if (at.closest("input, textarea, select")) return;
  // Enter and the space bar press what has the focus
  if (event.key === "Enter" && at.closest("a, button, summary")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const wanted = [...document.querySelectorAll("[data-keys]")].find((one) => one.dataset.keys.split(" ").includes(key));
  if (!wanted) return;
  event.preventDefault();
  wanted.click();
});
// A second click while the first is under way would be a second verdict.
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
const help = document.getElementById("help");
if (help) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") help.open = false;
  });
}
