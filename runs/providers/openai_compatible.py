"""Chat completions of OpenAI, vLLM, Ollama, llama.cpp and whatever else speaks them, through the `openai` SDK.

Facts of the wire: providers.md section 2. The SDK sends and authenticates; what comes back is read by ourselves, since
the SDK validates nothing and its helper for streams cannot be trusted with calls.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

from runs.engine.messages import Proposal
from runs.providers.base import Answer, Kind, ProviderError, Request, Usage
from runs.providers.chat_messages import HEAD, Json, Unusable, is_object, received, sent
from runs.providers.chat_stream import Collector, frames
from runs.providers.history import InvalidHistory
from runs.providers.wire import Interrupted, Watch, client, count, failure, parse, retry_after, said

ROUGHLY = 4  # characters of a token
WINDOW = 2_000  # tokens that the smallest window holds: a prompt below it is not cut
CALLING = ("tool_calls", "function_call")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Where a server is and how it differs; `dataclasses.replace` makes that of a model entry.

    `key_name` names the secret, empty where the server asks for none. `cap` is the field that limits the answer.
    `dropped` are fields of an answer that are not sent again. `needs_done` is False for a server that ends its streams
    without [DONE]. `cuts_silently` is True for one that drops the beginning of a prompt that is too long for it.
    `extra` are further fields of the request.
    """

    name: str
    base_url: str
    key_name: str = ""
    cap: str = "max_tokens"
    system_role: str = "system"
    stream: bool = True
    stream_tools: bool = True
    stream_usage: bool = True
    needs_done: bool = True
    cuts_silently: bool = False
    dropped: tuple[str, ...] = ("reasoning", "reasoning_content")
    extra: Mapping[str, Any] = field(default_factory=dict)


OPENAI = Dialect(
    name="openai", base_url="https://api.openai.com/v1", key_name="OPENAI_API_KEY", cap="max_completion_tokens"
)
VLLM = Dialect(name="vllm", base_url="http://127.0.0.1:8000/v1")
OLLAMA = Dialect(name="ollama", base_url="http://127.0.0.1:11434/v1", cuts_silently=True)
LLAMA_CPP = Dialect(name="llama.cpp", base_url="http://127.0.0.1:8080/v1")
DIALECTS = {dialect.name: dialect for dialect in (OPENAI, VLLM, OLLAMA, LLAMA_CPP)}


@dataclass(kw_only=True)
class Exchange:
    """What is known of one request while it goes on."""

    request: Request
    body: Json
    watch: Watch
    collector: Collector
    request_id: str = ""
    billed: bool = False

    @property
    def about(self) -> int:
        """Tokens of the prompt, estimated."""
        return len(json.dumps(self.body, ensure_ascii=False)) // ROUGHLY

    def counted(self, usage: Any, said_so_far: Json) -> Usage:
        """Tokens as the server counts them, or estimated and marked so."""
        if not isinstance(usage, dict) or not count(usage.get("prompt_tokens")):
            output = len(json.dumps(said_so_far, ensure_ascii=False)) // ROUGHLY
            return Usage(input=self.about, output=output, complete=False)
        read = _part(usage, "prompt_tokens_details", "cached_tokens")
        written = _part(usage, "prompt_tokens_details", "cache_write_tokens")
        return Usage(
            input=max(0, count(usage["prompt_tokens"]) - read - written),
            output=count(usage.get("completion_tokens")),
            cache_read=read,
            cache_write_5m=written,
            thinking=_part(usage, "completion_tokens_details", "reasoning_tokens"),
        )

    def failed(self, kind: Kind, detail: str = "", **more: Any) -> ProviderError:
        """The error that ends this exchange, with what had arrived; nothing of that may run."""
        message = self.collector.message()
        blocks = [{"type": HEAD, "partial": True, "message": message}] if message else []
        usage = self.counted(self.collector.usage, message) if self.billed else None
        if usage and kind != Kind.MALFORMED:
            usage = Usage(**{**vars(usage), "complete": False})
        return failure(kind, detail, request_id=self.request_id, blocks=blocks, usage=usage, **more)


