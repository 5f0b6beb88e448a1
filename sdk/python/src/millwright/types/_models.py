"""Made by scripts/generate from api/openapi.yaml: do not edit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypeAliasType

from .._model import MISSING, Model


class APIKey(Model):
    created_at: datetime = MISSING
    """When it was made"""
    expires_at: datetime | None = MISSING
    """When it stops working; null for never"""
    name: str = MISSING
    """What it is for"""
    revoked_at: datetime | None = MISSING
    """When it was revoked; null if it was not"""
    role: Literal["viewer", "runner", "admin", "worker"] | str = MISSING
    """viewer reads, runner also creates and steers runs, admin may do everything, worker executes runs and has no API"""
    uid: str = MISSING
    """Identifier"""


class AdvertisedSkill(Model):
    bundled_skill_id: str | None = None
    """ID of a skill that comes with the service"""
    name: str = MISSING
    """Name of the skill"""
    skill_path: str | None = None
    """Path by which it is resolved"""


class AttachmentInfo(Model):
    file_name: str = MISSING
    """Name of the file"""
    mime_type: str = MISSING
    """Its media type"""
    size_bytes: int = MISSING
    """Its size"""


class AutomationTrigger(Model):
    cron: str | None = None
    """Of a schedule trigger: when, in UTC"""
    event: str = MISSING
    """What happened"""
    filter: Any | None = None
    """Of any other trigger: its filter"""
    payload: Any | None = None
    """Of a webhook trigger: its payload filter"""
    provider: str = MISSING
    """Who knows of the event"""
    supported: bool = MISSING
    """Whether this server fires such triggers"""
    webhook_ids: list[str] | None = None
    """Of a webhook trigger: UIDs of the webhooks it selects"""


class BundledSkill(Model):
    id: str = MISSING
    """The skill's ID: input.bundled_skill_id of read_skill actions"""
    purpose: str = MISSING
    """What it is for"""


class BundledSkills(Model):
    note: str = MISSING
    """What the catalog is, and is not"""
    skills: list[BundledSkill] = []
    """The catalog"""


class Condition(Model):
    last_transition_time: datetime = MISSING
    """Since when"""
    message: str = MISSING
    """Why, in a sentence"""
    reason: str = MISSING
    """Why, in one word"""
    status: Literal["True", "False", "Unknown"] | str = MISSING
    """Whether it holds"""
    type: Literal["Ready", "Reconciling", "Stalled"] | str = MISSING
    """What is said"""


class ConversationBlock(Model):
    action_id: str | None = None
    """action_result: the ID of its action"""
    category: str | None = None
    """action, action_result: kind of action; skill for skills"""
    data: Any | None = None
    """event: what it tells"""
    id: str | None = None
    """action: its ID"""
    input: Any | None = None
    """action: what it was given; of read_skill: skill_path and, for bundled skills, bundled_skill_id"""
    name: str | None = None
    """What is done, or what happened; read_skill for the load of a skill"""
    output: Any | None = None
    """action_result: what came out"""
    state: str | None = None
    """action_result: how it ended"""
    text: str | None = None
    """text: what is said"""
    type: Literal["text", "action", "action_result", "event"] | str = MISSING
    """Kind of the block"""


class ConversationMessage(Model):
    content: list[ConversationBlock] = []
    """The parts of the message"""
    role: Literal["user", "assistant"] | str = MISSING
    """Who speaks"""
    timestamp: datetime = MISSING
    """When it was said"""


class ConversationStep(Model):
    id: str = MISSING
    """The step's ID"""
    messages: list[ConversationMessage] = []
    """The messages, oldest first"""
    steps: list[ConversationStep] = []
    """Steps inside this one: what attempts said that were given up, when a worker was lost or handed the run back"""


class CreatedAPIKey(Model):
    created_at: datetime = MISSING
    """When it was made"""
    expires_at: datetime | None = MISSING
    """When it stops working; null for never"""
    name: str = MISSING
    """What it is for"""
    revoked_at: datetime | None = MISSING
    """When it was revoked; null if it was not"""
    role: Literal["viewer", "runner", "admin", "worker"] | str = MISSING
    """viewer reads, runner also creates and steers runs, admin may do everything, worker executes runs and has no API"""
    secret: str = MISSING
    """The key itself, shown this once"""
    uid: str = MISSING
    """Identifier"""


