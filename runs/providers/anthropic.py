"""The Messages API of Anthropic, through its SDK: raw events of the stream, put together and judged here.

The SDK's own helpers repair truncated JSON and take a cut stream for a whole one, so nothing of them is used beyond
the request and the frames. One `complete` is one request, and one more for each time that the API pauses a turn; trying
again after an error is the runner's, which records it.
"""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
import httpx2

from runs.engine.messages import Block, Message, Proposal
from runs.providers import wire
from runs.providers.accumulate import Broken, Response
from runs.providers.base import Answer, Kind, Request, Usage
from runs.providers.history import check_history

URL = "https://api.anthropic.com"
PAUSES = 10
STOPS = {
    "tool_use": "tool_use", "end_turn": "end", "stop_sequence": "end", "max_tokens": "truncated",
    "refusal": "refusal", "model_context_window_exceeded": "context_full",
}  # fmt: skip
SERVER_TOOL = re.compile(r"[a-z_]+_\d{8}\Z")
CACHE = {"type": "ephemeral"}
STRICT_TOOLS = 20
STRICT_KEYS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "description",
    "title",
}
BY_STATUS = {401: Kind.AUTH, 402: Kind.BILLING, 403: Kind.AUTH, 408: Kind.SERVER, 409: Kind.SERVER,
             413: Kind.CONTEXT_OVERFLOW, 429: Kind.RATE_LIMITED, 529: Kind.OVERLOADED}  # fmt: skip
BY_TYPE = {
    "overloaded_error": Kind.OVERLOADED, "rate_limit_error": Kind.RATE_LIMITED, "api_error": Kind.SERVER,
    "timeout_error": Kind.SERVER, "authentication_error": Kind.AUTH, "permission_error": Kind.AUTH,
    "billing_error": Kind.BILLING, "request_too_large": Kind.CONTEXT_OVERFLOW,
    "invalid_request_error": Kind.INVALID_REQUEST, "not_found_error": Kind.INVALID_REQUEST,
}  # fmt: skip
SPENT = {"enforced_spend_limit_reached", "contract_spend_limit_reached"}


