"""What the engine is made of: values that never change."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """Base of all values: every subclass is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, kw_only: bool = False) -> None:
        """Make the subclass a frozen dataclass."""
        dataclass(frozen=True, kw_only=kw_only)(cls)
