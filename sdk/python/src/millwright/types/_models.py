"""Made by scripts/generate from api/openapi.yaml: do not edit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypeAliasType

from .._model import MISSING, Model


class APIKey(Model):
    created_at: datetime = MISSING
    """Time of creation"""
    expires_at: datetime | None = MISSING
    """Time of expiry; null if the key does not expire"""
    factories: list[str] | None = None
    """UIDs of the factories that the key is limited to; absent: it is not limited"""
    kind: Literal["key", "person"] | str = MISSING
    """person: somebody who signs in to the dashboard by auth.login"""
    name: str = MISSING
    """Purpose of the key; for a person, the person's name"""
    revoked_at: datetime | None = MISSING
    """Time of revocation; null for a valid key"""
    role: Literal["planner", "viewer", "runner", "admin", "worker"] | str = MISSING
    """planner plans; viewer also reads; runner also creates and steers runs; admin may do everything; worker executes runs and cannot use the API"""
    uid: str = MISSING
    """Identifier"""


class AdvertisedSkill(Model):
    bundled_skill_id: str | None = None
    """ID of a skill that comes with the service"""
    name: str = MISSING
    """Name of the skill"""
    skill_path: str | None = None
    """Path of the skill"""


class AgentSkillSource(Model):
    name: str = MISSING
    """Name of the repository; of a definition outside a repository that of the factory"""
    owner: str = MISSING
    """Owner of the repository; of a definition outside a repository: factory"""
    skill_path: str = MISSING
    """Path of the file in it"""


class AgentSkillVariant(Model):
    base_prompt: str = MISSING
    """The text of the skill"""
    description: str = MISSING
    """description of the skill"""
    environments: list[str] = []
    """Always empty"""
    id: str = MISSING
    """Value of skill_spec that names the skill"""
    source: AgentSkillSource = MISSING
    """Where it comes from"""


class AppliedRevision(Model):
    applied_at: datetime = MISSING
    """Time of the last apply of the revision from the source"""
    author: str = MISSING
    """Author of the revision"""
    replaced_at: datetime | None = MISSING
    """Time at which another revision took its place; null for the one in force"""
    revision: str = MISSING
    """Identifier of the revision"""
    subject: str = MISSING
    """First line of the commit message, or summary of the edit"""


class ArtifactData(Model):
    artifact_uid: str = MISSING
    """Identifier of the artifact"""
    branch: str | None = None
    """PULL_REQUEST: its branch"""
    content_type: str | None = None
    """FILE, SCREENSHOT: media type"""
    download_url: str | None = None
    """FILE, SCREENSHOT: address of the content. It needs an API key, too"""
    expires_at: datetime | None = None
    """FILE, SCREENSHOT: time after which to ask for download_url again"""
    filename: str | None = None
    """FILE, SCREENSHOT: last element of filepath"""
    filepath: str | None = None
    """FILE, SCREENSHOT: path below .millwright/artifacts. Changes are named changes.patch and changes.bundle, below the repository's name when the run has several"""
    mime_type: str | None = None
    """FILE, SCREENSHOT: media type"""
    reference_type: str | None = None
    """EXTERNAL_REFERENCE: kind of reference"""
    repository: str | None = None
    """FILE with changes, PULL_REQUEST: the repository, as owner/name"""
    sha256: str | None = None
    """FILE, SCREENSHOT: SHA-256 of the content, in hexadecimal"""
    size_bytes: int | None = None
    """FILE, SCREENSHOT: size"""
    status: str | None = None
    """PULL_REQUEST: open, closed or merged, when the server last looked"""
    title: str | None = None
    """EXTERNAL_REFERENCE: text for people"""
    url: str | None = None
    """PULL_REQUEST, EXTERNAL_REFERENCE: address"""


class ArtifactItemData(Model):
    artifact_uid: str = MISSING
    """Identifier of the artifact"""
    branch: str | None = None
    """PULL_REQUEST: its branch"""
    filename: str | None = None
    """FILE, SCREENSHOT: last element of filepath"""
    filepath: str | None = None
    """FILE, SCREENSHOT: path below .millwright/artifacts. Changes are named changes.patch and changes.bundle, below the repository's name when the run has several"""
    mime_type: str | None = None
    """FILE, SCREENSHOT: media type"""
    reference_type: str | None = None
    """EXTERNAL_REFERENCE: kind of reference"""
    repository: str | None = None
    """FILE with changes, PULL_REQUEST: the repository, as owner/name"""
    size_bytes: int | None = None
    """FILE, SCREENSHOT: size"""
    status: str | None = None
    """PULL_REQUEST: open, closed or merged, when the server last looked"""
    title: str | None = None
    """EXTERNAL_REFERENCE: text for people"""
    url: str | None = None
    """PULL_REQUEST, EXTERNAL_REFERENCE: address"""


ArtifactType = TypeAliasType(
    "ArtifactType", Literal["FILE", "SCREENSHOT", "PLAN", "PULL_REQUEST", "EXTERNAL_REFERENCE"] | str
)
"""Type of an artifact. SCREENSHOT: a file that is a PNG, JPEG, WebP or GIF image, by its content; FILE: any other file, changes included; PLAN is never produced."""


class AttachmentInfo(Model):
    file_name: str = MISSING
    """Name of the file"""
    mime_type: str = MISSING
    """Its media type"""
    size_bytes: int = MISSING
    """Its size"""


class AuditEntry(Model):
    action: str = MISSING
    """Kind of the change"""
    actor: str = MISSING
    """Name of the API key, author of the revision, or server"""
    actor_kind: str = MISSING
    """key or session (of the dashboard), server, source (a revision, whose author is not verified), console (a command on the server's machine), or another way to sign in"""
    actor_uid: str = MISSING
    """UID of the API key; empty for others"""
    at: datetime = MISSING
    """Time of the change"""
    detail: str = MISSING
    """Further facts, without secrets"""
    factory_uid: str = MISSING
    """UID of the changed factory; empty for changes of the server"""
    source: str = MISSING
    """Address of the client; empty for a change that no request asked for"""
    subject: str = MISSING
    """UID or name of what changed"""
    uid: str = MISSING
    """Identifier"""


class AutoMemory(Model):
    enabled: bool = MISSING
    """Always false"""


class AutomationTrigger(Model):
    cron: str | None = None
    """Schedule triggers: the cron expression, in UTC"""
    event: str = MISSING
    """Name of the event"""
    filter: Any | None = None
    """Other triggers: the filter"""
    headers: Any | None = None
    """Webhook triggers: the filter of headers"""
    payload: Any | None = None
    """Webhook triggers: the payload filter"""
    provider: str = MISSING
    """Provider of the event"""
    supported: bool = MISSING
    """Whether this server supports the trigger"""
    webhook_ids: list[str] | None = None
    """Webhook triggers: UIDs of the selected webhooks"""


class BacktestExamples(Model):
    newly: list[str] = []
    """Deliveries that only the changed triggers match, newest first; at most 1000"""
    no_longer: list[str] = []
    """Deliveries that only the present triggers match, newest first; at most 1000"""


class BacktestNever(Model):
    count: int = MISSING
    """How often it failed"""
    key: str = MISSING
    """The key of the filter that failed most often"""
    seen: list[str] = []
    """Values that deliveries have there, as JSON; at most 5"""


class BundledSkill(Model):
    id: str = MISSING
    """The skill's ID: input.bundled_skill_id of read_skill actions"""
    purpose: str = MISSING
    """Purpose"""


class BundledSkills(Model):
    note: str = MISSING
    """Purpose of the catalog"""
    skills: list[BundledSkill] = []
    """The catalog"""


class Condition(Model):
    last_transition_time: datetime = MISSING
    """Time of the last change"""
    message: str = MISSING
    """The reason, as a sentence"""
    reason: str = MISSING
    """The reason, as one word"""
    status: Literal["True", "False", "Unknown"] | str = MISSING
    """Whether the condition holds"""
    type: Literal["Ready", "Reconciling", "Stalled"] | str = MISSING
    """Kind of condition. Ready: the newest revision is applied, and each automation can fire. Reconciling: it is not applied yet, and the server keeps trying. Stalled: it is not applied until somebody acts"""


