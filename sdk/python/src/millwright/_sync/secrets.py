"""Team secrets. The API accepts their values and never returns them."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import Caller
from ._io import raw
from .pagination import Page


class SecretsPage(Page["types.Secret", "types.ListSecretsResponse"]):
    """A page of secrets."""

    model, member = "ListSecretsResponse", "secrets"

    @property
    def secrets(self) -> list[types.Secret]:
        """The secrets of this page."""
        return self.items


class Secrets:
    """Team secrets. The API accepts their values and never returns them."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> SecretsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return SecretsWithRawResponse(self)

    def list(self, **params: Unpack[types.ListSecretsParams]) -> SecretsPage:
        """List the secrets: names, versions, and which webhooks use them."""
        return self._client.pages("/secrets", params, SecretsPage, types.ListSecretsParams)

    def set(self, name: str, **params: Unpack[types.SetSecretParams]) -> types.Secret:
        """Create a secret or set its value, or make it pending until its provider issues it."""
        path = f"/secrets/{segment('name', name)}"
        return self._client.call("PUT", path, params, types.Secret, types.SetSecretParams)

    def delete(self, name: str, **options: Unpack[RequestOptions]) -> None:
        """Delete a secret that nothing uses."""
        path = f"/secrets/{segment('name', name)}"
        self._client.call("DELETE", path, options, type(None))


class SecretsWithRawResponse:
    """Team secrets. The API accepts their values and never returns them, with whole responses."""

    def __init__(self, resource: Secrets) -> None:
        self.list = raw(resource.list)
        self.set = raw(resource.set)
        self.delete = raw(resource.delete)
