"""Factories: what they are made of, where they stand, and their webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment, segments
from ._caller import Caller
from ._io import raw
from .pagination import Page
from .webhooks import Webhooks


class FactoriesPage(Page[types.Factory, types.ListFactoriesResponse]):
    """A page of factories."""

    model, member = types.ListFactoriesResponse, "factories"

    @property
    def factories(self) -> list[types.Factory]:
        """The factories of this page."""
        return self.items


class AutomationsPage(Page[types.Automation, types.ListAutomationsResponse]):
    """A page of automations."""

    model, member = types.ListAutomationsResponse, "automations"

    @property
    def automations(self) -> list[types.Automation]:
        """The automations of this page."""
        return self.items


class SyncsPage(Page[types.Sync, types.ListSyncsResponse]):
    """A page of syncs."""

    model, member = types.ListSyncsResponse, "syncs"

    @property
    def syncs(self) -> list[types.Sync]:
        """The syncs of this page."""
        return self.items


class FactoryRuns:
    """Work for a factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> FactoryRunsWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return FactoryRunsWithRawResponse(self)

    def create(
        self, factory_uid: str, **params: Unpack[types.CreateFactoryRunParams]
    ) -> types.FactoryRunResponse:
        """Give work to the factory's foreman. What happens to the run from then on is at ``client.agent.runs``."""
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
        """The same methods, answering with headers, status and body."""
        return AutomationsWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListAutomationsParams]) -> AutomationsPage:
        """List a factory's automations, and say of each whether it fires."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/automations",
            params,
            AutomationsPage,
            types.ListAutomationsParams,
        )


class AutomationsWithRawResponse:
    """The automations of a factory, with whole responses."""

    def __init__(self, resource: Automations) -> None:
        self.list = raw(resource.list)


class Syncs:
    """The history of what was applied, and what was refused."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> SyncsWithRawResponse:
        """The same methods, answering with headers, status and body."""
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
    """The history of what was applied, and what was refused, with whole responses."""

    def __init__(self, resource: Syncs) -> None:
        self.list = raw(resource.list)


class Files:
    """The definition files of a managed factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> FilesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return FilesWithRawResponse(self)

    def put(self, factory_uid: str, path: str, **params: Unpack[types.PutFileParams]) -> types.Sync:
        """Write a definition file and apply the definition that results, or refuse it as a whole."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return self._client.call("PUT", path, params, types.Sync, types.PutFileParams)

    def delete(self, factory_uid: str, path: str, **options: Unpack[RequestOptions]) -> types.Sync:
        """Delete a definition file and apply the definition that results, or refuse it as a whole."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/files/{segments('path', path)}"
        return self._client.call("DELETE", path, options, types.Sync)


class FilesWithRawResponse:
    """The definition files of a managed factory, with whole responses."""

    def __init__(self, resource: Files) -> None:
        self.put = raw(resource.put)
        self.delete = raw(resource.delete)


class Factories:
    """Factories."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def runs(self) -> FactoryRuns:
        """Work for a factory."""
        return FactoryRuns(self._client)

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
        """The history of what was applied, and what was refused."""
        return Syncs(self._client)

    @cached_property
    def files(self) -> Files:
        """The definition files of a managed factory."""
        return Files(self._client)

    @cached_property
    def with_raw_response(self) -> FactoriesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return FactoriesWithRawResponse(self)

    def list(self, **params: Unpack[types.ListFactoriesParams]) -> FactoriesPage:
        """List the factories."""
        return self._client.pages("/factory", params, FactoriesPage, types.ListFactoriesParams)

    def retrieve(self, factory_uid: str, **options: Unpack[RequestOptions]) -> types.Factory:
        """Return one factory: its source, where it stands, and what is in it."""
        path = f"/factory/{segment('factory_uid', factory_uid)}"
        return self._client.call("GET", path, options, types.Factory)

    def plan(self, factory_uid: str, **params: Unpack[types.PlanFactoryParams]) -> types.Plan:
        """Say what applying a tree would change, and whether it would be accepted: the files given, or else the head of the
        factory's source. Changes nothing."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/plan"
        return self._client.call("POST", path, params, types.Plan, types.PlanFactoryParams)

    def sync(self, factory_uid: str, **params: Unpack[types.SyncFactoryParams]) -> types.Sync:
        """Apply the head of the factory's source now, and return when it is applied or refused."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/sync"
        return self._client.call("POST", path, params, types.Sync, types.SyncFactoryParams)

    def test_filter(
        self, factory_uid: str, **params: Unpack[types.TestFilterParams]
    ) -> types.FilterTestResponse:
        """Say whether a delivery, or a payload, would start an automation with this filter, and why."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/filter-tests"
        return self._client.call("POST", path, params, types.FilterTestResponse, types.TestFilterParams)

    def notify_push(
        self, factory_uid: str, body: bytes, *, headers: Mapping[str, str], **options: Unpack[RequestOptions]
    ) -> None:
        """Pass on a git host's push notice, as it came: the server verifies its signature. It wakes the source."""
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
        self.test_filter = raw(resource.test_filter)
        self.notify_push = raw(resource.notify_push)