class ConversationBlock(Model):
    action_id: str | None = None
    """action_result: the ID of its action"""
    category: str | None = None
    """action, action_result: kind of action. Presets write command, files, search, integration and skill"""
    data: Any | None = None
    """event: its data"""
    id: str | None = None
    """action: its ID"""
    input: Any | None = None
    """action: the input; for read_skill: skill_path and, for bundled skills, bundled_skill_id"""
    name: str | None = None
    """Name of the action or event; read_skill if a skill was loaded"""
    output: Any | None = None
    """action_result: the output"""
    state: str | None = None
    """action_result: the end state. Presets write completed, failed and denied"""
    text: str | None = None
    """text: the text"""
    type: Literal["text", "action", "action_result", "event"] | str = MISSING
    """Kind of the block"""


class ConversationFollowupResponse(Model):
    followup_id: str = MISSING
    """The message's ID"""
    outcome: Literal["queued_prompt", "queue_pending", "handoff_execution", "live_session"] | str = MISSING
    """queued_prompt: the message joined the prompt of the queued run. queue_pending: it follows when the execution ends. handoff_execution: the run had ended, and is queued again. live_session: the agent's living session gets it when its present turn ends"""
    run_id: str = MISSING
    """The newest run of the conversation, which got the message"""


class ConversationMessage(Model):
    content: list[ConversationBlock] = []
    """The parts of the message"""
    role: Literal["user", "assistant"] | str = MISSING
    """Author of the message"""
    timestamp: datetime = MISSING
    """Time of the message"""


class ConversationStep(Model):
    id: str = MISSING
    """The step's ID"""
    messages: list[ConversationMessage] = []
    """The messages, oldest first"""
    steps: list[ConversationStep] = []
    """Nested steps: output of earlier attempts, whose worker was lost or returned the run"""


class CreatedAPIKey(Model):
    created_at: datetime = MISSING
    """Time of creation"""
    expires_at: datetime | None = MISSING
    """Time of expiry; null if the key does not expire"""
    factories: list[str] | None = None
    """UIDs of the factories that the key is limited to; absent: it is not limited"""
    kind: Literal["key", "person"] | str = MISSING
    """person: somebody who signs in to the dashboard by auth.login"""
    name: str = MISSING
    """Purpose of the key; for a person, the person's name"""
    revoked_at: datetime | None = MISSING
    """Time of revocation; null for a valid key"""
    role: Literal["planner", "viewer", "runner", "admin", "worker"] | str = MISSING
    """planner plans; viewer also reads; runner also creates and steers runs; admin may do everything; worker executes runs and cannot use the API"""
    secret: str = MISSING
    """The key; no other answer contains it"""
    uid: str = MISSING
    """Identifier"""


class DeferredResolution(Model):
    field: str = MISSING
    """Key"""
    kind: str = MISSING
    """Kind of the named resource"""
    path: str = MISSING
    """File"""


class DeliveryAnswer(Model):
    code: str = MISSING
    """The error in the body of a refusal, or the outcome of a success"""
    status: int = MISSING
    """HTTP status"""


class DeliveryCounts(Model):
    accepted: int = MISSING
    """Accepted"""
    duplicate: int = MISSING
    """Duplicates of accepted deliveries"""
    handshake: int = MISSING
    """Answered set-up probes"""
    rejected_auth: int = MISSING
    """Failed authentications"""
    rejected_invalid_json: int = MISSING
    """Invalid JSON"""
    rejected_too_large: int = MISSING
    """Too large"""


class DeliveryRun(Model):
    automation_id: str = MISSING
    """Automation that started the run"""
    run_id: str = MISSING
    """Identifier of the run"""
    state: str = MISSING
    """State"""
    title: str = MISSING
    """Title"""
    waits_for: Literal["concurrency", "debounce", "retry", "budget"] | str | None = None
    """What keeps a queued run from workers"""


class DroppedRuns(Model):
    run_ids: list[str] = []
    """Identifiers of the runs"""


class EnvironmentRepository(Model):
    owner: str = MISSING
    """The account or organisation"""
    repo: str = MISSING
    """The name of the repository"""


class Event(Model):
    attempts: int = MISSING
    """Number of attempts"""
    created_at: datetime = MISSING
    """When it happened"""
    event_uid: str = MISSING
    """Identifier, which the receiver gets as webhook-id"""
    next_attempt_at: datetime | None = None
    """Time of the next attempt; only for a pending event"""
    notification: str = MISSING
    """Name of the notification"""
    reason: str | None = None
    """Why it waits, is dead or was dropped"""
    run_id: str | None = None
    """The run that it is about"""
    state: Literal["pending", "sent", "dead", "dropped"] | str = MISSING
    """pending: it waits for its next attempt. sent: the receiver answered 2xx. dead: it was given up. dropped: its notification was deleted or disabled"""
    type: str = MISSING
    """What happened"""
    updated_at: datetime = MISSING
    """Time of the last change"""


class EventAttempt(Model):
    answer: str | None = None
    """The first 1 KiB of the answer, for keys of role admin"""
    at: datetime = MISSING
    """When it began"""
    duration_millis: int = MISSING
    """How long it took"""
    error: str | None = None
    """Why it failed"""
    number: int = MISSING
    """From 1"""
    status: int | None = None
    """Status of the answer; absent without one"""


class EventDetail(Model):
    attempt_list: list[EventAttempt] = []
    """The last 10 attempts, oldest first"""
    attempts: int = MISSING
    """Number of attempts"""
    created_at: datetime = MISSING
    """When it happened"""
    data: Any = MISSING
    """What it tells, without links"""
    event_uid: str = MISSING
    """Identifier, which the receiver gets as webhook-id"""
    next_attempt_at: datetime | None = None
    """Time of the next attempt; only for a pending event"""
    notification: str = MISSING
    """Name of the notification"""
    reason: str | None = None
    """Why it waits, is dead or was dropped"""
    run_id: str | None = None
    """The run that it is about"""
    state: Literal["pending", "sent", "dead", "dropped"] | str = MISSING
    """pending: it waits for its next attempt. sent: the receiver answered 2xx. dead: it was given up. dropped: its notification was deleted or disabled"""
    type: str = MISSING
    """What happened"""
    updated_at: datetime = MISSING
    """Time of the last change"""


class FactoryAgent(Model):
    name: str = MISSING
    """Name"""
    type: str = MISSING
    """agentType of the agent"""
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


class FactoryHarness(Model):
    model_id: str | None = None
    """The language model"""
    reasoning_level: str | None = None
    """How hard the model is to think"""
    type: str = MISSING
    """Name of a configured harness"""


class FactoryIntegration(Model):
    type: str = MISSING
    """Its kind"""


class FactoryRollback(Model):
    at: datetime = MISSING
    """Time of the rollback"""
    by: str = MISSING
    """Name of the API key that rolled back"""


class FactorySecret(Model):
    name: str = MISSING
    """Name of the secret"""


class FactorySource(Model):
    branch: str = MISSING
    """The watched branch; empty unless kind is git"""
    kind: Literal["git", "dir", "managed"] | str = MISSING
    """A git branch, a directory, or the server itself"""
    path: str = MISSING
    """The directory, or the path in the repository"""
    url: str = MISSING
    """Address of the repository, without credentials; empty unless kind is git"""


class FieldError(Model):
    field: str = MISSING
    """Path of the field"""
    message: str = MISSING
    """The problem"""


class FileContent(Model):
    content: str = MISSING
    """Text of the file"""
    path: str = MISSING
    """Path relative to the root of the definition"""
    revision: str = MISSING
    """Revision of the file: base_revision for an edit"""


class FileDifference(Model):
    action: Literal["create", "update", "delete"] | str = MISSING
    """Kind of change"""
    difference: str = MISSING
    """The changed lines, as a unified diff; empty if the answer would be too long"""
    path: str = MISSING
    """Path relative to the root of the definition"""


