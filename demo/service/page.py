"""Two plain pages for people: the ledger of real effects and the faults. Every value is escaped."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from demo.service.faults import MEANING

CSS = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
nav a { margin-right: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8886; vertical-align: top; }
.ready { display: flex; flex-wrap: wrap; gap: .75rem; }
form.row { display: flex; flex-wrap: wrap; gap: 1rem; align-items: end; margin: .75rem 0; }
.ready form.row { margin: 0; }
label { display: grid; grid-template-columns: minmax(0, 1fr); max-width: 100%; }
input, select, button { font: inherit; padding: .35rem .6rem; min-height: 2.75rem; }
input, select { box-sizing: border-box; max-width: 100%; }
"""

# What a story needs in one click: (label, fields).
READY = (
    ("Lose the reply of the next refund", {"kind": "reply_lost", "method": "POST", "path": "/refunds", "times": "1"}),
    (
        "Turn the next refund away as one too many",
        {"kind": "throttle", "method": "POST", "path": "/refunds", "times": "1"},
    ),
    (
        "Let the next refund happen 10 seconds late",
        {"kind": "late", "method": "POST", "path": "/refunds", "times": "1", "seconds": "10"},
    ),
    ("Lose the reply of the next message", {"kind": "reply_lost", "method": "POST", "path": "/messages", "times": "1"}),
)


def ledger(rows: list[dict[str, Any]], by_key: Mapping[str, int]) -> str:
    """Each effect that really happened, and how many there are per key."""
    counts = [(key or "(no key)", _times(key, n)) for key, n in by_key.items()]
    effects = [(r["n"], _when(r["at"]), r["kind"], r["object"], r["order_id"], r["key"], r["request"]) for r in rows]
    return _page(
        "Effect ledger",
        f"<p>Effects that really happened: {len(rows)}. A key that stands here twice would be a doubled effect.</p>"
        f"<h2>Per key</h2>{_table(('key', 'effects'), counts)}"
        f"<h2>All effects</h2>{_table(('n', 'time (UTC)', 'kind', 'object', 'order', 'key', 'request'), effects)}",
    )


def faults(armed: list[dict[str, Any]]) -> str:
    """What is armed, what can be armed."""
    columns = ("id", "kind", "method", "path", "contains", "times", "seconds", "retry_after")
    rows = [[("until cleared" if fault[c] is None else fault[c]) for c in columns] for fault in armed]
    ready = "".join(_form(_hidden(fields) + f"<button>{escape(label)}</button>") for label, fields in READY)
    options = "".join(f'<option value="{kind}">{kind}: {escape(text)}</option>' for kind, text in MEANING.items())
    fields = (
        f'<label>What goes wrong<select name="kind">{options}</select></label>'
        '<label>Method<input name="method" value="POST" size="6"></label>'
        '<label>Path begins with<input name="path" value="/refunds"></label>'
        '<label>Only if it names<input name="contains" placeholder="O-1042"></label>'
        '<label>Requests (empty: until cleared)<input name="times" value="1" inputmode="numeric"></label>'
        '<label>Seconds<input name="seconds" value="2" inputmode="decimal"></label>'
        '<label>Retry-After<input name="retry_after" value="1" inputmode="numeric"></label><button>Arm</button>'
    )
    return _page(
        "Faults",
        f'<h2>In one click</h2><div class="ready">{ready}</div>'
        f"<h2>Any fault</h2>{_form(fields)}"
        f"<h2>Armed now</h2>{_table(columns, rows)}{_form(_hidden({'do': 'clear'}) + '<button>Clear all</button>')}"
        f"<h2>Start over</h2><p>Forgets every effect, key and fault.</p>"
        f"{_form(_hidden({'do': 'start_over'}) + '<button>Start over</button>')}",
    )


def _times(key: str, n: int) -> str:
    return f"{n} (doubled)" if key and n > 1 else str(n)


def _when(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _form(inner: str) -> str:
    return f'<form class="row" method="post" action="/admin/faults">{inner}</form>'


def _hidden(fields: Mapping[str, str]) -> str:
    return "".join(f'<input type="hidden" name="{escape(n)}" value="{escape(v)}">' for n, v in fields.items())


def _table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(v))}</td>" for v in row) + "</tr>" for row in rows)
    if not body:
        return "<p>None.</p>"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} - order service</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/style.css"></head>'
        '<body><nav><a href="/ledger">Effect ledger</a><a href="/admin/faults">Faults</a></nav>'
        f"<main><h1>{title}</h1>{body}</main></body></html>"
    )
