"""One line per API: the name before the colon of an agent's model, and how to make its provider."""

from collections.abc import Callable, Mapping
from typing import Any

from runs.providers.base import Provider
from runs.providers.scripted import Scripted

PROVIDERS: dict[str, Callable[[Mapping[str, Any]], Provider]] = {"scripted": Scripted}


class UnknownModel(ValueError):
    """The model's name does not begin with the name of a provider."""


def provider_for(model: str, scripts: Mapping[str, Any]) -> Provider:
    """The provider of ``provider:model``. Raises `UnknownModel`."""
    name, _, _ = model.partition(":")
    if name not in PROVIDERS:
        raise UnknownModel(f"model {model!r}: use one of {', '.join(f'{p}:…' for p in PROVIDERS)}")
    return PROVIDERS[name](scripts)