class FlowDecision(Model):
    automation_id: str = MISSING
    """The automation"""
    decision: (
        Literal[
            "skipped: concurrency",
            "skipped: queue full",
            "skipped: forge",
            "skipped: trigger",
            "skipped: newer",
            "waits: forge",
            "debounced",
            "follow-up",
        ]
        | str
    ) = MISSING
    """skipped: nothing started. waits: the forge's answer decides. debounced: it is one of the deliveries of a run. follow-up: it is a message to a run"""
    detail: str | None = None
    """Why, in words"""
    run_id: str | None = None
    """The run that the delivery went to"""


class FlowRun(Model):
    created_at: datetime = MISSING
    """Time of creation"""
    delivery_id: str | None = None
    """The newest delivery"""
    run_id: str = MISSING
    """Identifier of the run"""
    starts_at: datetime | None = None
    """When a run that waits for a time is ready"""
    state: str = MISSING
    """State"""
    title: str = MISSING
    """Title"""
    waits_for: Literal["concurrency", "debounce", "retry"] | str | None = None
    """What keeps a queued run from workers"""


class Harness(Model):
    model_id: str | None = None
    """The language model"""
    reasoning_level: str | None = None
    """Effort of the model"""
    type: str | None = None
    """Name of a configured harness; oz and absence mean the default"""


class HeldFile(Model):
    path: str = MISSING
    """Path relative to the root of the definition"""
    size: int = MISSING
    """Its size in bytes"""


class LanguageModel(Model):
    display_name: str = MISSING
    """The same as the identifier"""
    id: str = MISSING
    """Its identifier: model_id of a run"""
    provider: Literal["ANTHROPIC", "GOOGLE", "OPENAI", "UNKNOWN"] | str = MISSING
    """Its provider, judged by its identifier"""
    vision_supported: bool = MISSING
    """Always false: not known"""


class LeafExplanation(Model):
    expected: str = MISSING
    """The operand as JSON, at most 200 bytes"""
    found: str | None = None
    """The value in the body as JSON, at most 200 bytes"""
    operator: Literal["in", "not_in", "exists"] | str = MISSING
    """The operator"""
    passed: bool = MISSING
    """Whether the operator holds"""
    path: list[str] = []
    """The field's keys in the filter"""
    present: bool = MISSING
    """Whether the body has the field"""
    where: str = MISSING
    """Path in the body"""


class ListAppliedResponse(Model):
    revisions: list[AppliedRevision] = []
    """The revisions, the last applied first"""


class ListModelsResponse(Model):
    default_model_id: str = MISSING
    """The first model that the settings list for the default harness; empty when they list none"""
    models: list[LanguageModel] = []
    """The models, by identifier"""


class MCPServerConfig(Model):
    args: list[str] | None = None
    """Its arguments"""
    command: str | None = None
    """The program"""
    env: dict[str, str] | None = None
    """Environment variables; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or the same server in the applied definition"""
    headers: dict[str, str] | None = None
    """HTTP headers; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or an applied definition that grants the secret to the same server"""
    url: str | None = None
    """URL of the server"""
    warp_id: str | None = None
    """Identifier of a shared server"""


class ModelTokenUsage(Model):
    model_id: str = MISSING
    """The model"""
    total_tokens: int = MISSING
    """Tokens in and out"""


class NotificationFilter(Model):
    automation: list[str] = []
    """Only runs of these automations; empty: of all"""
    state: list[str] = []
    """Only runs that ended in these states; empty: in any"""


class PageInfo(Model):
    has_next_page: bool = MISSING
    """Whether there is another page"""
    next_cursor: str = MISSING
    """Cursor of the next page; empty on the last page"""


class PlanField(Model):
    name: str = MISSING
    """The key"""
    new: Any = MISSING
    """The new value; null for none"""
    old: Any = MISSING
    """The old value; null for none"""


class PlanSecret(Model):
    name: str = MISSING
    """Name of the secret"""
    version: int = MISSING
    """The new version"""
    webhooks: list[str] = []
    """Names of the webhooks that would use it"""


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
    """The source line and a caret line below it, as validate prints them, if known"""
    hint: str | None = None
    """The next step"""
    line: int = MISSING
    """Line, from 1"""
    message: str = MISSING
    """The problem"""
    path: str = MISSING
    """File, relative to the root of the tree"""
    severity: Literal["error", "warning", "info"] | str = MISSING
    """Only an error keeps a definition from being applied"""


class Registration(Model):
    checked_at: datetime | None = MISSING
    """Time of the last look at the forge; null: never"""
    events: list[str] = []
    """The events that the definition names"""
    forge: Literal["github", "gitlab", "gitea"] | str = MISSING
    """Kind of the forge"""
    reason: str = MISSING
    """How it drifted, or why it is not registered; else empty"""
    repository: str = MISSING
    """The repository"""
    state: Literal["pending", "registered", "drifted", "failed", "removing"] | str = MISSING
    """pending: about to be made; drifted: changed by somebody at the forge, and repaired by the next apply; removing: the definition no longer has it"""


class ReplayEventsResponse(Model):
    replayed: int = MISSING
    """Number of events"""


class ReplayResponse(Model):
    delivery_id: str = MISSING
    """The new delivery"""
    replay_of: str = MISSING
    """The original delivery"""
    runs: list[DeliveryRun] = []
    """The started runs"""


class Repository(Model):
    name: str = MISSING
    """Name"""
    owner: str = MISSING
    """Its owner"""
    repo: str = MISSING
    """The same as name"""


class RequestUsage(Model):
    cached_input_tokens: int = MISSING
    """The part of input_tokens that was read from a cache"""
    inference_cost_usd: float | None = None
    """US dollars, as the agent reports them or by the prices of the settings; absent when neither is known"""
    input_tokens: int = MISSING
    """Tokens that went in, cached ones included"""
    model_token_usage: list[ModelTokenUsage] = []
    """The part of each model"""
    output_tokens: int = MISSING
    """Tokens that came out"""
    total_tokens: int = MISSING
    """input_tokens and output_tokens together"""


class Revision(Model):
    author: str = MISSING
    """Name of the API key that made it"""
    created_at: datetime = MISSING
    """Time of creation"""
    files_changed: int = MISSING
    """Number of files written or deleted; 0 for a new secret"""
    revision: str = MISSING
    """Identifier; later ones have higher numbers"""
    subject: str = MISSING
    """Summary of the edit"""


class RevisionWithDifference(Model):
    author: str = MISSING
    """Name of the API key that made it"""
    created_at: datetime = MISSING
    """Time of creation"""
    files: list[FileDifference] = []
    """The changed files, by path"""
    files_changed: int = MISSING
    """Number of files written or deleted; 0 for a new secret"""
    revision: str = MISSING
    """Identifier; later ones have higher numbers"""
    subject: str = MISSING
    """Summary of the edit"""


class RunCreatorInfo(Model):
    display_name: str = MISSING
    """Name"""
    type: Literal["user", "service_account"] | str = MISSING
    """Kind"""
    uid: str = MISSING
    """Identifier"""


class RunFollowupResponse(Model):
    followup_id: str = MISSING
    """The message's ID"""
    outcome: Literal["queued_prompt", "queue_pending", "handoff_execution", "live_session"] | str = MISSING
    """queued_prompt: the message joined the prompt of the queued run. queue_pending: it follows when the execution ends. handoff_execution: the run had ended, and is queued again. live_session: the agent's living session gets it when its present turn ends"""


class RunOutput(Model):
    add: list[str] | None = None
    """Labels to add"""
    attempts: int = MISSING
    """How often the server began to perform it"""
    body: str | None = None
    """Text, as it is sent. Commands to bots contain an invisible character"""
    branch: str | None = None
    """The branch of a pull request"""
    created_at: datetime = MISSING
    """Time when it was asked for"""
    decided_by: str | None = None
    """Who approved or rejected the output"""
    event: str | None = None
    """Verdict of a review"""
    execution: int = MISSING
    """Number of the execution that asked for it, from 1"""
    kind: Literal["pull_request", "comment", "label", "review", "status", "reference"] | str = MISSING
    """Kind of output"""
    number: int | None = None
    """The issue or pull request that it is about"""
    output_uid: str = MISSING
    """Its ID"""
    reason: str | None = None
    """Why it is staged, refused or failed, or waits for another attempt"""
    remove: list[str] | None = None
    """Labels to remove"""
    repository: str | None = None
    """owner/name"""
    state: Literal["pending", "doing", "staged", "done", "failed", "rejected", "refused"] | str = MISSING
    """pending and doing: the server performs it. staged: a person has to agree. failed: for good, until somebody tries again. rejected: a person did not agree. refused: it was not allowed"""
    title: str | None = None
    """Title of a pull request or reference"""
    updated_at: datetime = MISSING
    """Time of the last change"""
    url: str | None = None
    """Address of what was made"""


