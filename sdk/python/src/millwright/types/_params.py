"""Made by scripts/generate from api/openapi.yaml: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict

from .._options import RequestOptions
from ._models import AmbientAgentConfig, Harness, MCPServerConfig, RunRepository


class AmbientAgentConfigParam(TypedDict):
    """AmbientAgentConfigParam"""

    base_prompt: NotRequired[str | None]
    """Instructions that precede the prompt"""
    environment_id: NotRequired[str | None]
    """The environment"""
    harness: NotRequired[HarnessParam | Harness]
    """What executes the run"""
    idle_timeout_minutes: NotRequired[int | None]
    """How long the session of an agent waits for an answer, in minutes; 30 when absent. Only agents that speak the Agent Client Protocol have sessions that wait"""
    mcp_servers: NotRequired[Mapping[str, MCPServerConfigParam | MCPServerConfig] | None]
    """Tools through MCP, by name"""
    model_id: NotRequired[str | None]
    """The language model"""
    name: NotRequired[str | None]
    """Label for grouping and filtering; the skill's name when a run is started from a skill"""
    repositories: NotRequired[Sequence[RunRepositoryParam | RunRepository] | None]
    """Repositories to check out, beside those of the factory"""
    runner_id: NotRequired[str | None]
    """The runner"""
    skill_spec: NotRequired[str | None]
    """Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md"""
    worker_host: NotRequired[str | None]
    """Where to execute the run"""


class AttachmentRequest(TypedDict):
    """AttachmentRequest"""

    data: str | bytes
    """Its content in base64; may be empty"""
    file_name: str
    """Name of the file, without a directory"""
    mime_type: NotRequired[str | None]
    """Its media type"""


class CreateAPIKeyRequest(TypedDict):
    """CreateAPIKeyRequest"""

    expires_at: NotRequired[datetime | str]
    """Time of expiry, instead of expires_in"""
    expires_in: NotRequired[str]
    """Lifetime in days, hours, minutes and seconds; absent: the key does not expire"""
    factories: NotRequired[Sequence[str]]
    """UIDs of the factories that the key is limited to; absent: it is not limited"""
    name: str
    """Purpose"""
    role: Literal["planner", "viewer", "runner", "admin", "worker"] | str
    """Role of the key"""


class CreateWebhookRequest(TypedDict):
    """CreateWebhookRequest"""

    auth_mode: NotRequired[Literal["token", "url_token", "signature"] | str]
    """How senders authenticate"""
    deliveries_per_minute: NotRequired[int]
    """The delivery budget of each sender; absent as the server has it"""
    delivery_id_header: NotRequired[str]
    """Header with the sender's own event ID"""
    duplicate_window: NotRequired[str]
    """How long the hash of a body counts as an identity, 1m to 30d; absent for ever"""
    enabled: NotRequired[bool]
    """Whether the webhook accepts deliveries; true when absent"""
    handshake: NotRequired[bool]
    """Whether the webhook answers the provider's set-up probes"""
    name: str
    """Name"""
    secret: NotRequired[str]
    """For auth_mode signature: the provider's signing secret. Absent: set later, or generated for standard_webhooks and svix"""
    secret_name: NotRequired[str]
    """Name of a new or existing secret; absent: a name derived from the webhook's"""
    signature_scheme: NotRequired[str]
    """For auth_mode signature: the provider's signing scheme"""


class DefinitionFile(TypedDict):
    """DefinitionFile"""

    content: str
    """Text of the file"""
    path: str
    """Path relative to the root of the tree, with forward slashes"""


class EditFileRequest(TypedDict):
    """EditFileRequest"""

    content: str
    """The text of the file"""


class FactoryRunRequest(TypedDict):
    """FactoryRunRequest"""

    config: NotRequired[AmbientAgentConfigParam | AmbientAgentConfig]
    """Changes to the configuration in the definition"""
    prompt: str
    """The task"""
    ticket_ref: NotRequired[str | None]
    """The ticket of the task"""
    ticket_url: NotRequired[str | None]
    """URL of the ticket"""
    title: NotRequired[str | None]
    """Title for people; the first line of the prompt when absent"""