class DeliveryCounts(Model):
    accepted: int = MISSING
    """Accepted"""
    duplicate: int = MISSING
    """Accepted before under the same identity"""
    handshake: int = MISSING
    """Set-up probes that were answered"""
    rejected_auth: int = MISSING
    """Not authenticated"""
    rejected_invalid_json: int = MISSING
    """Not valid JSON"""
    rejected_too_large: int = MISSING
    """Over the size limit"""


class DeliveryRun(Model):
    automation_id: str = MISSING
    """The automation that it is a run of"""
    run_id: str = MISSING
    """Identifier of the run"""
    state: str = MISSING
    """Its state"""
    title: str = MISSING
    """Its title"""


class FactoryAgent(Model):
    name: str = MISSING
    """Its name"""
    type: str = MISSING
    """Its agentType"""
    uid: str = MISSING
    """Identifier, for agent_identity_uid of a run"""


class FactoryCounts(Model):
    agents: int = MISSING
    """Agents"""
    automations: int = MISSING
    """Automations, disabled ones included"""
    runners: int = MISSING
    """Runners"""
    skills: int = MISSING
    """Skills"""
    webhooks: int = MISSING
    """Webhooks, disabled ones included"""


class FactorySource(Model):
    branch: str = MISSING
    """Branch that is watched; empty unless kind is git"""
    kind: Literal["git", "dir", "managed"] | str = MISSING
    """A git branch, a directory, or the server itself"""
    path: str = MISSING
    """The directory, or the one inside the repository"""
    url: str = MISSING
    """Address of the repository, without credentials; empty unless kind is git"""


class FieldError(Model):
    field: str = MISSING
    """Path of the field"""
    message: str = MISSING
    """What is wrong with it"""


class FileContent(Model):
    content: str = MISSING
    """Its text"""
    path: str = MISSING
    """Path relative to the root of the definition"""
    revision: str = MISSING
    """The revision it is of: base_revision of an edit of it"""


class FileDifference(Model):
    action: Literal["create", "update", "delete"] | str = MISSING
    """What became of it"""
    difference: str = MISSING
    """The lines that changed, as a unified difference; empty when the answer has grown too long"""
    path: str = MISSING
    """Path relative to the root of the definition"""


class Harness(Model):
    model_id: str | None = None
    """The language model"""
    reasoning_level: str | None = None
    """How hard the model is to think"""
    type: str | None = None
    """Name of a configured harness; oz and absence mean the default"""


class HeldFile(Model):
    path: str = MISSING
    """Path relative to the root of the definition"""
    size: int = MISSING
    """Its size in bytes"""


class LeafExplanation(Model):
    expected: str = MISSING
    """The operator's value as JSON, at most 200 bytes"""
    found: str | None = None
    """The value found as JSON, at most 200 bytes"""
    operator: Literal["in", "not_in", "exists"] | str = MISSING
    """The operator"""
    passed: bool = MISSING
    """Whether the operator holds"""
    path: list[str] = []
    """The field's keys in the filter"""
    present: bool = MISSING
    """Whether the field is there"""
    where: str = MISSING
    """The place looked at in the body"""


class MCPServerConfig(Model):
    args: list[str] | None = None
    """Its arguments"""
    command: str | None = None
    """Program to start"""
    env: dict[str, str] | None = None
    """Environment variables; values are returned as ***. ${secret:NAME} is a team secret: with a key of role admin, or in a server that the applied definition has just so"""
    headers: dict[str, str] | None = None
    """HTTP headers; values are returned as ***. ${secret:NAME} is a team secret: with a key of role admin, or where the applied definition has the same server and grants it the secret"""
    url: str | None = None
    """Address of a server"""
    warp_id: str | None = None
    """Identifier of a shared server"""


class PageInfo(Model):
    has_next_page: bool = MISSING
    """Whether more follows"""
    next_cursor: str = MISSING
    """What to give as cursor for the next page; empty on the last"""


class PlanField(Model):
    name: str = MISSING
    """The key"""
    new: Any = MISSING
    """Its value then; null for none"""
    old: Any = MISSING
    """Its value now; null for none"""


class PlanSecret(Model):
    name: str = MISSING
    """Name of the secret"""
    version: int = MISSING
    """The version that would be picked up"""
    webhooks: list[str] = []
    """Names of the webhooks that would pick it up"""