class RunQuestionChoice(Model):
    id: str = MISSING
    """Value for choice of an answer"""
    kind: str = MISSING
    """allow_once, allow_always, reject_once, reject_always, or another"""
    name: str = MISSING
    """Text for people"""


class RunRepository(Model):
    code_forge: str | None = None
    """A forge of the server's settings; the default one when absent"""
    name: str = MISSING
    """The name of the repository"""
    owner: str = MISSING
    """The account or organisation"""
    ref: str | None = None
    """A branch or tag; the default branch when absent"""


RunSourceType = TypeAliasType("RunSourceType", str)
"""Source of a run: API, CLI, WEB_APP, CUSTOM_WEBHOOK (a webhook trigger), GITHUB_WEBHOOK, GITLAB_WEBHOOK, LINEAR, JIRA or SLACK (a trigger of the provider), SCHEDULED_AGENT, ORCHESTRATION, or another."""


RunState = TypeAliasType(
    "RunState",
    Literal[
        "PENDING", "QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"
    ]
    | str,
)
"""State of a run. FAILED: the agent's work failed, and the user must act; ERROR: the platform failed, and a retry may help; BLOCKED: the agent waits for input; PENDING is never produced."""


class RunStateEvent(Model):
    attempt: int = MISSING
    """Number of the attempt, from 1"""
    error_code: str | None = None
    """Kind of failure"""
    execution: int = MISSING
    """Number of the execution, from 1; a follow-up to an ended run starts a new one"""
    message: str | None = None
    """Text for people"""
    run_id: str = MISSING
    """The run's ID"""
    state: RunState = MISSING
    """The new state"""
    timestamp: datetime = MISSING
    """Time of the change"""


class RunStatusMessage(Model):
    error_code: str | None = None
    """Kind of failure"""
    message: str = MISSING
    """Text for people"""
    retryable: bool = MISSING
    """Whether a retry may succeed"""


class RunTimelineEvent(Model):
    event_type: (
        Literal[
            "oz_run_created",
            "oz_run_claimed",
            "agent_started",
            "oz_run_done",
            "oz_run_failed",
            "oz_run_errored",
            "oz_run_blocked",
            "oz_run_cancelled",
        ]
        | str
    ) = MISSING
    """What happened: the run was queued, claimed by a worker, begun, and ended as SUCCEEDED, FAILED, ERROR, BLOCKED or CANCELLED"""
    event_uuid: str = MISSING
    """The event's identifier"""
    execution_id: int = MISSING
    """Which execution, from 1"""
    occurred_at: datetime = MISSING
    """When it happened"""
    payload: RunStateEvent = MISSING
    """The change, as the stream of events has it"""
    run_id: str = MISSING
    """The run"""


class ScheduleHistory(Model):
    next_run: datetime | None = MISSING
    """When it fires next; null while the automation is disabled"""


class SchemaDocuments(Model):
    documents: dict[str, Any] = {}
    """The JSON Schema (2020-12) of each kind of definition file. The schema of a Markdown file describes its front matter"""
    schema_version: str = MISSING
    """The version"""


class SchemaVersion(Model):
    schema_url: str = MISSING
    """URL of its schemas"""
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
    factory_uid: str | None = None
    """The factory whose definition holds the secret, in a file of secrets/. Only this factory sees it. Absent for a secret of the team"""
    name: str = MISSING
    """Name, as in secretName of a webhook"""
    pending: bool = MISSING
    """The secret has no value yet: its webhooks answer 401"""
    reserved: bool = MISSING
    """A source uses the secret, so definitions may not name it"""
    revision: str | None = None
    """The revision of the definition that brought the value; absent for a secret of the team"""
    updated_at: datetime = MISSING
    """Time of the last change of the value"""
    used_by: list[str] = []
    """Users of the secret: webhooks, sources, and agents and automations that grant it to runs. A secret in use cannot be deleted"""
    version: int = MISSING
    """Version of the value; webhooks use the version that was current at their last apply"""
    warnings: list[str] | None = None
    """After a new value: webhooks that cannot use it, and factories with a secret of this name in their definition"""
    webhooks: list[str] = []
    """UIDs of the webhooks that use it"""


class SecretRef(Model):
    name: str = MISSING
    """Name of the secret"""


class SelectedWebhook(Model):
    name: str = MISSING
    """Name; empty if no webhook has that UID"""
    state: Literal["enabled", "disabled", "deleted", "unknown"] | str = MISSING
    """Whether its deliveries start the automation"""
    uid: str = MISSING
    """UID, as in the automation"""


class SkippedDelivery(Model):
    decision: str = MISSING
    """Why"""
    delivery_id: str = MISSING
    """Identifier of the delivery"""
    received_at: datetime = MISSING
    """Time of arrival"""
    webhook_id: str = MISSING
    """The webhook"""


class SyncCounts(Model):
    created: int = MISSING
    """Created resources"""
    deleted: int = MISSING
    """Deleted resources"""
    secrets: int = MISSING
    """Webhooks with a new value of their secret"""
    unchanged: int = MISSING
    """Unchanged resources"""
    updated: int = MISSING
    """Updated resources"""


class UndecidedDelivery(Model):
    attempts: int = MISSING
    """How often the server has asked the forge"""
    delivery_id: str = MISSING
    """Identifier of the delivery"""
    received_at: datetime = MISSING
    """Time of arrival"""
    webhook_id: str = MISSING
    """The webhook"""


class UnregisteredWebhook(Model):
    reason: str = MISSING
    """The reason; empty before the first attempt"""
    repository: str = MISSING
    """The repository at the forge"""
    state: Literal["pending", "drifted", "failed", "removing"] | str = MISSING
    """As in the webhook's registration"""
    webhook: str = MISSING
    """Name of the webhook"""


class ValidationScope(Model):
    parser: Literal["checked", "not_run"] | str = MISSING
    """Parsing of the files"""
    state_dependent: Literal["not_checked"] | str = MISSING
    """Rules that need a server"""
    state_independent: Literal["checked", "not_run"] | str = MISSING
    """Rules that need no server"""


class Webhook(Model):
    auth_mode: Literal["token", "url_token", "signature"] | str = MISSING
    """How senders authenticate"""
    counts: DeliveryCounts = MISSING
    """Number of logged requests by outcome"""
    created_at: datetime = MISSING
    """Time of the first apply"""
    deleted_at: datetime | None = MISSING
    """Time of deletion; null for a live webhook"""
    deliveries_per_minute: int | None = None
    """The delivery budget of each sender; absent as the server has it"""
    delivery_id_header: str = MISSING
    """Header with the sender's own event ID, or empty"""
    duplicate_window: str | None = None
    """How long the hash of a body counts as an identity; absent for ever"""
    enabled: bool = MISSING
    """Whether the webhook accepts deliveries; a disabled one answers 404"""
    file: str = MISSING
    """The definition file, relative to the root of the definition"""
    handshake: bool = MISSING
    """Whether the webhook answers the provider's set-up probes"""
    ingress_url: str = MISSING
    """URL for senders, with {token} in place of a URL token"""
    line: int = MISSING
    """Line of the webhook's first key in the file, from 1"""
    name: str = MISSING
    """Name, as its file"""
    refused_by_budget: int = MISSING
    """How many requests of the last 24 hours got 429: they are not in the log"""
    refused_while_disabled: int = MISSING
    """How many of the last 24 hours got 404 because the webhook was disabled"""
    registration: Registration | None = None
    """The webhook that the server makes at a forge; absent: none"""
    secret_name: str = MISSING
    """The team secret that holds the credential"""
    secret_pending: bool = MISSING
    """Whether the secret has no value yet; every request is then 401"""
    secret_stale: bool = MISSING
    """Whether a newer value of the secret waits for the next apply"""
    secret_version: int = MISSING
    """Version of the secret in use; 0 for a deleted webhook"""
    signature_scheme: str = MISSING
    """The provider's signing scheme, as in the file; empty unless auth_mode is signature"""
    uid: str = MISSING
    """Identifier, part of the ingress URL"""
    updated_at: datetime = MISSING
    """Time of the last change"""


