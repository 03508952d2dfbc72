"""A result says itself what it was held against, so that the page cannot flatter."""

from bench.report import line, page, result


def durable(ours: list[float], peer: list[float], **more: object) -> dict[str, object]:
    return result("some_turns", "sqlite", what="turns", unit="turns/s", ours=ours, peer=peer, **more)  # type: ignore[arg-type]


def test_the_ratio_is_the_median_of_the_rounds_ratios_and_not_the_ratio_of_the_medians() -> None:
    found = durable([10, 40, 90], [10, 20, 90], goal=1, stretch=2)
    assert found["ratio"] == 1 and found["spread"] == {"ratio": [1, 1, 2], "ours": [10, 40, 90], "peer": [10, 20, 90]}
    assert (found["ours"], found["peer"], found["rounds"]) == (40, 20, 3)


def test_more_is_better_where_the_stretch_is_above_the_goal_and_less_where_it_is_below() -> None:
    assert durable([50], [10], goal=2, stretch=6)["reached"] == "goal"
    assert durable([60], [10], goal=2, stretch=6)["reached"] == "stretch"
    assert durable([10], [10], goal=2, stretch=6)["reached"] == "missed"
    assert durable([10], [10], goal=2, stretch=0.5)["reached"] == "goal"
    assert durable([30], [10], goal=2, stretch=0.5)["reached"] == "missed"


def test_a_goal_may_bound_what_we_need_ourselves_instead_of_the_ratio() -> None:
    assert durable([3000], [1000], goal=4096, stretch=2560, bound="ours")["reached"] == "goal"
    assert durable([7000], [5000], goal=4096, stretch=2560, bound="ours")["reached"] == "missed"


def test_the_page_shows_every_round_and_what_was_wanted() -> None:
    found = durable([10, 40, 90], [10, 20, 90], goal=2, stretch=6)
    assert "| 10 / 40 / 90 | 10 / 20 / 90 | turns/s | 1 / 1 / 2 | 3 | ≥ 2 | ≥ 6 | missed |" in page([found])
    assert "What stands between us and the stretch" in page([found])
    assert "1.0 (1.0 to 2.0, n=3)" in line(found)