class Problem(Model):
    code: str = MISSING
    """Name of the rule"""
    column: int = MISSING
    """Column, from 1, in code points"""
    end_column: int = MISSING
    """Column after the last character"""
    end_line: int = MISSING
    """Line where the place ends"""
    excerpt: str | None = None
    """The line with a caret line below it, as validate prints it, where it is known"""
    hint: str | None = None
    """What to do"""
    line: int = MISSING
    """Line, from 1"""
    message: str = MISSING
    """What is wrong"""
    path: str = MISSING
    """File, relative to the root of the tree"""
    severity: Literal["error", "warning", "info"] | str = MISSING
    """Only an error keeps a definition from being applied"""


class ReplayResponse(Model):
    delivery_id: str = MISSING
    """The new delivery"""
    replay_of: str = MISSING
    """The delivery that was started again"""
    runs: list[DeliveryRun] = []
    """The runs that were started"""


class Repository(Model):
    name: str = MISSING
    """Its name"""
    owner: str = MISSING
    """Its owner"""


class Revision(Model):
    author: str = MISSING
    """Name of the API key that made it"""
    created_at: datetime = MISSING
    """When it was made"""
    files_changed: int = MISSING
    """How many files it wrote or deleted; none for a new secret"""
    revision: str = MISSING
    """Identifier; later ones have higher numbers"""
    subject: str = MISSING
    """What it did"""


class RevisionWithDifference(Model):
    author: str = MISSING
    """Name of the API key that made it"""
    created_at: datetime = MISSING
    """When it was made"""
    files: list[FileDifference] = []
    """The files that it changed, by path"""
    files_changed: int = MISSING
    """How many files it wrote or deleted; none for a new secret"""
    revision: str = MISSING
    """Identifier; later ones have higher numbers"""
    subject: str = MISSING
    """What it did"""


class RunCreatorInfo(Model):
    display_name: str = MISSING
    """Its name"""
    type: Literal["user", "service_account"] | str = MISSING
    """What it is"""
    uid: str = MISSING
    """Its identifier"""


class RunFollowupResponse(Model):
    followup_id: str = MISSING
    """The message's ID"""
    outcome: Literal["queued_prompt", "queue_pending", "handoff_execution"] | str = MISSING
    """queued_prompt: it joined the prompt of the queued run; queue_pending: it is next when the execution ends; handoff_execution: the run had ended, and is queued again"""


RunSourceType = TypeAliasType("RunSourceType", str)
"""What made a run: API, CLI, WEB_APP, CUSTOM_WEBHOOK, SCHEDULED_AGENT, ORCHESTRATION, or another."""


RunState = TypeAliasType(
    "RunState",
    Literal[
        "PENDING", "QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"
    ]
    | str,
)
"""Where a run stands. FAILED: the agent's work failed, and the user must act; ERROR: the platform failed, and a retry may help; BLOCKED: the agent waits for input; PENDING is never produced."""


class RunStateEvent(Model):
    attempt: int = MISSING
    """Which attempt of the execution, from 1"""
    error_code: str | None = None
    """What kind of failure"""
    execution: int = MISSING
    """Which execution, from 1; a follow-up to a run that ended begins a new one"""
    message: str | None = None
    """Text for people"""
    run_id: str = MISSING
    """The run's ID"""
    state: RunState = MISSING
    """The state that it is in now"""
    timestamp: datetime = MISSING
    """When it changed"""


class RunStatusMessage(Model):
    error_code: str | None = None
    """What kind of failure"""
    message: str = MISSING
    """Text for people"""
    retryable: bool = MISSING
    """Whether the same run may succeed another time"""


class SchemaDocuments(Model):
    documents: dict[str, Any] = {}
    """The JSON Schema (2020-12) of each kind of definition file; of a Markdown file, of its front matter"""
    schema_version: str = MISSING
    """The version"""


class SchemaVersion(Model):
    schema_url: str = MISSING
    """Where its schemas are"""
    schema_version: str = MISSING
    """Its name, as in schemaVersion of factory.yaml"""


class SchemaVersions(Model):
    current_version: str = MISSING
    """The version to write"""
    versions: list[SchemaVersion] = []
    """All versions"""