class WebhookWithSecret(Model):
    auth_mode: Literal["token", "url_token", "signature"] | str = MISSING
    """How senders authenticate"""
    counts: DeliveryCounts = MISSING
    """Number of logged requests by outcome"""
    created_at: datetime = MISSING
    """Time of the first apply"""
    deleted_at: datetime | None = MISSING
    """Time of deletion; null for a live webhook"""
    deliveries_per_minute: int | None = None
    """The delivery budget of each sender; absent as the server has it"""
    delivery_id_header: str = MISSING
    """Header with the sender's own event ID, or empty"""
    duplicate_window: str | None = None
    """How long the hash of a body counts as an identity; absent for ever"""
    enabled: bool = MISSING
    """Whether the webhook accepts deliveries; a disabled one answers 404"""
    file: str = MISSING
    """The definition file, relative to the root of the definition"""
    handshake: bool = MISSING
    """Whether the webhook answers the provider's set-up probes"""
    ingress_url: str = MISSING
    """URL for senders, with {token} in place of a URL token"""
    line: int = MISSING
    """Line of the webhook's first key in the file, from 1"""
    name: str = MISSING
    """Name, as its file"""
    refused_by_budget: int = MISSING
    """How many requests of the last 24 hours got 429: they are not in the log"""
    refused_while_disabled: int = MISSING
    """How many of the last 24 hours got 404 because the webhook was disabled"""
    registration: Registration | None = None
    """The webhook that the server makes at a forge; absent: none"""
    secret: str | None = None
    """The secret; no other answer contains it. A URL token is in ingress_url. Absent for an existing or pending secret"""
    secret_name: str = MISSING
    """The team secret that holds the credential"""
    secret_pending: bool = MISSING
    """Whether the secret has no value yet; every request is then 401"""
    secret_stale: bool = MISSING
    """Whether a newer value of the secret waits for the next apply"""
    secret_version: int = MISSING
    """Version of the secret in use; 0 for a deleted webhook"""
    signature_scheme: str = MISSING
    """The provider's signing scheme, as in the file; empty unless auth_mode is signature"""
    uid: str = MISSING
    """Identifier, part of the ingress URL"""
    updated_at: datetime = MISSING
    """Time of the last change"""


class Worker(Model):
    busy: int = MISSING
    """Number of runs that it executes"""
    harnesses: list[str] = []
    """Its harnesses"""
    key_uid: str = MISSING
    """UID of its API key; empty for a worker inside a server"""
    last_seen_at: datetime = MISSING
    """Time of its last report; it reports every 10 seconds"""
    live: bool = MISSING
    """Whether it reported within the last 30 seconds"""
    name: str = MISSING
    """Name; by default that of its host"""
    runs: list[str] = []
    """IDs of the runs that it executes"""
    slots: int = MISSING
    """Number of runs that it can execute at once"""
    uid: str = MISSING
    """Identifier of the process"""
    version: str = MISSING
    """Version of its program"""


class AgentMemory(Model):
    attached_stores: list[str] = []
    """Always empty"""
    auto_memory: AutoMemory = MISSING
    """Always off"""


class AgentSkill(Model):
    name: str = MISSING
    """Name of the skill"""
    variants: list[AgentSkillVariant] = []
    """The skills of this name"""


class AmbientAgentConfig(Model):
    base_prompt: str | None = None
    """Instructions that precede the prompt"""
    environment_id: str | None = None
    """The environment"""
    harness: Harness | None = None
    """What executes the run"""
    idle_timeout_minutes: int | None = None
    """How long the session of an agent waits for an answer, in minutes; 30 when absent. Only agents that speak the Agent Client Protocol have sessions that wait"""
    mcp_servers: dict[str, MCPServerConfig] | None = None
    """Tools through MCP, by name"""
    model_id: str | None = None
    """The language model"""
    name: str | None = None
    """Label for grouping and filtering; the skill's name when a run is started from a skill"""
    repositories: list[RunRepository] | None = None
    """Repositories to check out, beside those of the factory"""
    runner_id: str | None = None
    """The runner"""
    skill_spec: str | None = None
    """Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md"""
    worker_host: str | None = None
    """Where to execute the run"""


class Artifact(Model):
    artifact_type: ArtifactType = MISSING
    """Kind of artifact"""
    artifact_uid: str = MISSING
    """Identifier of the artifact"""
    created_at: datetime = MISSING
    """Time when the server got the artifact"""
    data: ArtifactData = MISSING
    """The artifact"""
    run_id: str = MISSING
    """The run that left it"""


class ArtifactItem(Model):
    artifact_type: ArtifactType = MISSING
    """Kind of artifact. It decides which fields data has"""
    created_at: datetime = MISSING
    """Time when the server got the artifact"""
    data: ArtifactItemData = MISSING
    """The artifact"""


class Automation(Model):
    agent: str = MISSING
    """Name of the agent, or empty"""
    enabled: bool = MISSING
    """Whether the automation is enabled"""
    file: str = MISSING
    """The definition file, relative to the root of the definition"""
    fires: bool = MISSING
    """Whether a trigger can fire at present"""
    flow: Any | None = None
    """How the automation's runs wait for one another: concurrency, debounce, conversation and retry, as in the file"""
    line: int = MISSING
    """Line of the automation's first key in the file, from 1"""
    name: str = MISSING
    """Name, as its directory"""
    triggers: list[AutomationTrigger] = []
    """Triggers"""
    uid: str = MISSING
    """Identifier"""
    webhooks: list[SelectedWebhook] = []
    """Webhooks that the triggers select"""
    why_not: list[str] = []
    """Why the automation does not fire, or not for all selected webhooks; else empty"""


class AutomationFlow(Model):
    conversations: list[FlowRun] = []
    """Runs that later deliveries may be follow-ups of, last used first; at most 100"""
    skipped: list[SkippedDelivery] = []
    """Deliveries that started nothing, newest first; at most 100"""
    undecided: list[UndecidedDelivery] = []
    """Deliveries that the forge's answer decides on, oldest first; at most 1000"""
    waiting: list[FlowRun] = []
    """Runs that no worker may take yet, oldest first; at most 1000"""


class Backtest(Model):
    automation: str = MISSING
    """Name of the automation"""
    complete: bool = MISSING
    """Whether all deliveries were judged; false when the time ran out"""
    examples: BacktestExamples = MISSING
    """Deliveries that only one of both matches"""
    fired: int = MISSING
    """Number of them that the present triggers match"""
    fires: int = MISSING
    """Number of them that the changed triggers match"""
    looked_at: int = MISSING
    """Number of deliveries that were judged"""
    never: BacktestNever | None = None
    """Why the changed triggers match none of 500 or more deliveries"""
    newly: int = MISSING
    """Number of them that only the changed triggers match"""
    no_longer: int = MISSING
    """Number of them that only the present triggers match"""
    runs_per_day: float = MISSING
    """Deliveries a day that the changed triggers match"""
    since: datetime | None = None
    """Arrival of the oldest of them"""


class Conversation(Model):
    conversation_id: str = MISSING
    """The conversation's ID"""
    steps: list[ConversationStep] = []
    """The conversation, with one step for each execution"""


