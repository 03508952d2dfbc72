"""One line per API: the name before the colon of an agent's model, and how to make its provider."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from runs.providers.base import Provider
from runs.providers.scripted import Scripted

PROVIDERS: dict[str, Callable[[Mapping[str, Any]], Provider]] = {"scripted": Scripted}


class UnknownModel(ValueError):
    """The model's name does not begin with the name of a provider."""


def _anthropic(host: Mapping[str, str]) -> Provider:
    from runs.providers.anthropic import Anthropic  # its SDK takes a second to import

    return Anthropic(host.get("ANTHROPIC_API_KEY", ""), host.get("ANTHROPIC_BASE_URL", ""))


def _compatible(name: str) -> Callable[[Mapping[str, str]], Provider]:
    def make(host: Mapping[str, str]) -> Provider:
        from runs.providers.openai_compatible import DIALECTS, OpenAICompatible

        dialect, knob = DIALECTS[name], name.upper().replace(".", "_")
        url = host.get(f"{knob}_BASE_URL") or dialect.base_url
        return OpenAICompatible(replace(dialect, base_url=url), host.get(f"{knob}_API_KEY", ""))

    return make


# Providers that are called over the network, made of the host's settings: keys and addresses by the names of knobs.
REMOTE: dict[str, Callable[[Mapping[str, str]], Provider]] = {
    "anthropic": _anthropic,
    **{name: _compatible(name) for name in ("openai", "vllm", "ollama", "llama.cpp")},
}


# What a provider cannot do without, by the name of its knob.
NEEDS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


def lacking(model: str, host: Mapping[str, str]) -> str:
    """The knob that must be set before ``provider:model`` can be asked; empty if nothing is missing."""
    knob = NEEDS.get(model.partition(":")[0], "")
    return "" if host.get(knob) else knob


def provider_for(model: str, scripts: Mapping[str, Any], host: Mapping[str, str] | None = None) -> Provider:
    """The provider of ``provider:model``, given this installation's scripts and keys. Raises `UnknownModel`."""
    name, _, _ = model.partition(":")
    if name in REMOTE:
        return REMOTE[name](host or {})
    if name not in PROVIDERS:
        known = ", ".join(f"{p}:…" for p in [*PROVIDERS, *REMOTE])
        raise UnknownModel(f"model {model!r}: use one of {known}")
    return PROVIDERS[name](scripts)
