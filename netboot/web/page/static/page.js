// What is read is not pulled away: nothing is exchanged while somebody has text of it marked or nobody looks.
"use strict";
const said = (text) => { const place = document.getElementById("liveness"); if (place) place.textContent = text; };
document.addEventListener("htmx:beforeRequest", (event) => {
  const marked = document.getSelection();
  if (document.hidden || (marked && !marked.isCollapsed)) event.preventDefault();
});
// A stream that ends is no failure: the browser opens it again, and meanwhile the page is asked for by itself.
htmx.createEventSource = (url) => {
  const source = new EventSource(url);
  source.addEventListener("open", () => said("Live."));
  source.addEventListener("error", () => said("Asked for every 15 seconds."));
  Object.defineProperty(source, "onerror", { set() {} });
  window.addEventListener("pagehide", () => source.close());
  return source;
};
document.addEventListener("htmx:afterSwap", () => {
  const time = document.querySelector("footer time"), now = new Date().toISOString().slice(0, 19) + "Z";
  if (time) { time.textContent = now; time.dateTime = now; }
});
document.addEventListener("htmx:sendError", () => said("The service does not answer; what is shown is old."));
document.addEventListener("htmx:responseError", () => said("The service could not tell; what is shown is old."));