class FilterTestRequest(TypedDict):
    """FilterTestRequest"""

    delivery_id: NotRequired[str]
    """A stored delivery of this factory"""
    event: NotRequired[str]
    """With provider: the event"""
    example: NotRequired[bool]
    """With provider: test the provider's example of the event, instead of delivery_id"""
    filter: NotRequired[Any]
    """The payload filter, an object; absent for none"""
    filter_text: NotRequired[str]
    """The filter as YAML or JSON, instead of filter: the text under payload in an automation's file, or under filter, with its webhook_ids and headers"""
    headers: NotRequired[Any]
    """The filter of headers, as in an automation's file; absent for none"""
    payload: NotRequired[Any]
    """A body to test, instead of delivery_id"""
    provider: NotRequired[str]
    """For a trigger of a provider: the provider, such as github. filter is then the trigger's filter"""
    request_headers: NotRequired[Mapping[str, str]]
    """With payload: the headers that it came with. If the header that names a provider's event is absent, the payload counts as the event"""
    webhook_ids: NotRequired[Sequence[str]]
    """Webhooks that the trigger selects; absent for any"""


class HarnessParam(TypedDict):
    """HarnessParam"""

    model_id: NotRequired[str | None]
    """The language model"""
    reasoning_level: NotRequired[str | None]
    """Effort of the model"""
    type: NotRequired[str | None]
    """Name of a configured harness; oz and absence mean the default"""


class ImportFilesRequest(TypedDict):
    """ImportFilesRequest"""

    files: Sequence[DefinitionFile]
    """The whole tree; the call deletes all other files"""


class MCPServerConfigParam(TypedDict):
    """MCPServerConfigParam"""

    args: NotRequired[Sequence[str] | None]
    """Its arguments"""
    command: NotRequired[str | None]
    """The program"""
    env: NotRequired[Mapping[str, str] | None]
    """Environment variables; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or the same server in the applied definition"""
    headers: NotRequired[Mapping[str, str] | None]
    """HTTP headers; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or an applied definition that grants the secret to the same server"""
    url: NotRequired[str | None]
    """URL of the server"""
    warp_id: NotRequired[str | None]
    """Identifier of a shared server"""


class OpenPullRequest(TypedDict):
    """OpenPullRequest"""

    body: NotRequired[str]
    """Text"""
    repository: NotRequired[str]
    """owner/name, if the run changed several"""
    title: NotRequired[str]
    """The run's title when absent"""


class PlanRequest(TypedDict):
    """PlanRequest"""

    allow_prune: NotRequired[bool]
    """As if the apply were allowed to delete all webhooks, or more than half of them"""
    allow_rename: NotRequired[bool]
    """As if the apply were allowed to replace a webhook by one of the same content under another name"""
    files: NotRequired[Sequence[DefinitionFile]]
    """The whole tree; absent: the head of the factory's source, which needs the role runner"""


class RollbackRequest(TypedDict):
    """RollbackRequest"""

    allow_prune: NotRequired[bool]
    """Allow a rollback that deletes all webhooks, or more than half of them"""
    allow_rename: NotRequired[bool]
    """Allow a renamed webhook, which gets a new URL"""
    dry_run: NotRequired[bool]
    """Only plan, and change nothing"""
    revision: NotRequired[str]
    """The revision, or its first 7 characters or more; absent: the applied one before the present"""


class RotateSecretRequest(TypedDict):
    """RotateSecretRequest"""

    secret: NotRequired[str]
    """For auth_mode signature: the provider's new signing secret; absent: the server generates it"""
    shared: NotRequired[bool]
    """Rotate even if other webhooks use the secret"""


class RunAgentRequest(TypedDict):
    """RunAgentRequest"""

    agent_identity_uid: NotRequired[str | None]
    """An applied agent, whose prompt, model and settings apply"""
    attachments: NotRequired[Sequence[AttachmentRequest] | None]
    """Files for the agent, at most 1 MiB each"""
    config: NotRequired[AmbientAgentConfigParam | AmbientAgentConfig]
    """How to execute the run"""
    conversation_id: NotRequired[str | None]
    """The conversation to continue"""
    metadata: NotRequired[Mapping[str, str] | None]
    """At most 20 keys of 1 to 64 letters, digits, dots, underscores and dashes, with values of at most 256 bytes"""
    parent_run_id: NotRequired[str | None]
    """The run that starts this one"""
    prompt: NotRequired[str | None]
    """The task of the agent; required without a skill or conversation"""
    skill: NotRequired[str | None]
    """Replaces config.skill_spec; also accepts repo:name and repo:path"""
    title: NotRequired[str | None]
    """Title for people; the first line of the prompt when absent"""


