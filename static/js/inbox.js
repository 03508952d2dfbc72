// The inbox: keys, the pill of new rows, what turns grey in place. The server renders; nothing here decides.
addEventListener("DOMContentLoaded", () => {
  const $ = (query) => document.querySelector(query), all = (query) => [...document.querySelectorAll(query)];
  if (!$("#list")) return;
  let shown = 0; // when the item in view came: a key within 0.4 s was meant for the one before it
  document.body.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
    if (!["detail", "list"].includes(target?.id)) return;
    const { item, title } = $("#detail").dataset, row = $(`#row-${item}`);
    for (const other of all("#list .row")) other.ariaCurrent = other === row ? "true" : null;
    row?.scrollIntoView({ block: "nearest" });
    $("[data-socket*=inbox]").dataset.socket = $("#list").dataset.line;
    if (target.id === "list") return;
    ($("#detail [role=alert][tabindex]") ?? row ?? $("#detail")).focus({ preventScroll: true });
    document.title = (/^\(\d+\+?\) /.exec(document.title) ?? [""])[0] + title;
    shown = performance.now();
  });
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => { // a refusal is a page too
    if (detail.target.id === "detail" && detail.xhr.status < 500) Object.assign(detail, { shouldSwap: true, isError: false });
  });
  new MutationObserver(() => {
    for (const fresh of all("#inbox-news > [id]").filter((fresh) => fresh !== $(`#${fresh.id}`))) {
      $(`#${fresh.id}`).dataset.done = "";
      $(`#${fresh.id}`).replaceChildren(...fresh.childNodes);
    }
    const pill = $("#inbox-new"), rows = $("#inbox-news [data-rows]")?.dataset.rows.match(/\S+/g) ?? [];
    const count = pill.querySelector("b").textContent = rows.filter((id) => !$(`#row-${id}`)).length;
    const busy = $("#detail").dataset.item || $("#list:is(:hover, :focus-within)") || !getSelection().isCollapsed;
    pill.hidden = !count;
    if (count && !busy && !scrollY && !$("#list").scrollTop) pill.click();
  }).observe($("#inbox-news"), { childList: true });
  setInterval(() => all("time[data-until]").forEach((time) => {
    const left = Math.max(0, Math.floor((time.dataset.until - Date.now()) / 1000));
    if (left < 900) time.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  }), 1000);
  const row = (by) => {
    const rows = all("#list .row:not([data-done])"), here = document.activeElement.closest("#list .row") ?? $("#list [aria-current]");
    return rows[Math.min(Math.max(rows.indexOf(here) + by, 0), rows.length - 1)];
  };
  const keys = { j: () => row(1)?.focus(), k: () => row(-1)?.focus(), "]": () => row(1)?.click(), "[": () => row(-1)?.click() };
  addEventListener("keydown", ({ key, target, repeat, defaultPrevented, ctrlKey, metaKey, altKey, isComposing }) => {
    if (defaultPrevented || repeat || ctrlKey || metaKey || altKey || isComposing) return;
    if (key === "Escape") (target.closest("#detail") ? $("#list [aria-current]") : target)?.focus();
    if (target.closest("input, textarea, select") || document.documentElement.dataset.keys === "off") return;
    const control = /^[aer]$/.test(key) && performance.now() - shown > 400 && $(`#detail [data-key=${key}]`);
    if (keys[key]) keys[key](); else if (control) control.click(); else return;
    control && control.closest("details[open]")?.querySelector("form :is(textarea, select, input:not([type=hidden]))")?.focus();
  });
});
