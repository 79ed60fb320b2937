// What is read is not pulled away: nothing is exchanged while somebody has text of it marked, paused it, or does not look.
"use strict";
const OLD_MS = 45_000; // three questions without an answer
const OLD = "What is shown is old: the service has not answered for a while, or text of this page is marked.";
const SILENT = "The service does not answer; what is shown is old.", UNTOLD = "The service could not tell; what is shown is old.";
let answered = performance.now(), live = false, failed = "", paused = "";
const put = (name, text) => { const place = document.getElementById(name); if (place && place.textContent !== text) place.textContent = text; };
const main = document.getElementById("main");
const exchanged = () => main.hasAttribute("hx-get"); // else nothing of this page changes by itself
const tell = () => exchanged() && put("liveness", paused || failed || (live ? "Live." : "Asked for every 15 seconds."));
const fails = (text) => () => { failed = text; tell(); };
const marked = () => { const there = document.getSelection(); return there !== null && !there.isCollapsed; };
document.addEventListener("htmx:beforeRequest", (event) => { if (document.hidden || paused || marked()) event.preventDefault(); });
document.addEventListener("htmx:beforeSwap", (event) => { if (paused || marked()) event.detail.shouldSwap = false; });
// What somebody opened stays open: no answer of the service says that it is.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name) => name !== "open";
// Who sends a form goes where that leads: what was asked before it, and is answered without a session, leads nowhere.
let leaving = false;
document.addEventListener("submit", () => { leaving = true; });
window.addEventListener("pageshow", () => { leaving = false; });
for (const name of ["htmx:beforeRequest", "htmx:beforeOnLoad"]) document.addEventListener(name, (event) => { if (leaving) event.preventDefault(); });
// A stream that ends is no failure: the browser opens it again, and meanwhile the page is asked for by itself.
htmx.createEventSource = (url) => {
  const source = new EventSource(url);
  source.addEventListener("open", () => { live = true; tell(); });
  source.addEventListener("error", () => { live = false; tell(); });
  Object.defineProperty(source, "onerror", { set() {} });
  window.addEventListener("pagehide", () => source.close());
  return source;
};
document.addEventListener("htmx:afterSwap", () => {
  const time = document.querySelector("footer time"), now = document.getElementById("now").dataset.asOf;
  if (time) { time.textContent = now; time.dateTime = now; }
  answered = performance.now();
  if (failed) { failed = ""; tell(); }
  judge();
});
for (const name of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(name, fails(SILENT));
for (const name of ["htmx:responseError", "untold"]) document.addEventListener(name, fails(UNTOLD));
// A stream of a service that hangs stays open, so what counts is when the last answer came.
const judge = () => {
  const old = exchanged() && performance.now() - answered > OLD_MS;
  document.documentElement.classList.toggle("is-old", old);
  put("old", paused || (old ? OLD : ""));
};
setInterval(judge, 1000);
// For this tab, whichever of its pages is open.
const kept = { get() { try { return sessionStorage.getItem("paused") !== null; } catch { return false; } }, put(is) { try { if (is) sessionStorage.setItem("paused", ""); else sessionStorage.removeItem("paused"); } catch { /* then for this page alone */ } } };
const button = document.getElementById("pause");
const pause = (is) => {
  paused = is ? `Updates are paused: this is how it was at ${document.querySelector("footer time").textContent}.` : "";
  button.textContent = is ? "Resume updates" : "Pause updates";
  tell();
  judge();
};
if (button && exchanged()) {
  button.hidden = false;
  if (kept.get()) pause(true);
  button.addEventListener("click", () => {
    kept.put(!paused);
    pause(!paused);
    if (!paused) htmx.trigger(main, "sse:changed");
  });
}