class RunAnswerRequest(TypedDict):
    """RunAnswerRequest"""

    choice: str
    """The ID of a choice; approve and deny stand for the first one that allows and rejects, once before always"""
    message: NotRequired[str]
    """Text for the conversation. An agent whose session has ended gets it too"""
    question_id: str
    """The question"""


class RunFollowupRequest(TypedDict):
    """RunFollowupRequest"""

    message: str
    """The text; not blank"""


class RunRepositoryParam(TypedDict):
    """RunRepositoryParam"""

    code_forge: NotRequired[str | None]
    """A forge of the server's settings; the default one when absent"""
    name: str
    """The name of the repository"""
    owner: str
    """The account or organisation"""
    ref: NotRequired[str | None]
    """A branch or tag; the default branch when absent"""


class SetSecretRequest(TypedDict):
    """SetSecretRequest"""

    pending: NotRequired[bool]
    """true: the provider has not issued the value yet"""
    value: NotRequired[str]
    """The value; required unless pending is true"""


class SyncRequest(TypedDict):
    """SyncRequest"""

    allow_prune: NotRequired[bool]
    """Allow an apply that deletes all webhooks, or more than half of them"""
    allow_rename: NotRequired[bool]
    """Allow a renamed webhook, which gets a new URL"""
    revision: NotRequired[str]
    """The revision to apply, or its first 7 characters or more; 409 if the source has another one. If absent, the permissions count for the revision that was refused last, and for no other"""


class UpdateWebhookRequest(TypedDict):
    """UpdateWebhookRequest"""

    auth_mode: NotRequired[Literal["token", "url_token", "signature"] | str]
    """How senders authenticate; removes a signature_scheme that does not fit"""
    deliveries_per_minute: NotRequired[int]
    """The delivery budget of each sender; 0 as the server has it"""
    delivery_id_header: NotRequired[str]
    """Header with the sender's own event ID; empty for none"""
    duplicate_window: NotRequired[str]
    """How long the hash of a body counts as an identity, 1m to 30d; empty for ever"""
    enabled: NotRequired[bool]
    """Whether the webhook accepts deliveries"""
    handshake: NotRequired[bool]
    """Whether the webhook answers the provider's set-up probes"""
    name: NotRequired[str]
    """A new name; UID and URL stay"""
    secret_name: NotRequired[str]
    """The team secret that holds the credential"""
    signature_scheme: NotRequired[str]
    """The provider's signing scheme; empty for none"""


class ValidateFilesRequest(TypedDict):
    """ValidateFilesRequest"""

    files: Sequence[DefinitionFile]
    """The whole tree"""


class ListAgentSkillsParams(RequestOptions):
    """What ``listAgentSkills`` takes."""

    repo: NotRequired[str]
    """Only skills of this repository: owner/name"""


class CreateConversationFollowupParams(RunFollowupRequest, RequestOptions):
    """What ``createConversationFollowup`` takes."""


class ListEnvironmentsParams(RequestOptions):
    """What ``listEnvironments`` takes."""

    sort_by: NotRequired[Literal["last_updated", "name"] | str]
    """What to order by: the last updated first, or by name"""


class ListAgentIdentitiesParams(RequestOptions):
    """What ``listAgentIdentities`` takes."""

    factory_uid: NotRequired[str]
    """Only agents of this factory"""