class Delivery(Model):
    answer: DeliveryAnswer | None = None
    """The answer to the sender; absent for a replay"""
    count: int = MISSING
    """Number of requests that share this row; above 1 only if many were rejected"""
    delivery_id: str = MISSING
    """Identifier"""
    duplicate_of: str | None = None
    """For a duplicate: ID of the accepted delivery"""
    event: str | None = None
    """The provider's name of the event, escaped, at most 128 characters"""
    flow: list[FlowDecision] | None = None
    """The automations for which the delivery started no run of its own, or one that waits for more deliveries"""
    identity: str = MISSING
    """Identity of the delivery, escaped, at most 128 characters; empty if an earlier check refused it"""
    identity_source: Literal["", "header", "provider", "service_header", "body_hash"] | str = MISSING
    """Origin of the identity; empty without an identity"""
    label: str = MISSING
    """The outcome, as text for people"""
    last_received_at: datetime | None = None
    """Time of the last request, if count is above 1"""
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
    """Outcome"""
    reason: str = MISSING
    """The precise cause; may be empty"""
    received_at: datetime = MISSING
    """Time of arrival, or that of the first of count requests"""
    replay_of: str | None = None
    """For a replay: ID of the original delivery"""
    request_headers: dict[str, str] | None = None
    """A few headers of the request, each escaped and at most 128 characters: content type, client, event and delivery ID. The sender chose them"""
    runs: list[DeliveryRun] = []
    """The started runs, oldest first"""
    sender: str = MISSING
    """Address of the sender, or its IPv6 network"""
    size_bytes: int | None = MISSING
    """Size of the body in bytes; null if unknown; the smallest if count is above 1"""
    size_bytes_max: int | None = None
    """The largest size, if count is above 1"""
    started_nothing: bool | None = None
    """Whether the delivery was accepted, and neither started a run nor went to one"""


class EnvironmentConfig(Model):
    docker_image: str = MISSING
    """Image of containers; empty: that of the harness"""
    github_repos: list[EnvironmentRepository] = []
    """Repositories to check out, of any forge"""
    name: str = MISSING
    """The same as the identifier"""
    setup_commands: list[str] = []
    """Commands that run before the harness"""


class Error(Model):
    code: str = MISSING
    """Kind of error"""
    detail: str | None = None
    """The exact problem"""
    error: str = MISSING
    """Title, or title (detail)"""
    errors: list[FieldError] | None = None
    """The invalid fields"""
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
    asks_forge: bool | None = None
    """Whether the server has to ask the forge before it decides. The delivery's flow has the decision"""
    leaves: list[LeafExplanation] = []
    """Every operator of every field, in the order of the filter"""
    matched: bool = MISSING
    """Whether the filter matches"""
    reason: str | None = None
    """The reason, if the filter as a whole decides: it is absent or empty, or the body is not an object"""


class FactoryAgentDefaults(Model):
    default_runner_uid: str = MISSING
    """Name of the runner, or empty"""
    harness: FactoryHarness | None = None
    """What executes runs"""
    mcp_servers: dict[str, Any] = {}
    """Tools through MCP, by name; values of env and headers are ***, but for references to secrets"""
    secrets: list[FactorySecret] = []
    """The team secrets that runs get"""
    worker_host: str = MISSING
    """Where runs are executed, or empty"""


class FactoryRunResponse(Model):
    factory_uid: str = MISSING
    """The factory"""
    foreman_agent: str = MISSING
    """Name of the foreman agent; empty if the definition has none"""
    run_id: str = MISSING
    """The run's ID"""
    run_url: str = MISSING
    """The run's page on the dashboard"""
    state: RunState = MISSING
    """State of the run"""
    ticket_ref: str = MISSING
    """As in the request"""


class FactorySync(Model):
    applied_revision: str = MISSING
    """The revision in force; empty before the first apply"""
    applied_signer: str = MISSING
    """Name and key of the signer of the revision in force, if the source verifies signatures; else empty"""
    attempted_revision: str = MISSING
    """The revision of the last attempt; empty before the first attempt"""
    last_applied_at: datetime | None = MISSING
    """Time of the last apply"""
    last_attempted_at: datetime | None = MISSING
    """Time at which the last attempt ended"""
    message: str = MISSING
    """Reason why the last attempt was refused or failed, in one line; else empty"""
    problems: list[Problem] = []
    """Problems that the last attempt found"""
    state: Literal["pending", "applied", "refused", "failed"] | str = MISSING
    """Outcome of the last attempt to apply; after refused and failed, the last applied definition stays in force"""


class FilterTestResponse(Model):
    explanation: Explanation = MISSING
    """Result of the filter on the payload, for each leaf"""
    payload_check: bool = MISSING
    """Whether the payload matches the filter"""
    webhook_check: bool = MISSING
    """Whether the trigger selects the delivery's webhook, and that is enabled; without a delivery, whether it selects an enabled webhook"""
    webhook_reason: str = MISSING
    """Reason for the result of the webhook check"""
    would_trigger: bool = MISSING
    """Whether both checks pass"""


class ListAPIKeysResponse(Model):
    keys: list[APIKey] = []
    """The keys, newest first, revoked ones included"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListAgentSkillsResponse(Model):
    agents: list[AgentSkill] = []
    """The skills, by name"""


class ListAuditResponse(Model):
    entries: list[AuditEntry] = []
    """The changes, newest first"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListAutomationsResponse(Model):
    automations: list[Automation] = []
    """The automations, by name"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListDeliveriesResponse(Model):
    deliveries: list[Delivery] = []
    """The deliveries, newest first"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListEventsResponse(Model):
    events: list[Event] = []
    """The events, newest first"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListFilesResponse(Model):
    files: list[HeldFile] = []
    """The files, by path"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""
    revision: str = MISSING
    """Revision of the files"""


class ListOutputsResponse(Model):
    outputs: list[RunOutput] = []
    """The outputs, oldest first"""


class ListRevisionsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there is another page"""
    revisions: list[Revision] = []
    """The revisions, newest first"""


class ListSecretsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there is another page"""
    secrets: list[Secret] = []
    """The secrets, by name"""


class ListWebhooksResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there is another page"""
    webhooks: list[Webhook] = []
    """The webhooks, by name"""


class ListWorkersResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there is another page"""
    workers: list[Worker] = []
    """The workers seen within a day, by UID"""


class Notification(Model):
    dead: int = MISSING
    """Number of its events that were given up"""
    description: str | None = None
    """What it is for"""
    enabled: bool = MISSING
    """Whether it gets events"""
    events: list[str] = []
    """The events that it asks for"""
    file: str = MISSING
    """The definition file"""
    filter: NotificationFilter = MISSING
    """Narrows the events of runs"""
    format: Literal["standard", "slack"] | str = MISSING
    """Signed JSON by Standard Webhooks, or a message"""
    line: int = MISSING
    """Line of the first key in the file, from 1"""
    name: str = MISSING
    """Name, as its file"""
    secret_name: str | None = None
    """The team secret that signs the events"""
    uid: str = MISSING
    """Identifier"""
    url: str | None = None
    """The address of the receiver; absent if a secret holds it"""
    url_secret_name: str | None = None
    """The team secret that holds the address"""
    waiting: int = MISSING
    """Number of events that wait for it"""


class PlanChange(Model):
    action: Literal["create", "restore", "update", "delete", "unchanged"] | str = MISSING
    """Kind of change; restore: a webhook whose name returns within 30 days, with its UID and URL"""
    fields: list[PlanField] = []
    """For an update: the changed keys"""
    file: str = MISSING
    """The file that declares it"""
    kind: Literal["factory", "webhook", "automation", "agent", "runner", "environment", "skill"] | str = (
        MISSING
    )
    """Kind of the resource"""
    line: int = MISSING
    """Line of the resource's first key in the file, from 1"""
    name: str = MISSING
    """Name; agent/skill for the skill of an agent"""
    uid: str | None = None
    """The UID; for a new webhook, its future UID"""


class RunAgentResponse(Model):
    run_id: str = MISSING
    """The run's ID"""
    state: RunState = MISSING
    """State of the run"""
    task_id: str = MISSING
    """The same as run_id"""


class RunAnswerResponse(Model):
    outcome: Literal["live_session", "handoff_execution"] | str = MISSING
    """live_session: the agent waits for the answer and goes on. handoff_execution: its session had ended, and the run is queued to resume it"""
    question_id: str = MISSING
    """The question"""
    state: RunState = MISSING
    """State of the run now"""


