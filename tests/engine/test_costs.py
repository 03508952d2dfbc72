"""Costs: equal to a calculation by hand, unknown where a price is, and never less than what is billed."""

from hypothesis import given
from hypothesis import strategies as st

from runs.engine.costs import KINDS, Cost, Tariff, bound, cost_of, total

# USD per million tokens: 4 in, 20 out, 5 and 8 written, 0.20 read; a search 0.01 USD.
OPUS = Tariff(
    {"input": 4_000_000, "output": 20_000_000, "cache_write_5m": 5_000_000, "cache_write_1h": 8_000_000,
     "cache_read": 200_000, "searches": 10_000_000_000},
    window=1_000_000, most=128_000,
)  # fmt: skip
HAIKU = Tariff(
    {"input": 100_000, "output": 500_000, "cache_write_5m": 125_000, "cache_write_1h": 200_000, "cache_read": 10_000},
    long=100_000,
    beyond={"input": 500_000, "output": 2_500_000, "cache_read": 50_000},
)


class TestTheCostOfARequest:
    def test_is_what_a_hand_calculation_says(self) -> None:
        # 1,000 * 4 + 500 * 20 + 200 * 5 + 100 * 8 + 10,000 * 0.2 = 4,000 + 10,000 + 1,000 + 800 + 2,000 micro-dollars,
        # and two searches of 10,000 each.
        usage = {"input": 1_000, "output": 500, "cache_write_5m": 200, "cache_write_1h": 100, "cache_read": 10_000}
        assert cost_of(usage, OPUS) == Cost(17_800)
        assert cost_of(usage | {"searches": 2}, OPUS) == Cost(37_800)
        assert cost_of({"input": 1_000_000}, OPUS) == Cost(4_000_000)  # a million in: 4 dollars

    def test_counts_thinking_once_as_the_output_that_it_is(self) -> None:
        assert cost_of({"output": 100, "thinking": 80}, OPUS) == Cost(2_000)

    def test_is_rounded_up_to_whole_micro_dollars(self) -> None:
        assert cost_of({"input": 1}, HAIKU) == Cost(1)  # a tenth of one
        assert cost_of({"input": 11, "output": 1}, HAIKU) == Cost(2)  # 1.1 + 0.5
        assert cost_of({}, HAIKU) == Cost(0)

    def test_follows_the_step_of_a_tariff_by_the_whole_prompt_cached_or_not(self) -> None:
        assert cost_of({"input": 1_000, "cache_read": 99_000, "output": 10}, HAIKU) == Cost(100 + 990 + 5)
        assert cost_of({"input": 1_001, "cache_read": 99_000, "output": 10}, HAIKU) == Cost(501 + 4_950 + 25)

    def test_is_unknown_and_not_nothing_where_a_price_is_unknown(self) -> None:
        assert cost_of({"input": 1}, None).micro is None
        assert cost_of({"input": 1, "searches": 1}, HAIKU).micro is None
        assert cost_of({"input": 100_001, "cache_write_5m": 1}, HAIKU).micro is None
        assert cost_of({"input": 10, "searches": 0}, HAIKU) == Cost(1)  # what was not used needs no price

    def test_of_a_stream_that_was_cut_is_an_estimate(self) -> None:
        assert cost_of({"input": 25, "output": 1, "complete": False}, OPUS) == Cost(120, estimate=True)


class TestASum:
    def test_adds_what_is_shown_for_each(self) -> None:
        assert total([Cost(1), Cost(2, estimate=True), Cost(3)]) == Cost(6, estimate=True)
        assert total([]) == Cost(0)

    def test_is_unknown_if_one_of_them_is(self) -> None:
        assert total([Cost(1), Cost(None), Cost(3)]) == Cost(None)


class TestTheBound:
    def test_takes_each_byte_for_a_token_the_dearest_way_and_the_longest_answer(self) -> None:
        assert bound(10_000, 8_192, OPUS) == 10_000 * 8 + 8_192 * 20

    def test_stops_at_the_window_and_at_the_longest_answer_of_the_model(self) -> None:
        assert bound(3_000_000, 200_000, OPUS) == 1_000_000 * 8 + 128_000 * 20

    def test_is_unknown_where_a_price_is(self) -> None:
        assert bound(10, 10, None) is None
        assert bound(10, 10, Tariff({"input": 1})) is None

    @given(
        st.dictionaries(st.sampled_from(KINDS[:4]), st.integers(0, 60_000)), st.integers(0, 8_192),
        st.sampled_from([OPUS, HAIKU]),
    )  # fmt: skip
    def test_is_never_passed_by_what_a_request_costs(self, prompt: dict[str, int], output: int, tariff: Tariff) -> None:
        cost = cost_of(prompt | {"output": output}, tariff).micro
        most = bound(sum(prompt.values()), 8_192, tariff)
        assert most is not None and (cost is None or cost <= most)
