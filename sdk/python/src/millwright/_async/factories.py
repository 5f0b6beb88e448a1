"""Factories: what they are made of, where they stand, and their webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment, segments
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from .pagination import AsyncPage
from .webhooks import AsyncWebhooks


class AsyncFactoriesPage(AsyncPage[types.Factory, types.ListFactoriesResponse]):
    """A page of factories."""

    model, member = types.ListFactoriesResponse, "factories"

    @property
    def factories(self) -> list[types.Factory]:
        """The factories of this page."""
        return self.items


class AsyncAutomationsPage(AsyncPage[types.Automation, types.ListAutomationsResponse]):
    """A page of automations."""

    model, member = types.ListAutomationsResponse, "automations"

    @property
    def automations(self) -> list[types.Automation]:
        """The automations of this page."""
        return self.items


class AsyncSyncsPage(AsyncPage[types.Sync, types.ListSyncsResponse]):
    """A page of syncs."""

    model, member = types.ListSyncsResponse, "syncs"

    @property
    def syncs(self) -> list[types.Sync]:
        """The syncs of this page."""
        return self.items


class AsyncFactoryRuns:
    """Work for a factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncFactoryRunsWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncFactoryRunsWithRawResponse(self)

    async def create(
        self, factory_uid: str, **params: Unpack[types.CreateFactoryRunParams]
    ) -> types.FactoryRunResponse:
        """Give work to the factory's foreman. What happens to the run from then on is at ``client.agent.runs``."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/runs"
        return await self._client.call(
            "POST", path, params, types.FactoryRunResponse, types.CreateFactoryRunParams
        )


class AsyncFactoryRunsWithRawResponse:
    """Work for a factory, with whole responses."""

    def __init__(self, resource: AsyncFactoryRuns) -> None:
        self.create = raw(resource.create)


class AsyncAutomations:
    """The automations of a factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncAutomationsWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncAutomationsWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListAutomationsParams]
    ) -> AsyncPageRequest[AsyncAutomationsPage, types.Automation]:
        """List a factory's automations, and say of each whether it fires."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/automations",
            params,
            AsyncAutomationsPage,
            types.ListAutomationsParams,
        )


class AsyncAutomationsWithRawResponse:
    """The automations of a factory, with whole responses."""

    def __init__(self, resource: AsyncAutomations) -> None:
        self.list = raw(resource.list)


class AsyncSyncs:
    """The history of what was applied, and what was refused."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncSyncsWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncSyncsWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListSyncsParams]
    ) -> AsyncPageRequest[AsyncSyncsPage, types.Sync]:
        """List a factory's attempts to apply, the newest first."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/syncs",
            params,
            AsyncSyncsPage,
            types.ListSyncsParams,
        )


class AsyncSyncsWithRawResponse:
    """The history of what was applied, and what was refused, with whole responses."""

    def __init__(self, resource: AsyncSyncs) -> None:
        self.list = raw(resource.list)


class AsyncFiles:
    """The definition files of a managed factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncFilesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncFilesWithRawResponse(self)

    async def put(self, factory_uid: str, path: str, **params: Unpack[types.PutFileParams]) -> types.Sync:
        """Write a definition file and apply the definition that results, or refuse it as a whole."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return await self._client.call("PUT", path, params, types.Sync, types.PutFileParams)

    async def delete(self, factory_uid: str, path: str, **options: Unpack[RequestOptions]) -> types.Sync:
        """Delete a definition file and apply the definition that results, or refuse it as a whole."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return await self._client.call("DELETE", path, options, types.Sync)


class AsyncFilesWithRawResponse:
    """The definition files of a managed factory, with whole responses."""

    def __init__(self, resource: AsyncFiles) -> None:
        self.put = raw(resource.put)
        self.delete = raw(resource.delete)


class AsyncFactories:
    """Factories."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def runs(self) -> AsyncFactoryRuns:
        """Work for a factory."""
        return AsyncFactoryRuns(self._client)

    @cached_property
    def webhooks(self) -> AsyncWebhooks:
        """The webhooks of a factory."""
        return AsyncWebhooks(self._client)

    @cached_property
    def automations(self) -> AsyncAutomations:
        """The automations of a factory."""
        return AsyncAutomations(self._client)

    @cached_property
    def syncs(self) -> AsyncSyncs:
        """The history of what was applied, and what was refused."""
        return AsyncSyncs(self._client)

    @cached_property
    def files(self) -> AsyncFiles:
        """The definition files of a managed factory."""
        return AsyncFiles(self._client)

    @cached_property
    def with_raw_response(self) -> AsyncFactoriesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncFactoriesWithRawResponse(self)

    def list(
        self, **params: Unpack[types.ListFactoriesParams]
    ) -> AsyncPageRequest[AsyncFactoriesPage, types.Factory]:
        """List the factories."""
        return self._client.pages("/factory", params, AsyncFactoriesPage, types.ListFactoriesParams)

    async def retrieve(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.Factory:
        """Return one factory: its source, where it stands, and what is in it."""
        path = f"/factory/{segment('factory_uid', factory_uid)}"
        return await self._client.call("GET", path, options, types.Factory)

    async def plan(self, factory_uid: str, **params: Unpack[types.PlanFactoryParams]) -> types.Plan:
        """Say what applying a tree would change, and whether it would be accepted: the files given, or else the head of the
        factory's source. Changes nothing."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/plan"
        return await self._client.call("POST", path, params, types.Plan, types.PlanFactoryParams)

    async def sync(self, factory_uid: str, **params: Unpack[types.SyncFactoryParams]) -> types.Sync:
        """Apply the head of the factory's source now, and return when it is applied or refused."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/sync"
        return await self._client.call("POST", path, params, types.Sync, types.SyncFactoryParams)

    async def test_filter(
        self, factory_uid: str, **params: Unpack[types.TestFilterParams]
    ) -> types.FilterTestResponse:
        """Say whether a delivery, or a payload, would start an automation with this filter, and why."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/filter-tests"
        return await self._client.call("POST", path, params, types.FilterTestResponse, types.TestFilterParams)

    async def notify_push(
        self, factory_uid: str, body: bytes, *, headers: Mapping[str, str], **options: Unpack[RequestOptions]
    ) -> None:
        """Pass on a git host's push notice, as it came: the server verifies its signature. It wakes the source."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/push"
        request = self._client.request("POST", path, options, headers=headers, content=body)
        await self._client.send(request, type(None))


class AsyncFactoriesWithRawResponse:
    """Factories, with whole responses."""

    def __init__(self, resource: AsyncFactories) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.plan = raw(resource.plan)
        self.sync = raw(resource.sync)
        self.test_filter = raw(resource.test_filter)
        self.notify_push = raw(resource.notify_push)
