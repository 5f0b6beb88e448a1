"""The base of every model of the API."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

# Fields that hold a credential. They can be read, but are not shown.
_HIDDEN = frozenset({"secret", "token"})


MISSING: Any = None
"""Value of a field that an answer lacks."""


class Model(BaseModel):
    """A value of the API. Unknown fields are preserved, as attributes and in dumps.

    A field that the server did not send, because it is older than this version, is None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", populate_by_name=True, protected_namespaces=(), defer_build=True
    )

    def __repr_args__(self) -> Generator[tuple[str | None, Any], None, None]:
        for name, value in super().__repr_args__():
            yield name, "***" if name in _HIDDEN and value else value
