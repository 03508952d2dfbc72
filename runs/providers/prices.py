"""What vendors asked on the day this list was written: the first entries of a new catalogue. Then admins keep it.

Nothing is guessed: a price that was not read somewhere is absent, and absent means unknown. USD per million tokens.
"""

from typing import Any

ON = "2026-11-30"
VENDOR, OTHERS = "the vendor's list of prices", "pages of others, not checked with the vendor"
KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
NOW = {"window": 1_000_000, "most": 128_000}
ABLE = ["tools", "thinking", "prompt cache", "web search"]
# Model ids, then USD per million of `KINDS`, the source, and how much a prompt and an answer may have.
LIST: tuple[tuple[tuple[str, ...], tuple[str, ...], str, dict[str, Any]], ...] = (
    (("fable-5-2", "mythos-5-2"), ("8", "40", "10", "16", "0.20"), f"{OTHERS}; since 2026-11-09", NOW),
    (("opus-5-5",), ("4", "20", "5", "8", "0.20"), VENDOR, NOW),
    (("sonnet-5-5",), ("2", "10", "2.50", "4", "0.10"), OTHERS, NOW),
    (
        ("haiku-5-5",), ("0.10", "0.50", "0.125", "0.20", "0.01"), OTHERS,
        NOW | {"long": 100_000, "beyond": {"input": "0.50", "output": "2.50", "cache_read": "0.05"}},
    ),
    (("fable-5-1", "mythos-5-1"), ("10", "50", "12.50", "20", "0.25"), VENDOR, {}),
    (("fable-5", "mythos-5"), ("10", "50", "12.50", "20", "1"), VENDOR, {}),
    (("opus-5", "opus-4-8", "opus-4-7", "opus-4-6", "opus-4-5"), ("5", "25", "6.25", "10", "0.50"), VENDOR, {}),
    (("sonnet-5",), ("2", "10", "2.50", "4", "0.20"), OTHERS, {}),
    (("sonnet-4-6",), ("3", "15", "3.75", "6", "0.30"), VENDOR, {}),
    (("haiku-4-5",), ("1", "5", "1.25", "2", "0.10"), VENDOR, {"window": 200_000, "most": 64_000}),
)  # fmt: skip
SEARCHES = "10000"  # 0.01 USD each, by pages of others


def entries() -> list[dict[str, Any]]:
    """First entries of a catalogue: fields of a `ModelEntry`, prices in micro-dollars per million."""
    return [
        {
            "name": f"anthropic:claude-{model}", "priced_on": ON, "capabilities": ABLE, **more, "source": source,
            "prices": micro(dict(zip(KINDS, prices, strict=True)) | {"searches": SEARCHES}),
            "beyond": micro(more.get("beyond", {}) and {**more["beyond"], "searches": SEARCHES}),
            "offered": bool(more) and model in ("opus-5-5", "sonnet-5-5", "haiku-5-5"),
        }
        for models, prices, source, more in LIST
        for model in models
    ]  # fmt: skip


def micro(dollars: dict[str, str]) -> dict[str, int]:
    """Micro-dollars of dollars that are written with at most six places."""
    return {kind: _micro(text) for kind, text in dollars.items()}


def _micro(text: str) -> int:
    whole, _, rest = text.partition(".")
    return int(whole) * 1_000_000 + int(rest.ljust(6, "0") or 0)
