// The frame: keys, theme, zone, title and notices. Everything it does has a way without it.
(() => {
  const html = document.documentElement;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) document.cookie = `agentops-zone=${zone}; path=/; max-age=31536000; samesite=lax`;
  const fold = (kept) => { // open menus, but the one that holds `kept`; focus stays where it can be seen
    for (const menu of all("details.menu[open]")) if (!(menu.open = menu.contains(kept)) && !kept) menu.firstElementChild.focus();
  };
  addEventListener("click", (event) => fold(event.target));
  let asked = 0, waiting = Infinity; // when "g" was pressed; how much waited when we heard last
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") fold(null);
    const off = html.dataset.keys === "off" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
    if (off || event.defaultPrevented || event.target.closest("input, textarea, select, [contenteditable]")) return;
    const [key, going] = [CSS.escape(event.key), Date.now() - asked < 1500];
    asked = event.key === "g" ? Date.now() : 0;
    const link = document.querySelector(going ? `.nav > a[data-key="${key}"]` : `#keys a[data-key="${key}"]`);
    if (link) link.click();
    else if (key === "\\/") all("main [type=search], #search").find((each) => each.checkVisibility())?.focus();
    else if (key === "\\?") document.querySelector("#keys")?.togglePopover();
    else return;
    event.preventDefault();
  });
  document.addEventListener("live:state", ({ detail: { state } }) => {
    const why = document.querySelector(`#line [data-when=${state}] b`)?.textContent || ""; // offline and ended have one
    for (const button of all("main form[method=post] button, main button[form]")) {
      if (!why === !button.disabled || button.disabled && !button.matches("[data-off]")) continue;
      Object.assign(button, { disabled: Boolean(why), title: why }).toggleAttribute("data-off", Boolean(why));
    }
  });
  document.addEventListener("live:frame", ({ detail: frame }) => {
    if (!("waiting" in frame)) return;
    document.title = frame.title + document.title.replace(/^\(\d+\+?\) /, "");
    const tell = frame.waiting > waiting && document.hidden && "notify" in html.dataset && window.Notification;
    waiting = frame.waiting;
    if (tell && Notification.permission === "granted") new Notification("AgentOps", { body: frame.told, tag: "waiting" });
  });
  document.querySelector("#ask-notices")?.addEventListener("click", () => window.Notification?.requestPermission());
  document.addEventListener("look", ({ detail: { theme } }) => {
    if (theme) html.dataset.theme = theme; else delete html.dataset.theme;
    for (const button of all("button[name=theme]")) button.ariaPressed = String(button.value === theme);
  });
  for (const toast of all(".toast")) setTimeout(() => toast.remove(), 10000);
})();
