"""What requests to a model cost: whole micro-dollars, from counts of tokens and prices per million of them.

A price that is not known makes a cost unknown (None), never 0. A fraction of a micro-dollar is rounded up, once for
each request, so a sum over requests is the sum of what is shown for each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field

from runs.engine.frozen import Frozen

MILLION = 1_000_000
PROMPT = ("input", "cache_read", "cache_write_5m", "cache_write_1h")
KINDS = (*PROMPT, "output", "searches")  # `output` includes thinking, so thinking has no price of its own
Prices = Mapping[str, int]


class Cost(Frozen):
    """`micro` is micro-dollars, None where a price is unknown; an `estimate` is what is known of more that may come."""

    micro: int | None = 0
    estimate: bool = False

    def __add__(self, other: "Cost") -> "Cost":
        """Both together; unknown if one is."""
        known = self.micro is not None and other.micro is not None
        return Cost(self.micro + other.micro if known else None, self.estimate or other.estimate)  # type: ignore[operator]


class Tariff(Frozen):
    """Prices by kind, in micro-dollars per million tokens (of searches: per million); a kind that is absent is unknown.

    Prompts of more than `long` tokens, cached ones included, have the prices `beyond`; 0: there is no such step.
    `window` and `most` are the tokens that a prompt and an answer may have; 0: not known.
    """

    prices: Prices
    long: int = 0
    beyond: Prices = field(default_factory=dict)
    window: int = 0
    most: int = 0


def cost_of(usage: Mapping[str, int], tariff: Tariff | None) -> Cost:
    """The cost of one request by what the API counted: kinds of `KINDS`, and `complete` (default: yes)."""
    estimate = not usage.get("complete", True)
    if tariff is None:
        return Cost(None, estimate)
    prompt = sum(usage.get(kind, 0) for kind in PROMPT)
    prices = tariff.beyond if tariff.long and prompt > tariff.long else tariff.prices
    counted = {kind: usage[kind] for kind in KINDS if usage.get(kind)}
    if counted.keys() - prices.keys():
        return Cost(None, estimate)
    return Cost(_up(sum(n * prices[kind] for kind, n in counted.items())), estimate)


def bound(prompt_bytes: int, max_tokens: int, tariff: Tariff | None) -> int | None:
    """The most that a request can cost, in micro-dollars: a token is a byte at least. None if a price is unknown.

    The dearest way to bring the prompt counts, for nobody knows before what a cache will serve or keep.
    """
    if tariff is None:
        return None
    tokens = min(prompt_bytes, tariff.window or prompt_bytes)
    steps = [tariff.prices, tariff.beyond] if tariff.long and tokens > tariff.long else [tariff.prices]
    if any(not {"input", "output"} <= prices.keys() for prices in steps):
        return None
    answer = min(max_tokens, tariff.most or max_tokens)
    dearest = [max(p for kind, p in prices.items() if kind in PROMPT) for prices in steps]
    return max(_up(tokens * d + answer * p["output"]) for d, p in zip(dearest, steps, strict=True))


def total(costs: Iterable[Cost]) -> Cost:
    """The sum; of nothing it is 0."""
    return sum(costs, Cost())


def _up(millionths: int) -> int:
    return -(-millionths // MILLION)
