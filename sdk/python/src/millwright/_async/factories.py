"""Factories: their definitions, states and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment, segments
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from .notifications import AsyncNotifications
from .pagination import AsyncPage
from .webhooks import AsyncWebhooks


class AsyncFactoriesPage(AsyncPage["types.Factory", "types.ListFactoriesResponse"]):
    """A page of factories."""

    model, member = "ListFactoriesResponse", "factories"

    @property
    def factories(self) -> list[types.Factory]:
        """The factories of this page."""
        return self.items


class AsyncAutomationsPage(AsyncPage["types.Automation", "types.ListAutomationsResponse"]):
    """A page of automations."""

    model, member = "ListAutomationsResponse", "automations"

    @property
    def automations(self) -> list[types.Automation]:
        """The automations of this page."""
        return self.items


class AsyncSyncsPage(AsyncPage["types.Sync", "types.ListSyncsResponse"]):
    """A page of syncs."""

    model, member = "ListSyncsResponse", "syncs"

    @property
    def syncs(self) -> list[types.Sync]:
        """The syncs of this page."""
        return self.items


class AsyncFilesPage(AsyncPage["types.HeldFile", "types.ListFilesResponse"]):
    """A page of files."""

    model, member = "ListFilesResponse", "files"

    @property
    def files(self) -> list[types.HeldFile]:
        """The files of this page."""
        return self.items


class AsyncRevisionsPage(AsyncPage["types.Revision", "types.ListRevisionsResponse"]):
    """A page of revisions."""

    model, member = "ListRevisionsResponse", "revisions"

    @property
    def revisions(self) -> list[types.Revision]:
        """The revisions of this page."""
        return self.items


class AsyncFactoryRuns:
    """Work for a factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncFactoryRunsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncFactoryRunsWithRawResponse(self)

    async def create(
        self, factory_uid: str, **params: Unpack[types.CreateFactoryRunParams]
    ) -> types.FactoryRunResponse:
        """Give work to the factory's foreman. Follow the run with ``client.agent.runs``."""
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
        """The same methods, returning headers, status and body."""
        return AsyncAutomationsWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListAutomationsParams]
    ) -> AsyncPageRequest[AsyncAutomationsPage, types.Automation]:
        """List a factory's automations, and whether each fires."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/automations",
            params,
            AsyncAutomationsPage,
            types.ListAutomationsParams,
        )

    async def flow(
        self, factory_uid: str, automation: str, **options: Unpack[RequestOptions]
    ) -> types.AutomationFlow:
        """List what waits in an automation, what was skipped, and its conversations."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}"
            f"/automations/{segment('automation', automation)}/flow"
        )
        return await self._client.call("GET", path, options, types.AutomationFlow)

    async def drop_waiting(
        self, factory_uid: str, automation: str, **options: Unpack[RequestOptions]
    ) -> types.DroppedRuns:
        """Cancel the runs of an automation that wait."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}"
            f"/automations/{segment('automation', automation)}/waiting"
        )
        return await self._client.call("DELETE", path, options, types.DroppedRuns)


class AsyncAutomationsWithRawResponse:
    """The automations of a factory, with whole responses."""

    def __init__(self, resource: AsyncAutomations) -> None:
        self.list = raw(resource.list)
        self.flow = raw(resource.flow)
        self.drop_waiting = raw(resource.drop_waiting)


class AsyncSyncs:
    """The history of applied and refused revisions."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncSyncsWithRawResponse:
        """The same methods, returning headers, status and body."""
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
    """The history of applied and refused revisions, with whole responses."""

    def __init__(self, resource: AsyncSyncs) -> None:
        self.list = raw(resource.list)