class Secret(Model):
    created_at: datetime = MISSING
    """When it was created"""
    name: str = MISSING
    """Name, as in secretName of a webhook"""
    pending: bool = MISSING
    """Its value is yet to come: every request to its webhooks is refused with 401"""
    reserved: bool = MISSING
    """A source uses it, so that no definition may name it"""
    updated_at: datetime = MISSING
    """When it was last given a value"""
    used_by: list[str] = []
    """What uses it, in words: webhooks, agents and automations that give it to runs, sources. A secret in use cannot be deleted"""
    version: int = MISSING
    """Counts the values it has had; webhooks use the one that was current when their definition last applied"""
    warnings: list[str] | None = None
    """In the answer to a new value: webhooks that cannot use it"""
    webhooks: list[str] = []
    """UIDs of the webhooks that use it"""


class SelectedWebhook(Model):
    name: str = MISSING
    """Its name; empty when there is none of that UID"""
    state: Literal["enabled", "disabled", "deleted", "unknown"] | str = MISSING
    """Whether deliveries to it start the automation"""
    uid: str = MISSING
    """UID, as the automation writes it"""


class SyncCounts(Model):
    created: int = MISSING
    """Resources created"""
    deleted: int = MISSING
    """Resources deleted"""
    secrets: int = MISSING
    """Webhooks that picked up a new value of their secret"""
    unchanged: int = MISSING
    """Resources left alone"""
    updated: int = MISSING
    """Resources updated"""


class ValidateFilesResponse(Model):
    diagnostics: list[Problem] = []
    """What was found, by file and place"""
    diagnostics_omitted: int | None = None
    """How many more there are"""
    schema_version: str = MISSING
    """The version of the rules"""
    state_dependent_checks_not_run: list[str] = []
    """The rules that were not checked, because they need a server's state"""
    valid: bool = MISSING
    """Whether no diagnostic is an error"""


class Webhook(Model):
    auth_mode: Literal["token", "url_token", "signature"] | str = MISSING
    """How senders show who they are"""
    counts: DeliveryCounts = MISSING
    """How many requests of each outcome its log holds"""
    created_at: datetime = MISSING
    """When it was first applied"""
    deleted_at: datetime | None = MISSING
    """When it was deleted; null while it lives"""
    delivery_id_header: str = MISSING
    """Header in which the sender puts its own event ID, or empty"""
    enabled: bool = MISSING
    """Whether it takes deliveries; if not, senders get 404"""
    file: str = MISSING
    """The definition file, relative to the root of the definition"""
    handshake: bool = MISSING
    """Whether the provider's set-up probes are answered"""
    ingress_url: str = MISSING
    """Where senders post to, {token} in place of a URL token"""
    line: int = MISSING
    """The line of the file on which its first key stands, from 1"""
    name: str = MISSING
    """Its name: that of its file"""
    secret_name: str = MISSING
    """The team secret that holds the credential"""
    secret_pending: bool = MISSING
    """Whether the secret has no value yet, so that every request is refused with 401"""
    secret_stale: bool = MISSING
    """Whether a newer value of the secret waits for the next apply"""
    secret_version: int = MISSING
    """The version of the secret that is in use; 0 when the webhook is deleted"""
    signature_scheme: str = MISSING
    """The provider's signing scheme, as the file writes it; empty unless auth_mode is signature"""
    uid: str = MISSING
    """Identifier, part of the ingress URL"""
    updated_at: datetime = MISSING
    """When it last changed"""


class WebhookWithSecret(Model):
    auth_mode: Literal["token", "url_token", "signature"] | str = MISSING
    """How senders show who they are"""
    counts: DeliveryCounts = MISSING
    """How many requests of each outcome its log holds"""
    created_at: datetime = MISSING
    """When it was first applied"""
    deleted_at: datetime | None = MISSING
    """When it was deleted; null while it lives"""
    delivery_id_header: str = MISSING
    """Header in which the sender puts its own event ID, or empty"""
    enabled: bool = MISSING
    """Whether it takes deliveries; if not, senders get 404"""
    file: str = MISSING
    """The definition file, relative to the root of the definition"""
    handshake: bool = MISSING
    """Whether the provider's set-up probes are answered"""
    ingress_url: str = MISSING
    """Where senders post to, {token} in place of a URL token"""
    line: int = MISSING
    """The line of the file on which its first key stands, from 1"""
    name: str = MISSING
    """Its name: that of its file"""
    secret: str | None = None
    """The secret, shown this once, as a URL token is in ingress_url; absent when it was there before or is yet to come"""
    secret_name: str = MISSING
    """The team secret that holds the credential"""
    secret_pending: bool = MISSING
    """Whether the secret has no value yet, so that every request is refused with 401"""
    secret_stale: bool = MISSING
    """Whether a newer value of the secret waits for the next apply"""
    secret_version: int = MISSING
    """The version of the secret that is in use; 0 when the webhook is deleted"""
    signature_scheme: str = MISSING
    """The provider's signing scheme, as the file writes it; empty unless auth_mode is signature"""
    uid: str = MISSING
    """Identifier, part of the ingress URL"""
    updated_at: datetime = MISSING
    """When it last changed"""


