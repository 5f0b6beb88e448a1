"""Answers: as they came, and parsed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast, overload

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from ._errors import APIResponseValidationError, APIStatusError, status_error, without, without_in

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Answer:
    """The complete answer to a request. Its repr omits possible secrets."""

    status_code: int
    headers: httpx.Headers = field(repr=False)
    content: bytes = field(repr=False)
    retries_taken: int
    where: str
    secrets: tuple[str, ...] = field(repr=False)


class APIResponse(Generic[T]):
    """The answer to a call: headers, status and body, and the parsed value."""

    status_code: int
    """The HTTP status."""
    headers: httpx.Headers
    """The headers, whose names are found in any case."""
    content: bytes
    """The body."""
    retries_taken: int
    """How many attempts failed before this answer."""

    def __init__(self, answer: Answer, parse: Callable[[Answer], T]) -> None:
        self.status_code, self.headers, self.content = answer.status_code, answer.headers, answer.content
        self.retries_taken = answer.retries_taken
        self._answer, self._parse = answer, parse

    @property
    def request_id(self) -> str | None:
        """The server's ID of the request, as in its log."""
        return cast("str | None", self.headers.get("x-request-id"))

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as a JSON value."""
        return parse(self._answer, Any)

    @overload
    def parse(self) -> T: ...
    @overload
    def parse(self, *, to: type[U]) -> U: ...
    def parse(self, *, to: type[U] | None = None) -> T | U:
        """Return the parsed value, or the body as a value of another type."""
        return self._parse(self._answer) if to is None else parse(self._answer, to)

    def __repr__(self) -> str:
        return f"<APIResponse [{self.status_code}] {self._answer.where}>"


def failure(answer: Answer) -> APIStatusError:
    """Make the error for an error status."""
    return status_error(
        answer.status_code, answer.headers, answer.content, where=answer.where, secrets=answer.secrets
    )


def parse(answer: Answer, to: type[T] | Any) -> T:
    """Read the body as a value of a type: a model, or anything that pydantic knows.

    ``bytes`` is the body itself and ``None`` is nothing, whatever there is. A body that is not such a
    value is an APIResponseValidationError that shows no values, which may be secrets.
    """
    if to is bytes:
        return cast("T", answer.content)
    if to is None or to is type(None):
        return cast("T", None)
    reason = ""
    try:
        if to is Any:
            return cast("T", json.loads(answer.content) if answer.content else None)
        if isinstance(to, type) and issubclass(to, BaseModel):
            value = to.model_validate_json(answer.content)
            if value.model_fields_set & to.model_fields.keys() or not to.model_fields:
                return cast("T", value)
            reason = f"it has no member of {to.__name__}"
        else:
            return cast("T", _adapter(to).validate_json(answer.content))
    except ValidationError as e:
        reason = _reason(e)
    except (ValueError, RecursionError):
        reason = "not JSON"
    said = "the body is empty" if not answer.content else f"the body is not what was asked for: {reason}"
    headers = without_in(answer.headers, answer.secrets)
    kind = headers.get("content-type", "no type")
    raise APIResponseValidationError(
        without(f"{answer.where}: {answer.status_code} with {kind}: {said}", answer.secrets),
        status_code=answer.status_code,
        headers=headers,
        text=without(answer.content.decode("utf-8", "replace"), answer.secrets),
    )


def _reason(e: ValidationError) -> str:
    found = e.errors(include_url=False, include_context=False, include_input=False)
    first = found[0]
    place = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    if first["type"] == "json_invalid":
        return "not JSON"
    return f"{place}: {first['msg']}{more}" if place else first["msg"] + more


@lru_cache(maxsize=256)
def _adapter(to: Any) -> TypeAdapter[Any]:
    return TypeAdapter(to)