class AsyncFiles:
    """The definition files of a managed factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncFilesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncFilesWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListFilesParams]
    ) -> AsyncPageRequest[AsyncFilesPage, types.HeldFile]:
        """List the files of the definition, or of one of its revisions."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files"
        return self._client.pages(path, params, AsyncFilesPage, types.ListFilesParams)

    async def retrieve(
        self, factory_uid: str, path: str, **params: Unpack[types.GetFileParams]
    ) -> types.FileContent:
        """Read a definition file."""
        where = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return await self._client.call("GET", where, params, types.FileContent, types.GetFileParams)

    async def put(self, factory_uid: str, path: str, **params: Unpack[types.PutFileParams]) -> types.Sync:
        """Write a definition file and apply the new definition, or refuse it as a whole."""
        where = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return await self._client.call(
            "PUT", where, params, types.Sync, types.PutFileParams, types.PutFileQuery
        )

    async def delete(
        self, factory_uid: str, path: str, **params: Unpack[types.DeleteFileParams]
    ) -> types.Sync:
        """Delete a definition file and apply the new definition, or refuse it as a whole."""
        where = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return await self._client.call("DELETE", where, params, types.Sync, types.DeleteFileParams)

    async def replace(self, factory_uid: str, **params: Unpack[types.ImportFilesParams]) -> types.Sync:
        """Replace the definition with a tree of files. Deletes all other files."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files"
        takes, query = types.ImportFilesParams, types.ImportFilesQuery
        return await self._client.call("PUT", path, params, types.Sync, takes, query)

    async def import_tar(
        self, factory_uid: str, tar: bytes, **params: Unpack[types.ImportTarParams]
    ) -> types.Sync:
        """Replace the definition with the files of a tar. Deletes all other files."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files.tar"
        takes, query, headers = (
            types.ImportTarParams,
            types.ImportTarQuery,
            {"Content-Type": "application/x-tar"},
        )
        request = self._client.request("PUT", path, params, takes, query=query, headers=headers, content=tar)
        return await self._client.send(request, types.Sync)

    async def export_tar(self, factory_uid: str, **params: Unpack[types.ExportFilesParams]) -> bytes:
        """Return a tar of the files, for a git or directory source."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files.tar"
        return await self._client.call("GET", path, params, bytes, types.ExportFilesParams)


class AsyncFilesWithRawResponse:
    """The definition files of a managed factory, with whole responses."""

    def __init__(self, resource: AsyncFiles) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.put = raw(resource.put)
        self.delete = raw(resource.delete)
        self.replace = raw(resource.replace)
        self.import_tar = raw(resource.import_tar)
        self.export_tar = raw(resource.export_tar)


class AsyncRevisions:
    """The revisions of the definition of a managed factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncRevisionsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncRevisionsWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListRevisionsParams]
    ) -> AsyncPageRequest[AsyncRevisionsPage, types.Revision]:
        """List the revisions, the newest first."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/revisions"
        return self._client.pages(path, params, AsyncRevisionsPage, types.ListRevisionsParams)

    async def retrieve(
        self, factory_uid: str, revision: str, **options: Unpack[RequestOptions]
    ) -> types.RevisionWithDifference:
        """Return a revision with its changes."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/revisions/{segment('revision', revision)}"
        return await self._client.call("GET", path, options, types.RevisionWithDifference)

    async def restore(
        self, factory_uid: str, revision: str, **params: Unpack[types.RestoreRevisionParams]
    ) -> types.Sync:
        """Make a new revision with the files of an earlier one, and apply it."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/revisions/{segment('revision', revision)}/restore"
        takes, query = types.RestoreRevisionParams, types.RestoreRevisionQuery
        return await self._client.call("POST", path, params, types.Sync, takes, query)


class AsyncRevisionsWithRawResponse:
    """The revisions of the definition of a managed factory, with whole responses."""

    def __init__(self, resource: AsyncRevisions) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.restore = raw(resource.restore)


class AsyncFactories:
    """Factories."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def runs(self) -> AsyncFactoryRuns:
        """Work for a factory."""
        return AsyncFactoryRuns(self._client)

    @cached_property
    def notifications(self) -> AsyncNotifications:
        """The notifications of a factory, and their events."""
        return AsyncNotifications(self._client)

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
        """The history of applied and refused revisions."""
        return AsyncSyncs(self._client)

    @cached_property
    def files(self) -> AsyncFiles:
        """The definition files of a managed factory."""
        return AsyncFiles(self._client)

    @cached_property
    def revisions(self) -> AsyncRevisions:
        """The revisions of the definition of a managed factory."""
        return AsyncRevisions(self._client)

    @cached_property
    def with_raw_response(self) -> AsyncFactoriesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncFactoriesWithRawResponse(self)

    def list(
        self, **params: Unpack[types.ListFactoriesParams]
    ) -> AsyncPageRequest[AsyncFactoriesPage, types.Factory]:
        """List the factories."""
        return self._client.pages("/factory", params, AsyncFactoriesPage, types.ListFactoriesParams)

    async def retrieve(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.Factory:
        """Return one factory: its source, state and contents."""
        path = f"/factory/{segment('factory_uid', factory_uid)}"
        return await self._client.call("GET", path, options, types.Factory)

    async def plan(self, factory_uid: str, **params: Unpack[types.PlanFactoryParams]) -> types.Plan:
        """Plan a tree: its changes, and whether the server would accept it. Plans the given files, or the head of the
        factory's source. Changes nothing."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/plan"
        return await self._client.call("POST", path, params, types.Plan, types.PlanFactoryParams)

    async def sync(self, factory_uid: str, **params: Unpack[types.SyncFactoryParams]) -> types.Sync:
        """Apply the head of the factory's source, and return when it is applied or refused."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/sync"
        return await self._client.call("POST", path, params, types.Sync, types.SyncFactoryParams)

    async def applied(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.ListAppliedResponse:
        """List the applied revisions to which the factory can be rolled back."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/applied"
        return await self._client.call("GET", path, options, types.ListAppliedResponse)

    async def rollback(
        self, factory_uid: str, **params: Unpack[types.RollbackFactoryParams]
    ) -> types.Rollback:
        """Serve an earlier applied revision, and stay there until resume; with dry_run only plan that."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/rollback"
        return await self._client.call("POST", path, params, types.Rollback, types.RollbackFactoryParams)

    async def resume(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.Factory:
        """Have the factory follow its source again after a rollback."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/resume"
        return await self._client.call("POST", path, options, types.Factory)

    async def test_filter(
        self, factory_uid: str, **params: Unpack[types.TestFilterParams]
    ) -> types.FilterTestResponse:
        """Test whether a delivery or payload would match this filter, and why."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/filter-tests"
        return await self._client.call("POST", path, params, types.FilterTestResponse, types.TestFilterParams)

    async def notify_push(
        self, factory_uid: str, body: bytes, *, headers: Mapping[str, str], **options: Unpack[RequestOptions]
    ) -> None:
        """Forward a git host's push notice unchanged: the server verifies its signature and reads the source."""
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
        self.applied = raw(resource.applied)
        self.rollback = raw(resource.rollback)
        self.resume = raw(resource.resume)
        self.test_filter = raw(resource.test_filter)
        self.notify_push = raw(resource.notify_push)