class Worker(Model):
    busy: int = MISSING
    """How many it executes now"""
    harnesses: list[str] = []
    """The harnesses that it has"""
    key_uid: str = MISSING
    """UID of the API key that it works with; empty for the worker in a server's own process"""
    last_seen_at: datetime = MISSING
    """When it last reported; it does so every 10 seconds"""
    live: bool = MISSING
    """Whether it reported within the last 30 seconds"""
    name: str = MISSING
    """Its name: that of its host unless it was given another"""
    runs: list[str] = []
    """IDs of the runs that it executes"""
    slots: int = MISSING
    """How many runs it executes at once"""
    uid: str = MISSING
    """Identifier of the process"""
    version: str = MISSING
    """The version of the program that it runs"""


class AmbientAgentConfig(Model):
    base_prompt: str | None = None
    """Shapes the agent's behaviour"""
    environment_id: str | None = None
    """The environment"""
    harness: Harness | None = None
    """What executes the run"""
    idle_timeout_minutes: int | None = None
    """How long a session may be idle"""
    mcp_servers: dict[str, MCPServerConfig] | None = None
    """Tools through MCP, by name"""
    model_id: str | None = None
    """The language model"""
    name: str | None = None
    """Label for grouping and filtering; the skill's name when a run is started from a skill"""
    runner_id: str | None = None
    """The runner"""
    skill_spec: str | None = None
    """Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md"""
    worker_host: str | None = None
    """Where to execute"""


class Automation(Model):
    agent: str = MISSING
    """The agent it names, or empty"""
    enabled: bool = MISSING
    """Whether it may start runs"""
    file: str = MISSING
    """The definition file, relative to the root of the definition"""
    fires: bool = MISSING
    """Whether anything can start it just now"""
    line: int = MISSING
    """The line of the file on which its first key stands, from 1"""
    name: str = MISSING
    """Its name: that of its directory"""
    triggers: list[AutomationTrigger] = []
    """What starts it"""
    uid: str = MISSING
    """Identifier"""
    webhooks: list[SelectedWebhook] = []
    """The webhooks that its triggers select"""
    why_not: list[str] = []
    """Why it does not fire, or not for all that it selects; empty when there is nothing to say"""


class Conversation(Model):
    conversation_id: str = MISSING
    """The conversation's ID"""
    steps: list[ConversationStep] = []
    """What was said, a step for each execution of a run"""


class Delivery(Model):
    count: int = MISSING
    """How many requests share this row; above 1 only in a flood of rejected ones"""
    delivery_id: str = MISSING
    """Identifier"""
    duplicate_of: str | None = None
    """Of a duplicate: the delivery that was accepted first"""
    event: str | None = None
    """The provider's name of the event, escaped, at most 128 characters"""
    identity: str = MISSING
    """What tells it apart from others, escaped, at most 128 characters; empty unless the request got that far"""
    identity_source: Literal["", "header", "provider", "service_header", "body_hash"] | str = MISSING
    """Where the identity comes from; empty if there is none"""
    label: str = MISSING
    """The outcome, for people to read"""
    last_received_at: datetime | None = None
    """When the last one came, where count is above 1"""
    outcome: (
        Literal[
            "accepted",
            "duplicate",
            "rejected_auth",
            "rejected_invalid_json",
            "rejected_too_large",
            "handshake",
        ]
        | str
    ) = MISSING
    """What became of it"""
    reason: str = MISSING
    """The precise cause; may be empty"""
    received_at: datetime = MISSING
    """When it came, or the first of count"""
    replay_of: str | None = None
    """Of a replay: the delivery that was started again"""
    runs: list[DeliveryRun] = []
    """The runs that it started, oldest first"""
    sender: str = MISSING
    """Address of the sender, or its IPv6 network"""
    size_bytes: int | None = MISSING
    """Size of the body; null where it is not known, the smallest where count is above 1"""
    size_bytes_max: int | None = None
    """The largest size, where count is above 1"""


