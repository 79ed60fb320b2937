// What is read is not pulled away: nothing is exchanged while somebody has text of it marked, paused it, or does not look,
// and of an answer only what is another than before, so that a screen reader stays where it is.
"use strict";
const OLD_MS = 45_000; // three questions without an answer
const OLD = "What is shown is old: the service has not answered for a while, or text of this page is marked.";
const SILENT = "The service does not answer; what is shown is old.", UNTOLD = "The service could not tell; what is shown is old.";
let answered = performance.now(), live = false, failed = "", paused = "";
const put = (name, text) => { const place = document.getElementById(name); if (place && place.textContent !== text) place.textContent = text; };
const exchanged = () => document.getElementById("now") !== null; // else nothing of this page changes by itself
const tell = () => exchanged() && put("liveness", paused || failed || (live ? "Live." : "Asked for every 15 seconds."));
const fails = (text) => () => { failed = text; tell(); };
const marked = () => { const there = document.getSelection(); return there !== null && !there.isCollapsed; };
document.addEventListener("htmx:beforeRequest", (event) => { if (document.hidden || paused || marked()) event.preventDefault(); });
document.addEventListener("htmx:beforeSwap", (event) => { if (paused || marked()) event.detail.shouldSwap = false; });
// The same elements in the same order are kept, with what differs in them; else all that are in the one around them go.
const kin = (one, other) => one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.id === other.id;
const adopt = (kept, fresh) => {
  const here = [...kept.childNodes], there = [...fresh.childNodes];
  if (here.length !== there.length || !here.every((each, at) => kin(each, there[at]))) return kept.replaceChildren(...there);
  here.forEach((each, at) => {
    const next = there[at];
    if (each.isEqualNode(next)) return;
    if (each.nodeType !== Node.ELEMENT_NODE) { if (each.data !== next.data) each.data = next.data; return; }
    for (const { name } of [...each.attributes]) if (!next.hasAttribute(name)) each.removeAttribute(name);
    for (const { name, value } of next.attributes) if (each.getAttribute(name) !== value) each.setAttribute(name, value);
    adopt(each, next);
  });
};
htmx.defineExtension("adopt", {
  isInlineSwap: (style) => style === "adopt",
  handleSwap: (style, kept, fragment) => {
    const fresh = style === "adopt" && fragment.querySelector("#now");
    if (fresh) adopt(kept, fresh);
    return Boolean(fresh);
  },
});
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
  const time = document.querySelector("footer time"), now = new Date().toISOString().slice(0, 19) + "Z";
  if (time) { time.textContent = now; time.dateTime = now; }
  answered = performance.now();
  if (failed) { failed = ""; tell(); }
  judge();
});
for (const name of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(name, fails(SILENT));
document.addEventListener("htmx:responseError", fails(UNTOLD));
// A stream of a service that hangs stays open, so what counts is when the last answer came.
const judge = () => {
  const old = exchanged() && performance.now() - answered > OLD_MS;
  document.documentElement.classList.toggle("is-old", old);
  put("old", paused || (old ? OLD : ""));
};
setInterval(judge, 1000);
const button = document.getElementById("pause");
if (button && exchanged()) {
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = paused ? "" : `Updates are paused: this is how it was at ${document.querySelector("footer time").textContent}.`;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    tell();
    judge();
    if (!paused) htmx.trigger("#now", "sse:changed");
  });
}
