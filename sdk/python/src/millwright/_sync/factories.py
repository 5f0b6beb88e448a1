"""Factories: their definitions, states and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment, segments
from ._caller import Caller
from ._io import raw
from .notifications import Notifications
from .pagination import Page
from .webhooks import Webhooks


class FactoriesPage(Page["types.Factory", "types.ListFactoriesResponse"]):
    """A page of factories."""

    model, member = "ListFactoriesResponse", "factories"

    @property
    def factories(self) -> list[types.Factory]:
        """The factories of this page."""
        return self.items


class AutomationsPage(Page["types.Automation", "types.ListAutomationsResponse"]):
    """A page of automations."""

    model, member = "ListAutomationsResponse", "automations"

    @property
    def automations(self) -> list[types.Automation]:
        """The automations of this page."""
        return self.items


class SyncsPage(Page["types.Sync", "types.ListSyncsResponse"]):
    """A page of syncs."""

    model, member = "ListSyncsResponse", "syncs"

    @property
    def syncs(self) -> list[types.Sync]:
        """The syncs of this page."""
        return self.items


class FilesPage(Page["types.HeldFile", "types.ListFilesResponse"]):
    """A page of files."""

    model, member = "ListFilesResponse", "files"

    @property
    def files(self) -> list[types.HeldFile]:
        """The files of this page."""
        return self.items


class RevisionsPage(Page["types.Revision", "types.ListRevisionsResponse"]):
    """A page of revisions."""

    model, member = "ListRevisionsResponse", "revisions"

    @property
    def revisions(self) -> list[types.Revision]:
        """The revisions of this page."""
        return self.items


class FactoryRuns:
    """Work for a factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> FactoryRunsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return FactoryRunsWithRawResponse(self)

    def create(
        self, factory_uid: str, **params: Unpack[types.CreateFactoryRunParams]
    ) -> types.FactoryRunResponse:
        """Give work to the factory's foreman. Follow the run with ``client.agent.runs``."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/runs"
        return self._client.call("POST", path, params, types.FactoryRunResponse, types.CreateFactoryRunParams)


class FactoryRunsWithRawResponse:
    """Work for a factory, with whole responses."""

    def __init__(self, resource: FactoryRuns) -> None:
        self.create = raw(resource.create)


class Automations:
    """The automations of a factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AutomationsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AutomationsWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListAutomationsParams]) -> AutomationsPage:
        """List a factory's automations, and whether each fires."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/automations",
            params,
            AutomationsPage,
            types.ListAutomationsParams,
        )

    def flow(
        self, factory_uid: str, automation: str, **options: Unpack[RequestOptions]
    ) -> types.AutomationFlow:
        """List what waits in an automation, what was skipped, and its conversations."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}"
            f"/automations/{segment('automation', automation)}/flow"
        )
        return self._client.call("GET", path, options, types.AutomationFlow)

    def drop_waiting(
        self, factory_uid: str, automation: str, **options: Unpack[RequestOptions]
    ) -> types.DroppedRuns:
        """Cancel the runs of an automation that wait."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}"
            f"/automations/{segment('automation', automation)}/waiting"
        )
        return self._client.call("DELETE", path, options, types.DroppedRuns)


class AutomationsWithRawResponse:
    """The automations of a factory, with whole responses."""

    def __init__(self, resource: Automations) -> None:
        self.list = raw(resource.list)
        self.flow = raw(resource.flow)
        self.drop_waiting = raw(resource.drop_waiting)


class Syncs:
    """The history of applied and refused revisions."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> SyncsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return SyncsWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListSyncsParams]) -> SyncsPage:
        """List a factory's attempts to apply, the newest first."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/syncs",
            params,
            SyncsPage,
            types.ListSyncsParams,
        )


class SyncsWithRawResponse:
    """The history of applied and refused revisions, with whole responses."""

    def __init__(self, resource: Syncs) -> None:
        self.list = raw(resource.list)


class Files:
    """The definition files of a managed factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> FilesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return FilesWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListFilesParams]) -> FilesPage:
        """List the files of the definition, or of one of its revisions."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files"
        return self._client.pages(path, params, FilesPage, types.ListFilesParams)

    def retrieve(
        self, factory_uid: str, path: str, **params: Unpack[types.GetFileParams]
    ) -> types.FileContent:
        """Read a definition file."""
        where = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return self._client.call("GET", where, params, types.FileContent, types.GetFileParams)

    def put(self, factory_uid: str, path: str, **params: Unpack[types.PutFileParams]) -> types.Sync:
        """Write a definition file and apply the new definition, or refuse it as a whole."""
        where = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return self._client.call("PUT", where, params, types.Sync, types.PutFileParams, types.PutFileQuery)

    def delete(self, factory_uid: str, path: str, **params: Unpack[types.DeleteFileParams]) -> types.Sync:
        """Delete a definition file and apply the new definition, or refuse it as a whole."""
        where = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return self._client.call("DELETE", where, params, types.Sync, types.DeleteFileParams)

    def replace(self, factory_uid: str, **params: Unpack[types.ImportFilesParams]) -> types.Sync:
        """Replace the definition with a tree of files. Deletes all other files."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files"
        takes, query = types.ImportFilesParams, types.ImportFilesQuery
        return self._client.call("PUT", path, params, types.Sync, takes, query)

    def import_tar(self, factory_uid: str, tar: bytes, **params: Unpack[types.ImportTarParams]) -> types.Sync:
        """Replace the definition with the files of a tar. Deletes all other files."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files.tar"
        takes, query, headers = (
            types.ImportTarParams,
            types.ImportTarQuery,
            {"Content-Type": "application/x-tar"},
        )
        request = self._client.request("PUT", path, params, takes, query=query, headers=headers, content=tar)
        return self._client.send(request, types.Sync)

    def export_tar(self, factory_uid: str, **params: Unpack[types.ExportFilesParams]) -> bytes:
        """Return a tar of the files, for a git or directory source."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files.tar"
        return self._client.call("GET", path, params, bytes, types.ExportFilesParams)