class Error(Model):
    code: str = MISSING
    """What kind of error"""
    detail: str | None = None
    """What exactly was wrong"""
    error: str = MISSING
    """Title, or title (detail)"""
    errors: list[FieldError] | None = None
    """The fields that were wrong"""
    instance: str | None = None
    """Path of the request"""
    retryable: bool = MISSING
    """Whether the same request may succeed later"""
    status: int = MISSING
    """HTTP status"""
    title: str = MISSING
    """Short text for the code"""
    trace_id: str | None = None
    """ID of the request, also in the X-Request-Id header"""
    type: str = MISSING
    """URI reference that ends in the code"""


class Explanation(Model):
    leaves: list[LeafExplanation] = []
    """Every operator of every field, in the order of the filter"""
    matched: bool = MISSING
    """Whether the filter matches"""
    reason: str | None = None
    """Why, where the filter as a whole decides: there is none, it is empty, or the body is no object"""


class FactoryRunResponse(Model):
    factory_uid: str = MISSING
    """The factory"""
    foreman_agent: str = MISSING
    """Name of the agent that does it; empty when the definition has no foreman"""
    run_id: str = MISSING
    """The run's ID"""
    run_url: str = MISSING
    """The run's page on the dashboard"""
    state: RunState = MISSING
    """Where the run stands"""
    ticket_ref: str = MISSING
    """As given"""


class FactorySync(Model):
    applied_revision: str = MISSING
    """The revision that serves; empty before the first"""
    attempted_revision: str = MISSING
    """The revision last looked at; empty before the first"""
    last_applied_at: datetime | None = MISSING
    """When a revision was last applied"""
    last_attempted_at: datetime | None = MISSING
    """When the last attempt ended"""
    message: str = MISSING
    """Why the last attempt was refused or failed, in one line; else empty"""
    problems: list[Problem] = []
    """What the last attempt found in the definition"""
    state: Literal["pending", "applied", "refused", "failed"] | str = MISSING
    """What became of the last attempt to apply; refused and failed leave the last applied definition in place"""


class FilterTestResponse(Model):
    explanation: Explanation = MISSING
    """How the filter fares on the payload, leaf by leaf"""
    payload_check: bool = MISSING
    """Whether the payload matches the filter"""
    webhook_check: bool = MISSING
    """Whether the delivery's webhook is among those selected or, without a delivery, whether any of them is enabled"""
    webhook_reason: str = MISSING
    """Why the webhook check came out as it did"""
    would_trigger: bool = MISSING
    """Whether both checks pass"""


class ListAPIKeysResponse(Model):
    keys: list[APIKey] = []
    """The keys, newest first, revoked ones included"""
    page_info: PageInfo = MISSING
    """Whether the list goes on"""


class ListAutomationsResponse(Model):
    automations: list[Automation] = []
    """The automations, by name"""
    page_info: PageInfo = MISSING
    """Whether the list goes on"""


class ListDeliveriesResponse(Model):
    deliveries: list[Delivery] = []
    """The deliveries, newest first"""
    page_info: PageInfo = MISSING
    """Whether the list goes on"""


class ListFilesResponse(Model):
    files: list[HeldFile] = []
    """The files, by path"""
    page_info: PageInfo = MISSING
    """Whether the list goes on"""
    revision: str = MISSING
    """The revision they are of"""


class ListRevisionsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether the list goes on"""
    revisions: list[Revision] = []
    """The revisions, newest first"""


class ListSecretsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether the list goes on"""
    secrets: list[Secret] = []
    """The secrets, by name"""


class ListWebhooksResponse(Model):
    page_info: PageInfo = MISSING
    """Whether the list goes on"""
    webhooks: list[Webhook] = []
    """The webhooks, by name"""


class ListWorkersResponse(Model):
    page_info: PageInfo = MISSING
    """Whether the list goes on"""
    workers: list[Worker] = []
    """The workers seen within a day, by UID"""


