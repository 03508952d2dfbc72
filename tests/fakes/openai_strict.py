"""What the real servers refuse, in their own words."""

import json
import re
from typing import Any

from tests.fakes.openai_wire import Json, Reply, Seen, as_json

KEY = "sk-fake-0123456789abcdefghijklmnopqrstuvwxyz"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
ROLES = ("developer", "system", "user", "assistant", "tool", "function")
ARGUMENTS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens", "max_tokens", "stop",
    "stream", "stream_options", "response_format", "reasoning_effort", "prompt_cache_key", "safety_identifier", "seed",
    "service_tier", "temperature", "top_p", "n", "user", "metadata", "store", "logprobs", "top_logprobs",
}  # fmt: skip


class Refused(Exception):
    """The server answers with an error."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status


def refusal(seen: Seen, dialect: str) -> Reply | None:
    """The error response that a request deserves, None for one that is taken."""
    try:
        if dialect == "openai":
            _key(seen.headers.get("authorization", ""))
        _request(seen.body, dialect)
    except Refused as error:
        return as_json(_worded(error, dialect), error.status)
    return None


def _worded(error: Refused, dialect: str) -> Json:
    if dialect == "vllm":
        shown = {"object": "error", "message": error.message, "type": "BadRequestError", "param": None}
        return {**shown, "code": error.status}
    if dialect == "llama.cpp":
        return {"error": {"code": error.status, "message": error.message, "type": "invalid_request_error"}}
    shown = {"message": error.message, "type": "invalid_request_error", "param": error.param, "code": error.code}
    return {"error": shown}


def _key(given: str) -> None:
    key = given.removeprefix("Bearer").strip()
    if not key:
        raise Refused("You didn't provide an API key. You need to provide your API key in an Authorization header "
                      "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).", status=401)  # fmt: skip
    if key != KEY:
        shown = f"{key[:8]}{'*' * max(0, len(key) - 12)}{key[-4:]}"
        raise Refused(f"Incorrect API key provided: {shown}. You can find your API key at "
                      "https://platform.openai.com/account/api-keys.", code="invalid_api_key", status=401)  # fmt: skip


def _request(body: Any, dialect: str) -> None:
    if not isinstance(body, dict):
        raise Refused("We could not parse the JSON body of your request.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise Refused("you must provide a model parameter")
    if dialect == "openai":
        if unknown := sorted(body.keys() - ARGUMENTS):
            raise Refused(f"Unrecognized request argument supplied: {unknown[0]}")
        if "max_tokens" in body:
            raise Refused("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                          "'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter")  # fmt: skip
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    _tools(body.get("tools"))
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise Refused("Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages")
    _messages(body["messages"], dialect)


def _tools(tools: Any) -> None:
    if tools is None:
        return
    if not tools:
        raise Refused("Invalid 'tools': empty array. Expected an array with minimum length 1.", "tools")
    for number, tool in enumerate(tools):
        where, function = f"tools[{number}]", tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            raise Refused(f"Missing required parameter: '{where}.function'.", where)
        if not NAME.match(str(function.get("name", ""))):
            raise Refused(f"Invalid '{where}.function.name': string does not match pattern. Expected a string that "
                          "matches the pattern '^[a-zA-Z0-9_-]+$'.", f"{where}.function.name")  # fmt: skip
        if function.get("parameters", {}).get("type", "object") != "object":
            raise Refused(f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of "
                          "'type: \"object\"'.", f"{where}.function.parameters")  # fmt: skip


def _messages(messages: list[Any], dialect: str) -> None:
    unanswered: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            raise Refused(f"Invalid value: '{role}'. Supported values are: {', '.join(ROLES)}.", f"{where}.role")
        if role == "tool":
            if message.get("tool_call_id") not in unanswered:
                raise Refused(f"Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                              f"message with 'tool_calls' ({where}).", f"{where}.role")  # fmt: skip
            unanswered.remove(message["tool_call_id"])
        elif unanswered:
            break
        if role == "assistant":
            unanswered = _assistant(message, where, dialect)
        elif not isinstance(message.get("content"), str | list) or not message["content"]:
            raise Refused(f"Invalid value for 'content': expected a string, got {message.get('content')!r}.",
                          f"{where}.content")  # fmt: skip
    if unanswered:
        raise Refused("An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                      "'tool_call_id'. The following tool_call_ids did not have response messages: "
                      f"{', '.join(unanswered)}", "messages")  # fmt: skip


def _assistant(message: Json, where: str, dialect: str) -> list[str]:
    calls = message.get("tool_calls")
    if calls is None:
        if not isinstance(message.get("content"), str) and not message.get("refusal"):
            raise Refused("Invalid value for 'content': expected a string, got null.", f"{where}.content")
        return []
    if not calls:
        raise Refused(f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1.", where)
    for index, call in enumerate(calls):
        _call(call, f"{where}.tool_calls[{index}]", dialect)
    ids = [call["id"] for call in calls]
    if len(set(ids)) < len(ids):
        raise Refused(f"Duplicate value for 'tool_call_id' of {ids[0]} in message with 'tool_calls'.", where)
    return ids


def _call(call: Any, where: str, dialect: str) -> None:
    if not isinstance(call.get("id"), str) or not call["id"]:
        raise Refused(f"Missing required parameter: '{where}.id'.", f"{where}.id")
    if len(call["id"]) > 40 and dialect == "openai":
        long = f"Expected a string with maximum length 40, but got a string with length {len(call['id'])} instead."
        raise Refused(f"Invalid '{where}.id': string too long. {long}", f"{where}.id", "string_above_max_length")
    if call.get("type") != "function":
        raise Refused(f"Missing required parameter: '{where}.type'.", f"{where}.type")
    function = call.get("function")
    if not isinstance(function, dict) or not function.get("name"):
        raise Refused(f"Missing required parameter: '{where}.function.name'.", f"{where}.function")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        kind, where = type(arguments).__name__, f"{where}.function.arguments"
        raise Refused(f"Invalid type for '{where}': expected a string, but got {kind} instead.", where, "invalid_type")
    if dialect == "vllm":
        try:
            json.loads(arguments)
        except ValueError as error:
            raise Refused(str(error)) from error