class FilesWithRawResponse:
    """The definition files of a managed factory, with whole responses."""

    def __init__(self, resource: Files) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.put = raw(resource.put)
        self.delete = raw(resource.delete)
        self.replace = raw(resource.replace)
        self.import_tar = raw(resource.import_tar)
        self.export_tar = raw(resource.export_tar)


class Revisions:
    """The revisions of the definition of a managed factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> RevisionsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return RevisionsWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListRevisionsParams]) -> RevisionsPage:
        """List the revisions, the newest first."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/revisions"
        return self._client.pages(path, params, RevisionsPage, types.ListRevisionsParams)

    def retrieve(
        self, factory_uid: str, revision: str, **options: Unpack[RequestOptions]
    ) -> types.RevisionWithDifference:
        """Return a revision with its changes."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/revisions/{segment('revision', revision)}"
        return self._client.call("GET", path, options, types.RevisionWithDifference)

    def restore(
        self, factory_uid: str, revision: str, **params: Unpack[types.RestoreRevisionParams]
    ) -> types.Sync:
        """Make a new revision with the files of an earlier one, and apply it."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/revisions/{segment('revision', revision)}/restore"
        takes, query = types.RestoreRevisionParams, types.RestoreRevisionQuery
        return self._client.call("POST", path, params, types.Sync, takes, query)


class RevisionsWithRawResponse:
    """The revisions of the definition of a managed factory, with whole responses."""

    def __init__(self, resource: Revisions) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.restore = raw(resource.restore)


class Factories:
    """Factories."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def runs(self) -> FactoryRuns:
        """Work for a factory."""
        return FactoryRuns(self._client)

    @cached_property
    def notifications(self) -> Notifications:
        """The notifications of a factory, and their events."""
        return Notifications(self._client)

    @cached_property
    def webhooks(self) -> Webhooks:
        """The webhooks of a factory."""
        return Webhooks(self._client)

    @cached_property
    def automations(self) -> Automations:
        """The automations of a factory."""
        return Automations(self._client)

    @cached_property
    def syncs(self) -> Syncs:
        """The history of applied and refused revisions."""
        return Syncs(self._client)

    @cached_property
    def files(self) -> Files:
        """The definition files of a managed factory."""
        return Files(self._client)

    @cached_property
    def revisions(self) -> Revisions:
        """The revisions of the definition of a managed factory."""
        return Revisions(self._client)

    @cached_property
    def with_raw_response(self) -> FactoriesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return FactoriesWithRawResponse(self)

    def list(self, **params: Unpack[types.ListFactoriesParams]) -> FactoriesPage:
        """List the factories."""
        return self._client.pages("/factory", params, FactoriesPage, types.ListFactoriesParams)

    def retrieve(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.Factory:
        """Return one factory: its source, state and contents."""
        path = f"/factory/{segment('factory_uid', factory_uid)}"
        return self._client.call("GET", path, options, types.Factory)

    def plan(self, factory_uid: str, **params: Unpack[types.PlanFactoryParams]) -> types.Plan:
        """Plan a tree: its changes, and whether the server would accept it. Plans the given files, or the head of the
        factory's source. Changes nothing."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/plan"
        return self._client.call("POST", path, params, types.Plan, types.PlanFactoryParams)

    def sync(self, factory_uid: str, **params: Unpack[types.SyncFactoryParams]) -> types.Sync:
        """Apply the head of the factory's source, and return when it is applied or refused."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/sync"
        return self._client.call("POST", path, params, types.Sync, types.SyncFactoryParams)

    def applied(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.ListAppliedResponse:
        """List the applied revisions to which the factory can be rolled back."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/applied"
        return self._client.call("GET", path, options, types.ListAppliedResponse)

    def rollback(self, factory_uid: str, **params: Unpack[types.RollbackFactoryParams]) -> types.Rollback:
        """Serve an earlier applied revision, and stay there until resume; with dry_run only plan that."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/rollback"
        return self._client.call("POST", path, params, types.Rollback, types.RollbackFactoryParams)

    def resume(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.Factory:
        """Have the factory follow its source again after a rollback."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/resume"
        return self._client.call("POST", path, options, types.Factory)

    def test_filter(
        self, factory_uid: str, **params: Unpack[types.TestFilterParams]
    ) -> types.FilterTestResponse:
        """Test whether a delivery or payload would match this filter, and why."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/filter-tests"
        return self._client.call("POST", path, params, types.FilterTestResponse, types.TestFilterParams)

    def notify_push(
        self, factory_uid: str, body: bytes, *, headers: Mapping[str, str], **options: Unpack[RequestOptions]
    ) -> None:
        """Forward a git host's push notice unchanged: the server verifies its signature and reads the source."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/push"
        request = self._client.request("POST", path, options, headers=headers, content=body)
        self._client.send(request, type(None))


class FactoriesWithRawResponse:
    """Factories, with whole responses."""

    def __init__(self, resource: Factories) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.plan = raw(resource.plan)
        self.sync = raw(resource.sync)
        self.applied = raw(resource.applied)
        self.rollback = raw(resource.rollback)
        self.resume = raw(resource.resume)
        self.test_filter = raw(resource.test_filter)
        self.notify_push = raw(resource.notify_push)