class ListRunsParams(RequestOptions):
    """What ``listRuns`` takes."""

    metadata: NotRequired[Mapping[str, str]]
    """Only runs with these values in their metadata: metadata[key]=value"""
    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
    sort_by: NotRequired[Literal["updated_at", "created_at", "title", "agent"] | str]
    """Sort key"""
    sort_order: NotRequired[Literal["desc", "asc"] | str]
    """Sort direction"""
    state: NotRequired[
        Literal[
            "QUEUED",
            "PENDING",
            "CLAIMED",
            "INPROGRESS",
            "SUCCEEDED",
            "FAILED",
            "ERROR",
            "BLOCKED",
            "CANCELLED",
        ]
        | str
        | Sequence[
            Literal[
                "QUEUED",
                "PENDING",
                "CLAIMED",
                "INPROGRESS",
                "SUCCEEDED",
                "FAILED",
                "ERROR",
                "BLOCKED",
                "CANCELLED",
            ]
            | str
        ]
    ]
    """Only runs in one of these states"""
    task_status: NotRequired[
        Literal["running", "failed", "blocked", "cancelled", "complete"]
        | str
        | Sequence[Literal["running", "failed", "blocked", "cancelled", "complete"] | str]
    ]
    """Only runs whose state is one of these kinds"""
    source: NotRequired[str | Sequence[str]]
    """Only runs of one of these sources (RunSourceType), in any case"""
    name: NotRequired[str]
    """Only runs with this config name"""
    model_id: NotRequired[str]
    """Only runs of this language model"""
    creator: NotRequired[str]
    """Only runs created by the holder of this UID"""
    executor: NotRequired[str]
    """Only runs that the worker of this UID executes or executed"""
    environment_id: NotRequired[str]
    """Only runs of this environment"""
    skill: NotRequired[str]
    """Only runs of this skill"""
    skill_spec: NotRequired[str]
    """The same as skill"""
    created_after: NotRequired[datetime | str]
    """Only runs created after this time (RFC 3339; UTC without a zone)"""
    created_before: NotRequired[datetime | str]
    """Only runs created before this time (RFC 3339; UTC without a zone)"""
    updated_after: NotRequired[datetime | str]
    """Only runs changed after this time (RFC 3339; UTC without a zone)"""
    updated_before: NotRequired[datetime | str]
    """Only runs changed before this time (RFC 3339; UTC without a zone)"""
    factory_uid: NotRequired[str | Sequence[str]]
    """Only runs of one of these factories"""
    factory_only: NotRequired[bool]
    """Only runs of factories"""
    automation_id: NotRequired[str]
    """Only runs of this automation"""
    webhook_id: NotRequired[str]
    """Only runs that a delivery to this webhook started"""
    delivery_id: NotRequired[str]
    """Only runs that this delivery started"""
    ancestor_run_id: NotRequired[str]
    """Only descendants of this run"""
    q: NotRequired[str]
    """Only runs with this text in their title or prompt, in any case, or with this ID"""
    waiting: NotRequired[bool]
    """Only queued runs that no worker may take yet: they wait for others of their automation, for the end of a burst of deliveries, or for their next attempt"""
    execution_location: NotRequired[Literal["LOCAL", "REMOTE"] | str]
    """LOCAL matches no run, REMOTE every run"""
    schedule_id: NotRequired[str]
    """Only runs that this schedule started. Schedules without a name share those of their automation"""
    artifact_type: NotRequired[
        Literal["FILE", "SCREENSHOT", "PLAN", "PULL_REQUEST", "EXTERNAL_REFERENCE"] | str
    ]
    """Only runs that left an artifact of this type"""


class CreateRunParams(RunAgentRequest, RequestOptions):
    """What ``createRun`` takes."""


class AnswerQuestionParams(RunAnswerRequest, RequestOptions):
    """What ``answerQuestion`` takes."""


class CreateFollowupParams(RunFollowupRequest, RequestOptions):
    """What ``createFollowup`` takes."""


class OpenPullRequestParams(OpenPullRequest, RequestOptions):
    """What ``openPullRequest`` takes."""