class RunQuestion(Model):
    asked_at: datetime = MISSING
    """When it was asked"""
    choices: list[RunQuestionChoice] = []
    """The possible answers"""
    input: Any | None = None
    """What it is about to do"""
    question_id: str = MISSING
    """The question's ID"""
    title: str = MISSING
    """What the agent asks permission for"""


class RunTimeline(Model):
    events: list[RunTimelineEvent] = []
    """The changes of the run's state, oldest first: at most the first 1,000"""


class Schedule(Model):
    agent_config: AmbientAgentConfig = MISSING
    """The configuration of its runs"""
    agent_uid: str | None = None
    """The agent that does its runs"""
    automation_id: str = MISSING
    """UID of the automation"""
    created_at: datetime = MISSING
    """When the automation was first applied"""
    cron_schedule: str = MISSING
    """schedule.cron, in UTC"""
    enabled: bool = MISSING
    """Whether the automation is enabled"""
    factory_uid: str = MISSING
    """The factory whose definition has it"""
    history: ScheduleHistory = MISSING
    """When it fires"""
    id: str = MISSING
    """Its identifier: the automation's UID and a hash of the cron expression and name"""
    name: str = MISSING
    """schedule.name, or the automation's name where it has none"""
    prompt: str = MISSING
    """The automation's prompt"""
    updated_at: datetime = MISSING
    """When the automation last changed"""


class Sync(Model):
    author: str = MISSING
    """Author of the commit, or name of the API key that made the edit"""
    committed_at: datetime | None = MISSING
    """Time of the commit or edit"""
    counts: SyncCounts = MISSING
    """Number of changed resources"""
    finished_at: datetime = MISSING
    """Time of the end"""
    message: str = MISSING
    """Reason why it was refused or failed, in one line; else empty"""
    outcome: Literal["applied", "refused", "unchanged", "failed", "suspended"] | str = MISSING
    """Outcome: refused if the definition has errors, failed if the source is unreadable, suspended if it is valid and the factory was rolled back"""
    problems: list[Problem] = []
    """Problems in the definition"""
    revision: str = MISSING
    """A git commit, sha256:… of a directory's content, or r12 of a managed factory; empty if the source is unreadable"""
    signer: str = MISSING
    """Name and key of the commit's signer, if the source verifies signatures; else empty"""
    source: FactorySource = MISSING
    """Source of the definition"""
    started_at: datetime = MISSING
    """Time at which it began"""
    subject: str = MISSING
    """First line of the commit message, or summary of the edit"""


class TriggerVerdict(Model):
    event: str = MISSING
    """Name of the event"""
    explanation: Explanation = MISSING
    """Whether the delivery is the event and passes the filter, and why not"""
    provider: str = MISSING
    """Provider of the event"""


class ValidateFilesResponse(Model):
    deferred_resolutions: list[DeferredResolution] = []
    """Always empty: no name in a tree is resolved later"""
    diagnostics: list[Problem] = []
    """Errors and warnings, by file and place"""
    diagnostics_omitted: int | None = None
    """Number of omitted diagnostics"""
    infos: list[Problem] = []
    """Notes, which do not make a tree invalid, by file and place"""
    schema_version: str = MISSING
    """The version of the rules"""
    state_dependent_checks_not_run: list[str] = []
    """Rules that were not checked because they need a server"""
    valid: bool = MISSING
    """Whether the tree has no errors"""
    validation_scope: ValidationScope = MISSING
    """The checks that ran"""


class AgentIdentity(Model):
    agent_type: Literal["FOREMAN", "TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "VERIFY", "CUSTOM"] | str = (
        MISSING
    )
    """Its agentType; FOREMAN for MAIN"""
    available: bool = MISSING
    """Always true"""
    base_harness: str = MISSING
    """The harness of its runs, or empty for the default one"""
    base_model: str = MISSING
    """The language model of its runs, or empty"""
    created_at: datetime = MISSING
    """When it was first applied"""
    credential_strategy: Literal["CREATOR", "EXECUTOR"] | str | None = None
    """credentialStrategy of its file"""
    default_runner_uid: str = MISSING
    """Name of the runner of its runs, or empty"""
    description: str = MISSING
    """description of its file, or empty"""
    environment_id: str = MISSING
    """The environment of its runs, or empty"""
    factory_uid: str = MISSING
    """The factory whose definition has it"""
    harness: Harness | None = None
    """The harness with its settings. type is present for oz, claude, gemini and codex only; base_harness names every harness"""
    mcp_servers: dict[str, MCPServerConfig] = {}
    """Tools through MCP of its runs, by name; values of env and headers are ***"""
    memory: AgentMemory = MISSING
    """Memory of the agent; this server has none"""
    name: str = MISSING
    """Its name"""
    prompt: str = MISSING
    """The text of its file: the base prompt of its runs"""
    secrets: list[SecretRef] = []
    """The team secrets that its runs get"""
    skills: list[str] = []
    """The skills of the definition that it may use, in the form of skill_spec"""
    uid: str = MISSING
    """Identifier, for agent_identity_uid of a run"""
    updated_at: datetime = MISSING
    """When its file last changed"""
    worker_host: str = MISSING
    """Where its runs are executed, or empty"""


class AutomationVerdict(Model):
    automation_id: str = MISSING
    """The automation"""
    explanation: Explanation | None = None
    """Result of the filter; of several triggers, that of the first match"""
    name: str = MISSING
    """Name"""
    no_key: list[str] | None = None
    """Why a payload that matches has no key for concurrency, debounce or conversation, so that its run joins no others there"""
    triggers: list[TriggerVerdict] = []
    """The verdict of each trigger that selects the webhook; empty if the payload is not stored"""
    verdict: Literal["matched", "not_matched", "disabled", "unknown"] | str = MISSING
    """Whether the automation starts a run for the payload; unknown if the payload is not stored"""


class DeliveryDetail(Model):
    answer: DeliveryAnswer | None = None
    """The answer to the sender; absent for a replay"""
    automations: list[AutomationVerdict] = []
    """The verdict of each automation that selects the webhook, evaluated now"""
    count: int = MISSING
    """Number of requests that share this row; above 1 only if many were rejected"""
    definition_changed: bool = MISSING
    """Whether the definition has changed since the delivery, so the verdicts may have changed"""
    delivery_id: str = MISSING
    """Identifier"""
    duplicate_of: str | None = None
    """For a duplicate: ID of the accepted delivery"""
    event: str | None = None
    """The provider's name of the event, escaped, at most 128 characters"""
    flow: list[FlowDecision] | None = None
    """The automations for which the delivery started no run of its own, or one that waits for more deliveries"""
    identity: str = MISSING
    """Identity of the delivery, escaped, at most 128 characters; empty if an earlier check refused it"""
    identity_source: Literal["", "header", "provider", "service_header", "body_hash"] | str = MISSING
    """Origin of the identity; empty without an identity"""
    label: str = MISSING
    """The outcome, as text for people"""
    last_received_at: datetime | None = None
    """Time of the last request, if count is above 1"""
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
    """Outcome"""
    payload: Any | None = None
    """The body of an accepted delivery, while it is stored"""
    reason: str = MISSING
    """The precise cause; may be empty"""
    received_at: datetime = MISSING
    """Time of arrival, or that of the first of count requests"""
    replay_of: str | None = None
    """For a replay: ID of the original delivery"""
    request_headers: dict[str, str] | None = None
    """A few headers of the request, each escaped and at most 128 characters: content type, client, event and delivery ID. The sender chose them"""
    runs: list[DeliveryRun] = []
    """The started runs, oldest first"""
    sender: str = MISSING
    """Address of the sender, or its IPv6 network"""
    size_bytes: int | None = MISSING
    """Size of the body in bytes; null if unknown; the smallest if count is above 1"""
    size_bytes_max: int | None = None
    """The largest size, if count is above 1"""
    started_nothing: bool | None = None
    """Whether the delivery was accepted, and neither started a run nor went to one"""
    trigger_events: list[str] = []
    """The events of a provider that the delivery is, as triggers name them"""


