"""Durable turns of LangGraph on PostgreSQL: `python -m bench.peers.langgraph_turns URL TURNS [--delta]`.

One model node and one tool node, the message list in state, a scripted model without latency, a tool that returns about
1 KB, durability `sync`, one thread per run. ``--delta`` keeps messages in the beta `DeltaChannel`,
which stores what is new instead of the whole list. Prints {"turns", "seconds"}; the schema is made beforehand.
"""

import argparse
import json
import time
import uuid
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

TEXT = "The quick brown fox jumps over the lazy dog. " * 22


def joined(state: list[Any], writes: Any) -> list[Any]:
    """The reducer of a delta channel: the list so far and everything that was written since."""
    return [*state, *(message for write in writes for message in (write if isinstance(write, list) else [write]))]


class Whole(TypedDict):
    """The documented default: the list is serialised with every step."""

    messages: Annotated[list[Any], add_messages]


class Delta(TypedDict):
    """The beta channel that stores writes."""

    messages: Annotated[list[Any], DeltaChannel(joined)]


def graph(turns: int, state: Any, saver: Any) -> Any:
    """Model, tool, model, ... for `turns` turns."""
    done = 0

    def model(state: Any) -> dict[str, Any]:
        nonlocal done
        done += 1
        if done > turns:
            return {"messages": [AIMessage(content="done")]}
        call = {"id": f"toolu_{done}", "name": "keep_note", "args": {"number": done}}
        return {"messages": [AIMessage(content="", tool_calls=[call])]}

    def tool(state: Any) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage(content=TEXT, tool_call_id=call["id"])]}

    def onward(state: Any) -> str:
        return "tool" if state["messages"][-1].tool_calls else END

    made = StateGraph(state)
    made.add_node("model", model)
    made.add_node("tool", tool)
    made.add_edge(START, "model")
    made.add_conditional_edges("model", onward)
    made.add_edge("tool", "model")
    return made.compile(checkpointer=saver)


def main() -> None:
    """Run once, print how long it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("turns", type=int)
    parser.add_argument("--delta", action="store_true")
    given = parser.parse_args()
    with PostgresSaver.from_conn_string(given.url) as saver:
        saver.setup()
        ready = graph(given.turns, Delta if given.delta else Whole, saver)
        config = {"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": 4 * given.turns + 10}
        began = time.perf_counter()
        last = ready.invoke({"messages": [HumanMessage(content="Be measured.")]}, config, durability="sync")
        seconds = time.perf_counter() - began
        assert last["messages"][-1].content == "done", last["messages"][-1]
        assert sum(isinstance(m, ToolMessage) for m in last["messages"]) == given.turns
    print(json.dumps({"turns": given.turns, "seconds": seconds}))


if __name__ == "__main__":
    main()
