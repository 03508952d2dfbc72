// The frame: keys, theme, zone, title and notices. Everything it does has a way without it.
(() => {
  const html = document.documentElement;
  const line = document.querySelector("#line");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes(`agentops-zone=${zone}`)) {
    document.cookie = `agentops-zone=${zone}; path=/; max-age=31536000; samesite=lax`;
  }

  let asked = 0; // when "g" was pressed
  addEventListener("keydown", (event) => {
    const off = html.dataset.keys === "off" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
    if (off || event.defaultPrevented || event.target.closest("input, textarea, select, [contenteditable]")) return;
    const going = Date.now() - asked < 1500;
    asked = event.key === "g" ? Date.now() : 0;
    const place = going && document.querySelector(`.nav > a[data-key="${CSS.escape(event.key)}"]`);
    const search = event.key === "/" && [...document.querySelectorAll("main [type=search], #search")].find((e) => e.checkVisibility());
    const start = !going && event.key === "n" && document.querySelector("main a[data-key=n]");
    if (place || start) (place || start).click();
    else if (search) search.focus();
    else if (event.key === "?") document.querySelector("#keys")?.togglePopover();
    else return;
    event.preventDefault();
  });

  document.addEventListener("live:state", ({ detail: { state } }) => {
    const off = state === "offline" || state === "ended";
    for (const button of document.querySelectorAll("main form[method=post] button, main button[form]")) {
      if (off === button.disabled || !off && !("off" in button.dataset)) continue;
      button.toggleAttribute("data-off", off);
      button.disabled = off;
      button.title = off ? line.querySelector(`[data-when=${state}] b`).textContent : "";
    }
  });

  let waiting = Infinity;
  document.addEventListener("live:frame", ({ detail: frame }) => {
    if (!("waiting" in frame)) return;
    document.title = frame.title + document.title.replace(/^\(\d+\+?\) /, "");
    const tell = frame.waiting > waiting && document.hidden && "notify" in html.dataset && window.Notification;
    waiting = frame.waiting;
    if (!tell || Notification.permission !== "granted") return;
    new Notification("AgentOps", { body: frame.told, tag: "waiting" }).onclick = () => window.focus();
  });

  document.body.addEventListener("look", ({ detail: { theme } }) => {
    if (theme) html.dataset.theme = theme; else delete html.dataset.theme;
    for (const each of document.querySelectorAll("button[name=theme]")) each.ariaPressed = String(each.value === theme);
  });
  document.querySelector("#ask-notices")?.addEventListener("click", () => window.Notification?.requestPermission());
  for (const toast of document.querySelectorAll(".toast")) setTimeout(() => toast.remove(), 10000);
})();
