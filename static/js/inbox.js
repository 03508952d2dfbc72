// The inbox: keys, the pill of new rows, what turns grey in place. The server renders; nothing here decides.
addEventListener("DOMContentLoaded", () => {
  const $ = (query) => document.querySelector(query), all = (query) => [...document.querySelectorAll(query)];
  if (!$("#list")) return;
  const narrow = matchMedia("(width < 48rem)"), on = (name, act) => document.body.addEventListener(`htmx:${name}`, act);
  let shown = 0; // when the item in view came: a key within 0.4 s was meant for the one before it

  const mark = (focus) => {
    const { item, title } = $("#detail").dataset, row = document.getElementById(`row-${item}`);
    for (const other of all("#list .row")) other.ariaCurrent = other === row ? "true" : null;
    row?.scrollIntoView({ block: "nearest" });
    if (focus) ($("#detail [role=alert][tabindex]") ?? row ?? $("#detail"))?.focus({ preventScroll: true });
    if (focus) document.title = (/^\(\d+\+?\) /.exec(document.title) ?? [""])[0] + title;
    $("[data-socket]").dataset.socket = $("#list").dataset.line;
    shown = performance.now();
  };
  on("afterSwap", ({ detail: { target } }) => { if (["detail", "list"].includes(target?.id)) mark(target.id === "detail"); });
  on("beforeSwap", ({ detail }) => { // a refusal is a page too
    if (detail.target.id === "detail" && detail.xhr.status < 500) Object.assign(detail, { shouldSwap: true, isError: false });
  });
  on("beforeRequest", (event) => { // one pane at a time: a page of its own
    if (narrow.matches && event.target.matches(".row")) { event.preventDefault(); location.assign(event.target.href); }
  });

  new MutationObserver(() => {
    for (const fresh of all("#inbox-news > [id]")) {
      const old = document.getElementById(fresh.id), held = old === document.activeElement;
      if (old !== fresh) { fresh.ariaCurrent = old.ariaCurrent; old.replaceWith(fresh); if (held) fresh.focus(); }
    }
    const pill = $("#inbox-new"), top = narrow.matches ? scrollY : $("#list").scrollTop;
    const rows = $("#inbox-news [data-rows]")?.dataset.rows.split(" ").filter((id) => id && !document.getElementById(`row-${id}`));
    if (!rows) return;
    pill.hidden = !rows.length;
    pill.querySelector("b").textContent = rows.length;
    if (rows.length && !top && !$("#detail").dataset.item && !$("#list:is(:hover, :focus-within)") && getSelection().isCollapsed) pill.click();
  }).observe($("#inbox-news"), { childList: true });

  const step = (by) => {
    const rows = all("#list .row:not([data-done])"), here = document.activeElement.closest("#list .row") ?? $("#list [aria-current]");
    return rows[Math.min(Math.max(rows.indexOf(here) + by, 0), rows.length - 1)];
  };
  const act = (key) => {
    const control = $(`#detail [data-key=${key}]`);
    control?.click();
    control?.closest("details[open]")?.querySelector("form :is(textarea, select, input:not([type=hidden]))")?.focus();
  };
  const keys = { j: () => step(1)?.focus(), k: () => step(-1)?.focus(), "]": () => step(1)?.click(), "[": () => step(-1)?.click() };
  addEventListener("keydown", (event) => {
    const { key, target } = event, typing = target.closest("input, textarea, select");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (key === "Escape") return typing ? target.blur() : narrow.matches ? $(".back")?.click() : $("#list [aria-current]")?.focus();
    if (typing || event.repeat || document.documentElement.dataset.keys === "off" || !(key in keys || "aer".includes(key))) return;
    event.preventDefault();
    if (key in keys) keys[key](); else if (performance.now() - shown > 400) act(key);
  });
});
