// The pages work without this. It tells times by the viewer's clock, and reloads the first page for who asks for it.
"use strict";

(function times() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const language = "en-GB";
  const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat(language, { weekday: "short", day: "numeric", month: "short" });
  const date = new Intl.DateTimeFormat(language, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
  const midnight = (at) => new Date(at.getFullYear(), at.getMonth(), at.getDate());
  const today = midnight(new Date());
  const near = { "-1": "yesterday", 0: "today", 1: "tomorrow" };

  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const days = Math.round((midnight(at) - today) / 86400000);
    const named = at.getFullYear() === today.getFullYear() ? day.format(at) : date.format(at);
    time.textContent = (near[days] || named.replace(",", "")) + " " + clock.format(at);
  }
  const told = document.getElementById("zone");
  if (told) told.textContent = "your clock (" + zone + ")";
})();

(function done() {
  const asked = new URLSearchParams(location.search);
  if (!asked.has("done") && !asked.has("in")) return;
  history.replaceState(null, "", location.pathname); // said once: not again by a reload
})();

(function refresh() {
  const place = document.getElementById("refresh");
  if (!place) return;
  const box = place.querySelector("input");
  const key = "wakebell.refresh";
  place.hidden = false;
  box.checked = sessionStorage.getItem(key) === "on";
  box.addEventListener("change", () => sessionStorage.setItem(key, box.checked ? "on" : "off"));
  setInterval(() => {
    if (box.checked && document.visibilityState === "visible") location.replace(location.pathname);
  }, 60000);
})();