class PlanChange(Model):
    action: Literal["create", "update", "delete", "unchanged"] | str = MISSING
    """What becomes of it"""
    fields: list[PlanField] = []
    """Of an update: the keys that change"""
    file: str = MISSING
    """The file that declares it"""
    kind: Literal["factory", "webhook", "automation", "agent", "runner", "skill"] | str = MISSING
    """Kind of the resource"""
    line: int = MISSING
    """The line of the file on which its first key stands, from 1"""
    name: str = MISSING
    """Its name; of a skill of one agent: agent/skill"""
    uid: str | None = None
    """The UID that it has or, a webhook, will get"""


class RunAgentResponse(Model):
    run_id: str = MISSING
    """The run's ID"""
    state: RunState = MISSING
    """Where the run stands"""
    task_id: str = MISSING
    """The same as run_id"""


class RunItem(Model):
    advertised_skills: list[AdvertisedSkill] = []
    """What the agent said it has"""
    agent_config: AmbientAgentConfig = MISSING
    """The resolved configuration"""
    attachments: list[AttachmentInfo] = []
    """The files that the agent gets"""
    cancel_requested_at: datetime | None = None
    """When the end of the run was asked for"""
    conversation_id: str = MISSING
    """The conversation that the run belongs to"""
    created_at: datetime = MISSING
    """When the run was made"""
    creator: RunCreatorInfo = MISSING
    """Who made the run"""
    executor: RunCreatorInfo | None = None
    """The worker that executes it, or did"""
    factory_uid: str | None = None
    """The factory that the run belongs to"""
    finished_at: datetime | None = MISSING
    """When it ended"""
    is_run_type_cancellable: bool = MISSING
    """Whether runs of this kind can be cancelled"""
    metadata: dict[str, str] = {}
    """What the creator attached; of a run that a delivery started also automation_id, webhook_id and delivery_id"""
    parent_run_id: str | None = None
    """The run that started this one"""
    prompt: str = MISSING
    """Text that the agent executes"""
    root_run_id: str = MISSING
    """The first of the runs that led to this one; itself when it has no parent"""
    run_id: str = MISSING
    """The run's ID"""
    run_time: str | None = None
    """How long it has run, or ran, as an ISO 8601 duration"""
    session_id: str = MISSING
    """Identifier of the session"""
    session_link: str = MISSING
    """The run's page on the dashboard"""
    source: RunSourceType = MISSING
    """What made the run"""
    started_at: datetime | None = MISSING
    """When its execution began"""
    state: RunState = MISSING
    """Where the run stands. FAILED: the agent's work failed; ERROR: the platform failed; BLOCKED: the agent waits for input"""
    status_message: RunStatusMessage | None = None
    """What to know about the state"""
    submitted_prompt: str | None = None
    """The full text given to the agent, envelope included; not in lists"""
    task_id: str = MISSING
    """The same as run_id"""
    title: str = MISSING
    """Text for people"""
    trigger_url: str | None = None
    """What started the run"""
    updated_at: datetime = MISSING
    """When it last changed"""


class Sync(Model):
    author: str = MISSING
    """Author of the commit, or name of the API key that made the edit, where there is one"""
    committed_at: datetime | None = MISSING
    """Time of the commit or edit, where there is one"""
    counts: SyncCounts = MISSING
    """How many resources it changed"""
    finished_at: datetime = MISSING
    """When it ended"""
    message: str = MISSING
    """Why it was refused or failed, in one line; else empty"""
    outcome: Literal["applied", "refused", "unchanged", "failed"] | str = MISSING
    """What became of it: refused for errors in the definition, failed because the source could not be read"""
    problems: list[Problem] = []
    """What it found in the definition"""
    revision: str = MISSING
    """A git commit, sha256:… of the content, or r12 of one that the server holds; empty if the source could not be read"""
    source: FactorySource = MISSING
    """Where the definition came from"""
    started_at: datetime = MISSING
    """When it began"""
    subject: str = MISSING
    """First line of the commit message, or what the edit did, where there is one"""


class AutomationVerdict(Model):
    automation_id: str = MISSING
    """The automation"""
    explanation: Explanation | None = None
    """How its payload filter fares; of several triggers the first that matches"""
    name: str = MISSING
    """Its name"""
    verdict: Literal["matched", "not_matched", "disabled", "unknown"] | str = MISSING
    """Whether it starts a run for the payload; unknown when the payload is not kept"""


