"""API keys."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import Caller
from ._io import raw
from .pagination import Page


class KeysPage(Page["types.APIKey", "types.ListAPIKeysResponse"]):
    """A page of keys."""

    model, member = "ListAPIKeysResponse", "keys"

    @property
    def keys(self) -> list[types.APIKey]:
        """The keys of this page."""
        return self.items


class Keys:
    """API keys."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> KeysWithRawResponse:
        """The same methods, returning headers, status and body."""
        return KeysWithRawResponse(self)

    def list(self, **params: Unpack[types.ListKeysParams]) -> KeysPage:
        """List the API keys, without their secrets."""
        return self._client.pages("/keys", params, KeysPage, types.ListKeysParams)

    def create(self, **params: Unpack[types.CreateKeyParams]) -> types.CreatedAPIKey:
        """Create an API key. No later answer contains its secret."""
        path = "/keys"
        return self._client.call("POST", path, params, types.CreatedAPIKey, types.CreateKeyParams)

    def revoke(self, key_uid: str, **options: Unpack[RequestOptions]) -> None:
        """Revoke an API key. It stops working before the call returns."""
        path = f"/keys/{segment('key_uid', key_uid)}"
        self._client.call("DELETE", path, options, type(None))


class KeysWithRawResponse:
    """API keys, with whole responses."""

    def __init__(self, resource: Keys) -> None:
        self.list = raw(resource.list)
        self.create = raw(resource.create)
        self.revoke = raw(resource.revoke)
