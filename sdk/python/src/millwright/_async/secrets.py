"""Team secrets. The API accepts their values and never returns them."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from .pagination import AsyncPage


class AsyncSecretsPage(AsyncPage["types.Secret", "types.ListSecretsResponse"]):
    """A page of secrets."""

    model, member = "ListSecretsResponse", "secrets"

    @property
    def secrets(self) -> list[types.Secret]:
        """The secrets of this page."""
        return self.items


class AsyncSecrets:
    """Team secrets. The API accepts their values and never returns them."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncSecretsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncSecretsWithRawResponse(self)

    def list(
        self, **params: Unpack[types.ListSecretsParams]
    ) -> AsyncPageRequest[AsyncSecretsPage, types.Secret]:
        """List the secrets: names, versions, and which webhooks use them."""
        return self._client.pages("/secrets", params, AsyncSecretsPage, types.ListSecretsParams)

    async def set(self, name: str, **params: Unpack[types.SetSecretParams]) -> types.Secret:
        """Create a secret or set its value, or make it pending until its provider issues it."""
        path = f"/secrets/{segment('name', name)}"
        return await self._client.call("PUT", path, params, types.Secret, types.SetSecretParams)

    async def delete(self, name: str, **options: Unpack[RequestOptions]) -> None:
        """Delete a secret that nothing uses."""
        path = f"/secrets/{segment('name', name)}"
        await self._client.call("DELETE", path, options, type(None))


class AsyncSecretsWithRawResponse:
    """Team secrets. The API accepts their values and never returns them, with whole responses."""

    def __init__(self, resource: AsyncSecrets) -> None:
        self.list = raw(resource.list)
        self.set = raw(resource.set)
        self.delete = raw(resource.delete)