class DeliveryDetail(Model):
    automations: list[AutomationVerdict] = []
    """What each automation that selects the webhook makes of the payload, worked out anew"""
    count: int = MISSING
    """How many requests share this row; above 1 only in a flood of rejected ones"""
    definition_changed: bool = MISSING
    """Whether the definition has changed since the delivery, so that the verdicts may differ from those of then"""
    delivery_id: str = MISSING
    """Identifier"""
    duplicate_of: str | None = None
    """Of a duplicate: the delivery that was accepted first"""
    event: str | None = None
    """The provider's name of the event, escaped, at most 128 characters"""
    identity: str = MISSING
    """What tells it apart from others, escaped, at most 128 characters; empty unless the request got that far"""
    identity_source: Literal["", "header", "provider", "service_header", "body_hash"] | str = MISSING
    """Where the identity comes from; empty if there is none"""
    label: str = MISSING
    """The outcome, for people to read"""
    last_received_at: datetime | None = None
    """When the last one came, where count is above 1"""
    outcome: (
        Literal[
            "accepted",
            "duplicate",
            "rejected_auth",
            "rejected_invalid_json",
            "rejected_too_large",
            "handshake",
        ]
        | str
    ) = MISSING
    """What became of it"""
    payload: Any | None = None
    """The body, of an accepted delivery, for as long as it is kept"""
    reason: str = MISSING
    """The precise cause; may be empty"""
    received_at: datetime = MISSING
    """When it came, or the first of count"""
    replay_of: str | None = None
    """Of a replay: the delivery that was started again"""
    runs: list[DeliveryRun] = []
    """The runs that it started, oldest first"""
    sender: str = MISSING
    """Address of the sender, or its IPv6 network"""
    size_bytes: int | None = MISSING
    """Size of the body; null where it is not known, the smallest where count is above 1"""
    size_bytes_max: int | None = None
    """The largest size, where count is above 1"""


class Factory(Model):
    agents: list[FactoryAgent] = []
    """The agents of the applied definition, by name"""
    alias: str = MISSING
    """alias of factory.yaml, or empty"""
    conditions: list[Condition] = []
    """Where it stands, as Ready, Reconciling and Stalled"""
    counts: FactoryCounts = MISSING
    """How many resources the applied definition has"""
    created_at: datetime = MISSING
    """When it was first configured"""
    description: str = MISSING
    """description of factory.yaml, or empty"""
    detached: bool = MISSING
    """Whether it is no longer configured: its webhooks answer 404"""
    display_name: str | None = None
    """name of factory.yaml, which is for display only"""
    name: str = MISSING
    """Its identity: the name in the server's settings"""
    repositories: list[Repository] = []
    """repositories of factory.yaml"""
    source: FactorySource = MISSING
    """Where its definition comes from"""
    suspended: bool = MISSING
    """Whether its settings suspend it: it is applied only when asked"""
    sync: FactorySync = MISSING
    """Where its definition stands"""
    uid: str = MISSING
    """Identifier"""
    updated_at: datetime = MISSING
    """When its settings or its factory.yaml last changed"""


class ListFactoriesResponse(Model):
    factories: list[Factory] = []
    """The factories, by name"""
    page_info: PageInfo = MISSING
    """Whether the list goes on"""


class ListRunsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there are more"""
    runs: list[RunItem] = []
    """The runs"""


class ListSyncsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether the list goes on"""
    syncs: list[Sync] = []
    """The attempts, newest first"""


class Plan(Model):
    base_revision: str = MISSING
    """The revision that is applied now; empty before the first"""
    changes: list[PlanChange] = []
    """What becomes of every resource, by kind and name; none when the tree has errors"""
    head_revision: str = MISSING
    """The revision that was planned; empty for files that came with the request"""
    problems: list[Problem] = []
    """What is wrong with the tree, by file and place"""
    secrets: list[PlanSecret] = []
    """The secrets whose newer value would be picked up, by name"""
    state_dependent_checks_not_run: list[str] | None = None
    """The rules that were not checked"""
    webhook_uids: dict[str, str] | None = None
    """The UID that each webhook of the tree has or will get, by name"""
    would_apply: bool = MISSING
    """Whether applying the tree would be accepted"""


ConversationStep.model_rebuild()