class Anthropic:
    """Answers of ``anthropic:<model id>``."""

    def __init__(self, key: str, url: str = "", *, stream: bool = True, strict: bool = True) -> None:
        """`strict` asks for grammar-bound arguments where a tool's schema allows it; `stream` off is for gateways."""
        self.key, self.url = key, url or URL
        self.stream, self.strict = stream, strict
        self.closed = threading.Event()

    def complete(self, request: Request, on_delta: Callable[[str], None], cancelled: Callable[[], bool]) -> Answer:
        """Send one request, go on as often as the API pauses, and return the whole turn. Raises `ProviderError`."""
        if not self.key:
            raise wire.failure(Kind.AUTH, "ANTHROPIC_API_KEY is not set")
        check_history(request.messages)
        watch = wire.Watch(request.seconds, lambda: cancelled() or self.closed.is_set())
        body = body_of(request, self.strict)
        so_far: list[Block] = []
        usage = Usage()
        with wire.client(watch) as http:
            for number in range(1, PAUSES + 2):
                response = Response(on_delta)
                try:
                    self._exchange(http, watch, body, response)
                    blocks = response.finish()
                except Exception as error:
                    raise self._failure(error, watch, response, so_far, usage) from None
                so_far, usage = so_far + blocks, usage + response.usage()
                if response.stop != "pause_turn" or any(block["type"] == "tool_use" for block in so_far):
                    return answer(request, response, so_far, usage, number)
                body = gone_on(body, request.messages, so_far, response.container)
        raise wire.failure(Kind.MALFORMED, f"paused more than {PAUSES} times", blocks=so_far, usage=usage)

    def close(self) -> None:
        """End what is under way; later requests are cancelled at once."""
        self.closed.set()

    def _exchange(self, http: httpx2.Client, watch: wire.Watch, body: dict[str, Any], response: Response) -> None:
        """One request; what arrives is put into `response` as it arrives."""
        sdk = anthropic.Anthropic(
            api_key=self.key, base_url=self.url, max_retries=0, http_client=http, open_telemetry=False
        )
        watch.check()
        left = max(watch.left(), 0.001)
        if not self.stream:
            raw = sdk.messages.with_raw_response.create(**body, timeout=left).http_response
            response.began(raw.headers)
            response.whole(raw.text)
            return
        with sdk.messages.with_streaming_response.create(**body, stream=True, timeout=left) as opened:
            raw = opened.http_response
            response.began(raw.headers)
            if "text/event-stream" not in raw.headers.get("content-type", ""):
                raise Broken(f"not a stream of events but {raw.headers.get('content-type', '')[:40]!r}")
            for event in anthropic.Stream.raw_events(raw):
                if event.data:
                    response.take(event.data)
                if response.over:
                    return

    def _failure(
        self, error: Exception, watch: wire.Watch, response: Response, so_far: list[Block], usage: Usage
    ) -> Exception:
        """What an exception of the SDK, of its HTTP client or of ours amounts to."""
        said = wire.said(str(error), self.key)
        kind, wait, status, ident = Kind.NETWORK, 0.0, 0, response.request_id
        if watch.kind is not None:
            kind, said = watch.kind, "larger than any answer" if watch.kind == Kind.MALFORMED else ""
        elif isinstance(error, anthropic.APIStatusError):
            wait, status, ident = wire.retry_after(error.response.headers), error.status_code, error.request_id or ""
            said = wire.said(error.api_message or str(error), self.key)
            kind = kind_of(status, error.type or "", error.error_code or "", said)
        elif response.error is not None:
            said = wire.said(response.error.get("message", ""), self.key)
            kind = kind_of(0, str(response.error.get("type")), "", said)
        elif isinstance(error, UnicodeEncodeError):
            kind = Kind.INVALID_REQUEST
        elif isinstance(error, Broken | ValueError):
            kind = Kind.MALFORMED
        elif not isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError | EOFError):
            return error
        elif error.__cause__ is not None:
            said = wire.said(f"{type(error.__cause__).__name__}: {error.__cause__}", self.key)
        billed = None if status else usage + response.usage(cut=True)
        return wire.failure(
            kind, said, wait=wait, status=status, request_id=wire.said(ident, self.key),
            blocks=so_far + response.partial(), usage=billed or (usage if so_far else None),
        )  # fmt: skip


def kind_of(status: int, kind: str, code: str, said: str) -> Kind:
    """The kind of an error: by status, or by type where a stream broke off. Texts decide only where no code exists."""
    if "prompt is too long" in said:
        return Kind.CONTEXT_OVERFLOW
    if code in SPENT or "reached your specified API usage limits" in said or "credit balance is too low" in said:
        return Kind.BILLING
    if not status:
        return BY_TYPE.get(kind, Kind.SERVER)
    return BY_STATUS.get(status, Kind.SERVER if status >= 500 else Kind.INVALID_REQUEST)


def answer(request: Request, response: Response, blocks: list[Block], usage: Usage, number: int) -> Answer:
    """The turn as a whole. A stop that is unknown, or that its blocks belie, is `unknown`: nothing of it runs."""
    calls = [Proposal(b["id"], b["name"], response.raw[b["id"]]) for b in blocks if b["type"] == "tool_use"]
    ran = tuple(str(b.get("name", b["type"])) for b in blocks if b["type"] in ("server_tool_use", "mcp_tool_use"))
    callers = {
        b["id"]: str(b["caller"].get("type"))
        for b in blocks
        if b["type"] == "tool_use" and b.get("caller") and b["caller"].get("type") != "direct"
    }
    stop, detail = STOPS.get(response.stop or "", "unknown"), response.stop_detail
    if stop == "tool_use" and not calls:
        stop, detail = "unknown", "tool_use without a call"
    elif response.stop == "pause_turn":
        detail = "paused with calls of ours open"
    elif ran and not request.server_tools:
        stop, detail = "unknown", f"the vendor ran {ran[0][:64]} unasked"
    elif callers and not any(name.startswith("code_execution") for name in request.server_tools):
        stop, detail = "unknown", "called by code that nobody asked the vendor to run"
    return Answer(
        stop=stop, blocks=blocks, calls=calls, tokens=usage.prompt + usage.output, usage=usage, model=response.model,
        wire_stop=response.stop or "", detail=detail, request_id=response.request_id, vendor_ran=ran, callers=callers,
        container=response.container, requests=number,
    )  # fmt: skip


