// The live page (reference/stack.md 3). A frame {"upto", "html"} holds cards newer than `upto`; one that is not newer is
// dropped. A frame without `upto` replaces fragments by id and may come again. Reconnecting is reading: ?after=<upto>.
// Others listen on document: "live:state" {state}, "live:frame" (the frame, after its swap).
(() => {
  const root = document.querySelector("[data-socket]"); // the page's own; last in the document is that of the frame
  if (!root || !window.WebSocket || !window.htmx) return;
  const chip = document.querySelector("#live") || document.createElement("span");
  const SILENCE = 20000; // the server says something every 5 s; a sleeping laptop's socket looks open and is not
  let upto = Number(root.dataset.upto || 0);
  let socket, timer, wait = 500, heard = 0, over = false;

  // "ended": signed out, or no right any more. The seconds are drawn, not written: nobody wants them read out.
  const say = (state, wait = 0) => {
    chip.dataset.wait = wait ? `, ${wait} s` : "";
    if (document.documentElement.dataset.line === state) return;
    document.documentElement.dataset.line = chip.dataset.state = state;
    chip.textContent = chip.dataset[state];
    chip.hidden = false;
    document.dispatchEvent(new CustomEvent("live:state", { detail: { state } }));
  };

  const take = (frame) => {
    if ("upto" in frame) {
      if (!(frame.upto > upto)) return;
      upto = frame.upto;
      root.dataset.upto = upto;
    }
    if (frame.html) keeping(() => window.htmx.swap(root, frame.html, { swapStyle: "none" }));
    document.dispatchEvent(new CustomEvent("live:frame", { detail: frame }));
  };

  // A form that somebody types in is never swapped away: it stays, marked as old, and the server checks what it sends.
  const typedIn = (field) => field === document.activeElement || field.type !== "hidden"
    && (field.checked !== field.defaultChecked || "defaultValue" in field && field.value !== field.defaultValue);
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (![...event.target.querySelectorAll("input, textarea, select")].some(typedIn)) return;
    event.detail.shouldSwap = false;
    event.target.dataset.stale = "";
  });
  // A reader at the end of the timeline is kept there; another is told how many cards came. Old ones make room.
  const list = document.querySelector("#timeline"), pill = document.querySelector("#more-new");
  const atEnd = () => list?.lastElementChild?.getBoundingClientRect().top < innerHeight + 80;
  const follow = (count, end) => {
    const more = pill.querySelector("b"), older = document.querySelector("#older");
    pill.hidden = !(more.textContent = end ? "" : Number(more.textContent) + count);
    for (; list.children.length > 390; older.hidden = false) list.firstChild.remove(); // with the blanks between
    older.search = `?before=${list.querySelector(".seq")?.textContent}`;
    if (end) list.lastElementChild.scrollIntoView({ block: "end" });
  };
  if (pill) addEventListener("scroll", () => pill.hidden || atEnd() && follow(0, true), { passive: true });
  // A card that is replaced stays as open, and as focused, as the reader had it.
  const keeping = (swap) => {
    const [end, size] = [atEnd(), list?.children.length];
    const card = (element) => element?.closest?.("#timeline > li")?.id;
    const open = [...document.querySelectorAll("#timeline details[open]")].map(card);
    const focused = card(document.activeElement);
    swap();
    for (const id of open) document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
    if (focused && document.activeElement === document.body) {
      document.getElementById(focused)?.querySelector("summary, a")?.focus({ preventScroll: true });
    }
    if (pill && list.children.length > size) follow(list.children.length - size, end);
  };

  const open = () => {
    clearTimeout(timer);
    if (over || socket && socket.readyState <= WebSocket.OPEN) return;
    const url = new URL(root.dataset.socket, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("after", upto);
    const mine = socket = new WebSocket(url);
    heard = Date.now();
    mine.onopen = () => { if (mine === socket) { wait = 500; say("live"); } };
    mine.onmessage = (event) => { if (mine === socket) { heard = Date.now(); take(JSON.parse(event.data)); } };
    mine.onclose = (event) => { if (mine === socket) closed(event.code); };
  };

  const closed = (code) => {
    if (code >= 4400) { over = true; socket = undefined; say("ended"); return; }
    again(Date.now() + wait * (0.5 + Math.random()));
    wait = Math.min(wait * 2, 15000);
  };
  const again = (at) => {
    const left = at - Date.now();
    clearTimeout(timer);
    if (left <= 0) { open(); return; }
    say(navigator.onLine ? "reconnecting" : "offline", Math.ceil(left / 1000));
    timer = setTimeout(again, Math.min(left, 1000), at);
  };

  const drop = () => { const old = socket; socket = undefined; old?.close(); };
  const now = () => {
    if (socket && Date.now() - heard > SILENCE) { drop(); say("reconnecting"); }
    open();
  };

  // A page that "back" brings out of the browser's memory holds a socket that only looks alive.
  addEventListener("pageshow", (event) => { if (event.persisted) { drop(); now(); } });
  addEventListener("online", () => { drop(); now(); });
  addEventListener("offline", () => { if (!over) say("offline"); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) now(); });
  document.querySelector("#line button")?.addEventListener("click", () => { drop(); now(); });
  setInterval(() => { if (socket && Date.now() - heard > SILENCE) now(); }, 5000);
  open();
})();
