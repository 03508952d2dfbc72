"""What the engine is made of: values that never change."""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """Base of all values: every subclass is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, kw_only: bool = False) -> None:
        """Make the subclass a frozen dataclass."""
        dataclass(frozen=True, kw_only=kw_only)(cls)
        cls._defaults = {}
        for f in fields(cls):
            cls._defaults[f.name] = f.default if f.default_factory is MISSING else f.default_factory()

    def own(self) -> dict[str, Any]:
        """The fields that differ from their defaults: what is worth storing."""
        return {name: value for name, value in self.__dict__.items() if value != self._defaults[name]}