class Environment(Model):
    config: EnvironmentConfig = MISSING
    """What is known of it"""
    last_updated: datetime = MISSING
    """When a definition that names it was last applied, or else the server was started"""
    setup_failed: bool = MISSING
    """Always false: runs set up their environments themselves"""
    uid: str = MISSING
    """Its identifier, as definitions have it"""


class Factory(Model):
    agent_defaults: FactoryAgentDefaults = MISSING
    """Defaults of runs; agents and automations override them"""
    agents: list[FactoryAgent] = []
    """The agents of the applied definition, by name"""
    alias: str = MISSING
    """alias of factory.yaml, or empty"""
    code_forge: Literal["GITHUB", "GITLAB", "AZURE_DEVOPS", "NONE"] | str = MISSING
    """Host of the source, judged by its address"""
    code_forges: list[str] = []
    """code_forge alone"""
    conditions: list[Condition] = []
    """Conditions Ready, Reconciling and Stalled"""
    counts: FactoryCounts = MISSING
    """Number of resources in the applied definition"""
    created_at: datetime = MISSING
    """Time at which the factory was first configured"""
    credential_strategy: Literal["CREATOR", "EXECUTOR"] | str = MISSING
    """credentialStrategy of factory.yaml; EXECUTOR where it has none"""
    default_environment: str | None = MISSING
    """environmentId of agentDefaults"""
    default_model: str | None = MISSING
    """The language model of agentDefaults"""
    description: str = MISSING
    """description of factory.yaml, or empty"""
    detached: bool = MISSING
    """Whether the settings no longer name the factory; its webhooks answer 404"""
    display_name: str | None = None
    """name of factory.yaml, for display only"""
    integrations: list[FactoryIntegration] = []
    """integrations of factory.yaml"""
    name: str = MISSING
    """Name in the server's settings, which identifies the factory"""
    recipient: str = MISSING
    """Public key of age: millwright secret seal encrypts secrets for the definition to it"""
    repositories: list[Repository] = []
    """repositories of factory.yaml"""
    rollback: FactoryRollback | None = None
    """Since a rollback; else absent"""
    scorer_defaults: dict[str, Any] = {}
    """Always empty"""
    scoring: dict[str, Any] = {}
    """Always empty"""
    source: FactorySource = MISSING
    """Source of the definition"""
    suspended: bool = MISSING
    """Whether the factory does not follow its source: its settings suspend it, or it was rolled back"""
    sync: FactorySync = MISSING
    """State of the definition"""
    team_uid: str = MISSING
    """Always empty: a server has one team"""
    uid: str = MISSING
    """Identifier"""
    unregistered: list[UnregisteredWebhook] = []
    """Webhooks that a forge does not have as their files state"""
    updated_at: datetime = MISSING
    """Time of the last change of its settings or factory.yaml"""


class ListAgentIdentitiesResponse(Model):
    agents: list[AgentIdentity] = []
    """The agents, by factory and name"""


class ListEnvironmentsResponse(Model):
    environments: list[Environment] = []
    """The environments, by identifier"""


class ListFactoriesResponse(Model):
    factories: list[Factory] = []
    """The factories, by name"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListNotificationsResponse(Model):
    notifications: list[Notification] = []
    """The applied notifications, by name"""
    page_info: PageInfo = MISSING
    """Whether there is another page"""


class ListSchedulesResponse(Model):
    schedules: list[Schedule] = []
    """The schedules, by factory and automation"""


class ListSyncsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there is another page"""
    syncs: list[Sync] = []
    """The attempts, newest first"""


class Plan(Model):
    backtest: list[Backtest] | None = None
    """What changed triggers would have done with the newest stored deliveries: at most 5000 of 7 days, in 2 seconds"""
    base_revision: str = MISSING
    """The applied revision; empty before the first apply"""
    changes: list[PlanChange] = []
    """Change of every resource, by kind and name; none if the tree has errors"""
    deleted_webhook_uids: dict[str, str] | None = None
    """The name of each deleted webhook that an automation of the tree selects, by UID"""
    head_revision: str = MISSING
    """The planned revision; empty for files in the request"""
    problems: list[Problem] = []
    """Problems of the tree, by file and place"""
    secrets: list[PlanSecret] = []
    """Secrets whose newer value would come into force, by name"""
    state_dependent_checks_not_run: list[str] | None = None
    """Rules that were not checked"""
    webhook_uids: dict[str, str] | None = None
    """The present or future UID of each webhook in the tree, by name"""
    would_apply: bool = MISSING
    """Whether the server would accept the tree"""


class Rollback(Model):
    applied: bool = MISSING
    """Whether it serves now; false after a dry run"""
    plan: Plan = MISSING
    """The changes from the revision that was applied before"""
    revision: str = MISSING
    """The earlier revision"""


class RunItem(Model):
    advertised_skills: list[AdvertisedSkill] = []
    """Skills that the agent advertised"""
    agent_config: AmbientAgentConfig = MISSING
    """The resolved configuration"""
    artifacts: list[ArtifactItem] = []
    """Files and links that the run left. An artifact appears when its execution has ended"""
    attachments: list[AttachmentInfo] = []
    """The files that the agent gets"""
    cancel_requested_at: datetime | None = None
    """Time of the request to cancel"""
    conversation_id: str = MISSING
    """The conversation that the run belongs to"""
    created_at: datetime = MISSING
    """Time of creation"""
    creator: RunCreatorInfo = MISSING
    """Creator of the run"""
    delivery_ids: list[str] | None = None
    """The deliveries of a run that stands for several, or that had later ones as follow-ups, oldest first: the newest 1000; not in lists"""
    executor: RunCreatorInfo | None = None
    """The worker that executes or executed the run"""
    factory_uid: str | None = None
    """The factory that the run belongs to"""
    finished_at: datetime | None = MISSING
    """Time of the end"""
    is_run_type_cancellable: bool = MISSING
    """Whether runs of this kind can be cancelled"""
    metadata: dict[str, str] = {}
    """Metadata from the creator; for a run that a delivery started, also automation_id, webhook_id and delivery_id"""
    parent_run_id: str | None = None
    """The run that started this one"""
    prompt: str = MISSING
    """Text that the agent executes"""
    questions: list[RunQuestion] | None = None
    """What the agent asks before it goes on; not in lists"""
    request_usage: RequestUsage | None = None
    """Use of language models, summed over all executions and attempts. Absent until an agent reports it"""
    root_run_id: str = MISSING
    """The first ancestor of the run; the run itself if it has no parent"""
    run_id: str = MISSING
    """The run's ID"""
    run_time: str | None = None
    """Duration of the run, in ISO 8601"""
    session_id: str = MISSING
    """Identifier of the session"""
    session_link: str = MISSING
    """The run's page on the dashboard"""
    source: RunSourceType = MISSING
    """Kind of creator"""
    started_at: datetime | None = MISSING
    """Start of the execution"""
    starts_at: datetime | None = None
    """When a run that waits for a time is ready"""
    state: RunState = MISSING
    """State of the run. FAILED: the agent's work failed; ERROR: the platform failed; BLOCKED: the agent waits for input"""
    status_message: RunStatusMessage | None = None
    """Details of the state"""
    submitted_prompt: str | None = None
    """The full text given to the agent, envelope included; not in lists"""
    superseded_by: str | None = None
    """The newer run that this one gave way to"""
    task_id: str = MISSING
    """The same as run_id"""
    title: str = MISSING
    """Text for people"""
    trigger_url: str | None = None
    """Source of the run"""
    updated_at: datetime = MISSING
    """Time of the last change"""
    waits_for: Literal["concurrency", "debounce", "retry", "budget"] | str | None = None
    """What keeps a queued run from workers: other runs of its automation, more deliveries of a burst, or its next attempt"""


class ListRunsResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there are more runs"""
    runs: list[RunItem] = []
    """The runs"""


class ListTasksResponse(Model):
    page_info: PageInfo = MISSING
    """Whether there are more"""
    tasks: list[RunItem] = []
    """The runs"""


ConversationStep.model_rebuild()