class OpenAICompatible:
    """A model behind chat completions."""

    def __init__(self, dialect: Dialect, key: str = "") -> None:
        """`key`: the secret that `dialect.key_name` names; it is sent and appears nowhere else."""
        self.dialect, self.key = dialect, key
        self.closed = threading.Event()

    def close(self) -> None:
        """End what is in the air; nothing can be asked any more."""
        self.closed.set()

    def complete(self, request: Request, on_delta: Callable[[str], None], cancelled: Callable[[], bool]) -> Answer:
        """Send one request and wait for its end. Raises `ProviderError`; `InvalidHistory` before anything is sent."""
        if (self.dialect.key_name and not self.key) or not (self.key.isascii() and self.key.isprintable()):
            raise failure(Kind.AUTH, f"{self.dialect.key_name or 'the key'} is not set, or is no key")
        body = self.body(request)
        watch = Watch(request.seconds, lambda: cancelled() or self.closed.is_set())
        exchange = Exchange(request=request, body=body, watch=watch, collector=Collector(on_delta))
        try:
            return self._exchange(exchange)
        except ProviderError:
            raise
        except Exception as error:
            # Without the cause: its text and its request hold headers.
            raise self._failed(exchange, error) from None

    def body(self, request: Request) -> Json:
        """The request as it is sent. Raises `InvalidHistory`."""
        dialect = self.dialect
        if request.server_tools:
            raise InvalidHistory("chat completions run no tools of their own")
        body: Json = {
            **dialect.extra,
            "model": request.model.partition(":")[2],
            "messages": sent(request.system, request.messages, dialect.system_role, dialect.dropped),
            dialect.cap: request.max_tokens,
            "stream": dialect.stream and (dialect.stream_tools or not request.tools),
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
        if body["stream"] and dialect.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if request.effort:
            body["reasoning_effort"] = request.effort
        return _sendable(body)

    def _exchange(self, exchange: Exchange) -> Answer:
        body = dict(exchange.body)
        named = {name: body.pop(name) for name in ("model", "messages", "stream")}
        # Everything else as `extra_body`: the SDK need not know a field of a server that it was not made for.
        exchange.billed = True
        with client(exchange.watch) as http, self._api(http) as api:
            with api.chat.completions.with_streaming_response.create(**named, extra_body=body) as response:
                exchange.request_id = response.headers.get("x-request-id", "")[:200]
                kind = response.headers.get("content-type", "").lower()
                if "text/event-stream" in kind:
                    return self._streamed(exchange, response.http_response.iter_bytes())
                return self._whole(exchange, b"".join(response.http_response.iter_bytes()))

    def _api(self, http: httpx2.Client) -> openai.OpenAI:
        """The SDK, told everything that it would else look up in the environment."""
        unnamed = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        return openai.OpenAI(
            api_key=self.key or "local", organization="", project="", webhook_secret="", max_retries=0, timeout=None,
            base_url=self.dialect.base_url, http_client=http, default_headers=unnamed,  # type: ignore[arg-type]
        )  # fmt: skip

    def _streamed(self, exchange: Exchange, pieces: Iterable[bytes]) -> Answer:
        collector = exchange.collector
        for event, data in frames(pieces):
            if data.startswith("[DONE]"):
                break
            chunk = parse(data)
            if event == "error" or (isinstance(chunk, dict) and chunk.get("error")):
                raise self._told(exchange, chunk)
            collector.take(chunk)
        else:
            if self.dialect.needs_done or collector.finish is None:
                raise exchange.failed(Kind.NETWORK, "the stream was cut")
        if collector.finish is None:
            raise exchange.failed(Kind.NETWORK, "the stream ended before its answer")
        return self._answer(exchange, collector.finish)

    def _whole(self, exchange: Exchange, data: bytes) -> Answer:
        body = parse(data.decode())
        if isinstance(body, dict) and body.get("error"):
            raise self._told(exchange, body, Kind.MALFORMED)
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            raise Unusable("a response without its one choice")
        message, finish = choices[0].get("message"), choices[0].get("finish_reason")
        if not isinstance(message, dict) or not isinstance(finish, str):
            raise Unusable("a choice without a message, or without an end")
        exchange.collector.take_whole(message, body)
        return self._answer(exchange, finish)

    def _answer(self, exchange: Exchange, finish: str) -> Answer:
        message = exchange.collector.message()
        counted = exchange.counted(exchange.collector.usage, message)
        blocks, calls = received(message, exchange.request.messages, exchange.request.tools)
        if self.dialect.cuts_silently and counted.complete and max(counted.prompt * 2, WINDOW) < exchange.about:
            detail = f"the server read {counted.prompt} tokens of about {exchange.about}: it cut the prompt"
            raise exchange.failed(Kind.CONTEXT_OVERFLOW, detail)
        return Answer(
            stop=stop_of(finish, message, calls), blocks=blocks, calls=calls, tokens=counted.prompt + counted.output,
            usage=counted, model=exchange.collector.model, wire_stop=finish[:100],
            request_id=exchange.request_id,
        )  # fmt: skip

    def _told(self, exchange: Exchange, body: Any, unknown: Kind = Kind.SERVER) -> ProviderError:
        """An error that came with status 200."""
        status, code, text = _read_error(body)
        kind = kind_of(status, code, text) if status or code else None
        return exchange.failed(kind or unknown, said(text, self.key))

    def _failed(self, exchange: Exchange, error: Exception) -> ProviderError:
        """What an exception of the SDK, the transport or our own reading means."""
        watch = exchange.watch
        if watch.kind is not None:
            return exchange.failed(watch.kind, "the response has no end" if watch.kind == Kind.MALFORMED else "")
        if isinstance(error, openai.APIStatusError):
            exchange.billed, exchange.request_id = False, (error.request_id or "")[:200]
            _, code, text = _read_error(error.body if error.body is not None else error.message)
            kind = kind_of(error.status_code, code, text) or Kind.INVALID_REQUEST
            wait = retry_after(error.response.headers)
            return exchange.failed(kind, said(text, self.key), wait=wait, status=error.status_code)
        if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
            exchange.billed = not isinstance(error.__cause__, httpx2.ConnectError)
            return exchange.failed(Kind.NETWORK, said(str(error.__cause__ or error), self.key))
        if isinstance(error, ValueError | httpx2.DecodingError):
            text = str(error) if isinstance(error, Unusable) else "what came is not JSON"
            return exchange.failed(Kind.MALFORMED, said(text, self.key))
        if isinstance(error, Interrupted):
            return exchange.failed(error.kind)
        raise error


def stop_of(finish: str, message: Json, calls: list[Proposal]) -> str:
    """Our word for why the server stopped. Raises `Unusable` where it says calls and sends none."""
    if finish == "content_filter" or message.get("refusal"):
        return "refusal"
    if finish == "length":
        return "truncated"
    if finish in CALLING and not calls:
        raise Unusable(f"{finish} without calls")
    if finish in (*CALLING, "stop"):
        # vLLM says tool_calls of a call that its limit cut.
        return "end" if not calls else "tool_use" if is_object(calls[-1].arguments) else "truncated"
    return "unknown"


def kind_of(status: int, code: str, text: str) -> Kind | None:
    """What a status, or an error's code and type where there is none, means; None where neither says anything."""
    said_so = text.lower()
    if status == 413 or "context_length" in code or "exceed_context" in code or "maximum context length" in said_so:
        return Kind.CONTEXT_OVERFLOW
    if status == 402 or "insufficient_quota" in code or "billing" in code:
        return Kind.BILLING
    if status in (401, 403) or "invalid_api_key" in code or "authentication" in code or "permission" in code:
        return Kind.AUTH
    if status == 429 or "rate_limit" in code:
        return Kind.RATE_LIMITED
    if status in (503, 529) or "overloaded" in code or "unavailable" in code:
        return Kind.OVERLOADED
    if status in (408, 409) or status >= 500 or "server_error" in code:
        return Kind.SERVER
    return Kind.INVALID_REQUEST if status >= 400 or "invalid_request" in code else None


def _read_error(body: Any) -> tuple[int, str, str]:
    """Status (0 if none is named), code and type as one word, and text of an error, in whatever shape it came."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(inner, dict):
        return 0, "", str(inner)
    code = str(inner.get("code") or "")
    status = int(code) if re.fullmatch("[1-5][0-9][0-9]", code) else 0
    return status, f"{code} {inner.get('type') or ''}".lower(), str(inner.get("message") or inner)


def _part(usage: Json, group: str, name: str) -> int:
    details = usage.get(group)
    return count(details.get(name)) if isinstance(details, dict) else 0


def _function(tool: dict[str, Any]) -> Json:
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}


def _sendable(body: Json) -> Json:
    """The body, sharing nothing with the request, without the lone surrogates that UTF-8 cannot carry."""
    copied: Json = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    return copied
