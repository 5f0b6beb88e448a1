"""Definition files, checked without a factory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import Caller
from ._io import raw


class Schemas:
    """The JSON Schemas of definition files."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> SchemasWithRawResponse:
        """The same methods, returning headers, status and body."""
        return SchemasWithRawResponse(self)

    def list(self, **options: Unpack[RequestOptions]) -> types.SchemaVersions:
        """List the versions of the schemas."""
        path = "/factory-files/schemas"
        return self._client.call("GET", path, options, types.SchemaVersions)

    def retrieve(self, version: str, **options: Unpack[RequestOptions]) -> types.SchemaDocuments:
        """Return all schemas of a version, by name."""
        path = f"/factory-files/schemas/{segment('version', version)}"
        return self._client.call("GET", path, options, types.SchemaDocuments)

    def document(self, version: str, document: str, **options: Unpack[RequestOptions]) -> dict[str, Any]:
        """Return one schema."""
        path = f"/factory-files/schemas/{segment('version', version)}/{segment('document', document)}"
        return self._client.call("GET", path, options, dict[str, Any])


class SchemasWithRawResponse:
    """The JSON Schemas of definition files, with whole responses."""

    def __init__(self, resource: Schemas) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.document = raw(resource.document)


class FactoryFiles:
    """Definition files, checked without a factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def schemas(self) -> Schemas:
        """The JSON Schemas of definition files."""
        return Schemas(self._client)

    @cached_property
    def with_raw_response(self) -> FactoryFilesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return FactoryFilesWithRawResponse(self)

    def validate(self, **params: Unpack[types.ValidateFactoryFilesParams]) -> types.ValidateFilesResponse:
        """Check a tree of definition files. Rules that need the state of a factory are listed as not checked."""
        path = "/factory-files/validate"
        return self._client.call(
            "POST", path, params, types.ValidateFilesResponse, types.ValidateFactoryFilesParams
        )


class FactoryFilesWithRawResponse:
    """Definition files, checked without a factory, with whole responses."""

    def __init__(self, resource: FactoryFiles) -> None:
        self.validate = raw(resource.validate)