def body_of(request: Request, strict: bool) -> dict[str, Any]:
    """The request as keyword arguments of the SDK; what it is made of is not changed."""
    tools = listed(request.tools, strict)
    for kind in request.server_tools:
        if not SERVER_TOOL.match(kind):
            raise wire.failure(Kind.INVALID_REQUEST, f"{kind[:64]!r} is not a dated tool of the vendor")
        tools.append({"type": kind, "name": kind.rpartition("_")[0]})
    if tools:
        tools[-1] = {**tools[-1], "cache_control": CACHE}
    body: dict[str, Any] = {
        "model": request.model.partition(":")[2] or request.model,
        "max_tokens": request.max_tokens,
        "messages": marked(request.messages),
    }
    body |= {"system": [{"type": "text", "text": request.system, "cache_control": CACHE}]} if request.system else {}
    body |= {"tools": tools} if tools else {}
    body |= {"output_config": {"effort": request.effort}} if request.effort else {}
    if request.thinking:
        body["thinking"] = {"type": "disabled" if request.thinking == "off" else request.thinking}
    body |= {"container": request.container} if request.container else {}
    return body


def marked(messages: list[Message]) -> list[Message]:
    """The messages with cache breakpoints on the last two of the user.

    The last is written for the next request; the one before is where the last request wrote. The API looks back 20
    blocks at most for it, and one turn of ours can be longer.
    """
    marked = list(messages)
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for index in users[-2:]:
        *rest, last = messages[index]["content"]
        marked[index] = {**messages[index], "content": [*rest, {**last, "cache_control": CACHE}]}
    return marked


def gone_on(body: Mapping[str, Any], messages: list[Message], so_far: list[Block], container: str) -> dict[str, Any]:
    """The request that lets a paused turn go on: what came, unchanged, as the last message, and nothing of ours."""
    more = {**body, "messages": [*marked(messages), {"role": "assistant", "content": so_far}]}
    return more | ({"container": container} if container else {})


def listed(tools: list[dict[str, Any]], strict: bool) -> list[dict[str, Any]]:
    """The tools, with grammar-bound arguments where the schema allows it, for as many as one request may have."""
    found: list[dict[str, Any]] = []
    left = STRICT_TOOLS if strict else 0
    for tool in tools:
        fits = left > 0 and strictly(tool["input_schema"])
        left -= fits
        found.append({**tool, "strict": True} if fits else dict(tool))
    return found


def strictly(schema: Any) -> bool:
    """Whether a schema is within the part of JSON Schema that the API compiles to a grammar.

    Limits of length and size are not in it; a tool that has them is checked by the host alone.
    """
    if not isinstance(schema, dict) or "type" not in schema:
        return False
    if extra := schema.keys() - STRICT_KEYS:
        return extra == {"pattern"} and plain_pattern(schema["pattern"]) and strictly_without(schema, "pattern")
    if schema["type"] == "object":
        properties = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False and set(schema.get("required", [])) == set(properties)
        return closed and all(map(strictly, properties.values()))
    if schema["type"] == "array":
        return strictly(schema.get("items"))
    return schema["type"] in ("string", "integer", "number", "boolean", "null")


def strictly_without(schema: dict[str, Any], key: str) -> bool:
    """As `strictly`, of the schema without one key."""
    return strictly({name: value for name, value in schema.items() if name != key})


def plain_pattern(pattern: str) -> bool:
    """Whether a pattern has no look-around, back reference or word boundary, which no grammar has."""
    return not re.search(r"\(\?|\\[bB1-9]", pattern)