class ListAuditParams(RequestOptions):
    """What ``listAudit`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
    actor: NotRequired[str]
    """Name or UID of the actor"""
    action: NotRequired[str]
    """An action such as webhook.disable, or all of a kind such as webhook"""
    factory_uid: NotRequired[str]
    """UID of the factory"""
    after: NotRequired[datetime | str]
    """Only changes at this time or later"""
    before: NotRequired[datetime | str]
    """Only changes before this time"""


class ListFactoriesParams(RequestOptions):
    """What ``listFactories`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
    search: NotRequired[str]
    """Part of the name or alias, in any case"""
    include_detached: NotRequired[bool]
    """Include detached factories"""


class ValidateFactoryFilesParams(ValidateFilesRequest, RequestOptions):
    """What ``validateFactoryFiles`` takes."""


class ListAutomationsParams(RequestOptions):
    """What ``listAutomations`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class ListEventsParams(RequestOptions):
    """What ``listEvents`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
    state: NotRequired[Literal["", "pending", "sent", "dead", "dropped"] | str]
    """Only events in this state"""
    notification: NotRequired[str]
    """Only events of the notification of this name"""


class ListFilesParams(RequestOptions):
    """What ``listFiles`` takes."""

    revision: NotRequired[str]
    """ID of the revision; absent for the newest"""
    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class ImportFilesQuery(TypedDict):
    """What ``importFiles`` takes as query."""

    base_revision: NotRequired[str]
    """Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision"""
    allow_prune: NotRequired[bool]
    """Allow an edit that deletes all webhooks, or more than half of them"""
    allow_rename: NotRequired[bool]
    """Allow a renamed webhook, which gets a new URL"""


class ImportFilesParams(ImportFilesRequest, ImportFilesQuery, RequestOptions):
    """What ``importFiles`` takes."""


class ExportFilesParams(RequestOptions):
    """What ``exportFiles`` takes."""

    revision: NotRequired[str]
    """ID of the revision; absent for the newest"""


class ImportTarQuery(TypedDict):
    """What ``importTar`` takes as query."""

    base_revision: NotRequired[str]
    """Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision"""
    allow_prune: NotRequired[bool]
    """Allow an edit that deletes all webhooks, or more than half of them"""
    allow_rename: NotRequired[bool]
    """Allow a renamed webhook, which gets a new URL"""


class ImportTarParams(ImportTarQuery, RequestOptions):
    """What ``importTar`` takes."""


class DeleteFileParams(RequestOptions):
    """What ``deleteFile`` takes."""

    base_revision: NotRequired[str]
    """Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision"""


class GetFileParams(RequestOptions):
    """What ``getFile`` takes."""

    revision: NotRequired[str]
    """ID of the revision; absent for the newest"""


class PutFileQuery(TypedDict):
    """What ``putFile`` takes as query."""

    base_revision: NotRequired[str]
    """Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision"""


class PutFileParams(EditFileRequest, PutFileQuery, RequestOptions):
    """What ``putFile`` takes."""


class TestFilterParams(FilterTestRequest, RequestOptions):
    """What ``testFilter`` takes."""


class ListNotificationsParams(RequestOptions):
    """What ``listNotifications`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class PlanFactoryParams(PlanRequest, RequestOptions):
    """What ``planFactory`` takes."""


class ListRevisionsParams(RequestOptions):
    """What ``listRevisions`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class RestoreRevisionQuery(TypedDict):
    """What ``restoreRevision`` takes as query."""

    base_revision: NotRequired[str]
    """Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision"""
    allow_prune: NotRequired[bool]
    """Allow an edit that deletes all webhooks, or more than half of them"""
    allow_rename: NotRequired[bool]
    """Allow a renamed webhook, which gets a new URL"""


class RestoreRevisionParams(RestoreRevisionQuery, RequestOptions):
    """What ``restoreRevision`` takes."""


class RollbackFactoryParams(RollbackRequest, RequestOptions):
    """What ``rollbackFactory`` takes."""


class CreateFactoryRunParams(FactoryRunRequest, RequestOptions):
    """What ``createFactoryRun`` takes."""


class SyncFactoryParams(SyncRequest, RequestOptions):
    """What ``syncFactory`` takes."""


class ListSyncsParams(RequestOptions):
    """What ``listSyncs`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class ListWebhooksParams(RequestOptions):
    """What ``listWebhooks`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
    include_deleted: NotRequired[bool]
    """Include deleted ones"""


class CreateWebhookParams(CreateWebhookRequest, RequestOptions):
    """What ``createWebhook`` takes."""


class DeleteWebhookParams(RequestOptions):
    """What ``deleteWebhook`` takes."""

    delete_secret: NotRequired[bool]
    """Also delete its secret, unless something else uses it"""
    restorable: NotRequired[bool]
    """A webhook of this name within 30 days gets the UID and URL back; without this the URL ends for good"""


class UpdateWebhookParams(UpdateWebhookRequest, RequestOptions):
    """What ``updateWebhook`` takes."""


class ListDeliveriesParams(RequestOptions):
    """What ``listDeliveries`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
    outcome: NotRequired[
        Literal[
            "accepted",
            "duplicate",
            "rejected_auth",
            "rejected_invalid_json",
            "rejected_too_large",
            "handshake",
        ]
        | str
    ]
    """Only those with this outcome"""


class RotateSecretParams(RotateSecretRequest, RequestOptions):
    """What ``rotateSecret`` takes."""


class ListKeysParams(RequestOptions):
    """What ``listKeys`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class CreateKeyParams(CreateAPIKeyRequest, RequestOptions):
    """What ``createKey`` takes."""


class ListSecretsParams(RequestOptions):
    """What ``listSecrets`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""


class SetSecretParams(SetSecretRequest, RequestOptions):
    """What ``setSecret`` takes."""


class ListWorkersParams(RequestOptions):
    """What ``listWorkers`` takes."""

    limit: NotRequired[int]
    """Maximum number of items"""
    cursor: NotRequired[str]
    """next_cursor of the previous page; absent for the first page"""
