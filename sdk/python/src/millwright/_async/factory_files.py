"""Definition files, checked without a factory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import AsyncCaller
from ._io import raw


class AsyncSchemas:
    """The JSON Schemas of definition files."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncSchemasWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncSchemasWithRawResponse(self)

    async def list(self, **options: Unpack[RequestOptions]) -> types.SchemaVersions:
        """List the versions of the schemas."""
        path = "/factory-files/schemas"
        return await self._client.call("GET", path, options, types.SchemaVersions)

    async def retrieve(self, version: str, **options: Unpack[RequestOptions]) -> types.SchemaDocuments:
        """Return all schemas of a version, by name."""
        path = f"/factory-files/schemas/{segment('version', version)}"
        return await self._client.call("GET", path, options, types.SchemaDocuments)

    async def document(
        self, version: str, document: str, **options: Unpack[RequestOptions]
    ) -> dict[str, Any]:
        """Return one schema."""
        path = f"/factory-files/schemas/{segment('version', version)}/{segment('document', document)}"
        return await self._client.call("GET", path, options, dict[str, Any])


class AsyncSchemasWithRawResponse:
    """The JSON Schemas of definition files, with whole responses."""

    def __init__(self, resource: AsyncSchemas) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.document = raw(resource.document)


class AsyncFactoryFiles:
    """Definition files, checked without a factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def schemas(self) -> AsyncSchemas:
        """The JSON Schemas of definition files."""
        return AsyncSchemas(self._client)

    @cached_property
    def with_raw_response(self) -> AsyncFactoryFilesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncFactoryFilesWithRawResponse(self)

    async def validate(
        self, **params: Unpack[types.ValidateFactoryFilesParams]
    ) -> types.ValidateFilesResponse:
        """Check a tree of definition files. Rules that need the state of a factory are listed as not checked."""
        path = "/factory-files/validate"
        return await self._client.call(
            "POST", path, params, types.ValidateFilesResponse, types.ValidateFactoryFilesParams
        )


class AsyncFactoryFilesWithRawResponse:
    """Definition files, checked without a factory, with whole responses."""

    def __init__(self, resource: AsyncFactoryFiles) -> None:
        self.validate = raw(resource.validate)
