"""Runs of agents, and their conversations."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._errors import RunWaitTimeoutError
from .._events import RunEvent, read_run_event
from .._options import RequestOptions
from .._request import segment
from .._run import ends_stream, has_ended, poll_interval
from ._caller import Caller
from ._io import clock, raw, sleep
from ._stream import EventStream
from .pagination import Page


class RunsPage(Page["types.RunItem", "types.ListRunsResponse"]):
    """A page of runs."""

    model, member = "ListRunsResponse", "runs"

    @property
    def runs(self) -> list[types.RunItem]:
        """The runs of this page."""
        return self.items


class Runs:
    """Runs of agents."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> RunsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return RunsWithRawResponse(self)

    def create(self, **params: Unpack[types.CreateRunParams]) -> types.RunAgentResponse:
        """Start a run. A retry never starts a second one: every call has an idempotency key."""
        return self._client.call("POST", "/agent/runs", params, types.RunAgentResponse, types.CreateRunParams)

    def list(self, **params: Unpack[types.ListRunsParams]) -> RunsPage:
        """List runs, the last updated first."""
        return self._client.pages("/agent/runs", params, RunsPage, types.ListRunsParams)

    def retrieve(self, run_id: str, **options: Unpack[RequestOptions]) -> types.RunItem:
        """Return one run in full."""
        return self._client.call("GET", f"/agent/runs/{segment('run_id', run_id)}", options, types.RunItem)

    def cancel(self, run_id: str, **options: Unpack[RequestOptions]) -> str:
        """Cancel a run that has not ended, and return its ID."""
        return self._client.call("POST", f"/agent/runs/{segment('run_id', run_id)}/cancel", options, str)

    def retry(self, run_id: str, **options: Unpack[RequestOptions]) -> types.RunAgentResponse:
        """Start a run that has ended again, as a new run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/retry"
        return self._client.call("POST", path, options, types.RunAgentResponse)

    def outputs(self, run_id: str, **options: Unpack[RequestOptions]) -> types.ListOutputsResponse:
        """Return what the server performs for the run at a forge."""
        path = f"/agent/runs/{segment('run_id', run_id)}/outputs"
        return self._client.call("GET", path, options, types.ListOutputsResponse)

    def open_pull_request(
        self, run_id: str, **params: Unpack[types.OpenPullRequestParams]
    ) -> types.RunOutput:
        """Open a pull request from the changes of the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/outputs"
        return self._client.call("POST", path, params, types.RunOutput, types.OpenPullRequestParams)

    def approve_output(
        self, run_id: str, output_uid: str, **options: Unpack[RequestOptions]
    ) -> types.RunOutput:
        """Agree to a staged output, which the server then performs."""
        return self._decide(run_id, output_uid, "approve", options)

    def reject_output(
        self, run_id: str, output_uid: str, **options: Unpack[RequestOptions]
    ) -> types.RunOutput:
        """Reject a staged output."""
        return self._decide(run_id, output_uid, "reject", options)

    def retry_output(
        self, run_id: str, output_uid: str, **options: Unpack[RequestOptions]
    ) -> types.RunOutput:
        """Try a failed output again."""
        return self._decide(run_id, output_uid, "retry", options)

    def _decide(
        self, run_id: str, output_uid: str, decision: str, options: RequestOptions
    ) -> types.RunOutput:
        path = (
            f"/agent/runs/{segment('run_id', run_id)}/outputs/{segment('output_uid', output_uid)}/{decision}"
        )
        return self._client.call("POST", path, options, types.RunOutput)

    def submit_followup(
        self, run_id: str, **params: Unpack[types.CreateFollowupParams]
    ) -> types.RunFollowupResponse:
        """Send a message to a run: it joins the prompt, waits for the execution to end, or reopens the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/followups"
        return self._client.call("POST", path, params, types.RunFollowupResponse, types.CreateFollowupParams)

    def answer(self, run_id: str, **params: Unpack[types.AnswerQuestionParams]) -> types.RunAnswerResponse:
        """Answer what the agent of a run asks; ``questions`` of the run has its questions and their choices."""
        path = f"/agent/runs/{segment('run_id', run_id)}/answers"
        return self._client.call("POST", path, params, types.RunAnswerResponse, types.AnswerQuestionParams)

    def conversation(self, run_id: str, **options: Unpack[RequestOptions]) -> types.Conversation:
        """Return the conversation of the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/conversation"
        return self._client.call("GET", path, options, types.Conversation)

    def timeline(self, run_id: str, **options: Unpack[RequestOptions]) -> types.RunTimeline:
        """Return the changes of the run's state, from its creation on."""
        path = f"/agent/runs/{segment('run_id', run_id)}/timeline"
        return self._client.call("GET", path, options, types.RunTimeline)

    def transcript(self, run_id: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return the conversation as the bytes of a JSON file."""
        path = f"/agent/runs/{segment('run_id', run_id)}/transcript"
        return self._client.call("GET", path, options, bytes)

    def attachment(self, run_id: str, file_name: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return the bytes of a file of the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/attachments/{segment('file_name', file_name)}"
        return self._client.call("GET", path, options, bytes)

    def events(
        self, run_id: str, *, last_event_id: str | None = None, **options: Unpack[RequestOptions]
    ) -> EventStream[RunEvent]:
        """Follow the state changes and messages of a run, from the beginning or after an event.

        The stream ends when the run has. A connection that drops is made again where it stood, up to
        ``max_retries`` times in a row, 5 by default.
        """
        path = f"/agent/runs/{segment('run_id', run_id)}/events"
        return self._client.events(path, options, read_run_event, ends_stream, last_event_id)

    stream = events

    def wait(
        self,
        run_id: str,
        *,
        max_wait: float | None = None,
        longest_interval: float = 5,
        **options: Unpack[RequestOptions],
    ) -> types.RunItem:
        """Wait until a run has ended, and return it. BLOCKED is an end state.

        After ``max_wait`` seconds, if given, it is a RunWaitTimeoutError that holds the run as last seen.
        """
        start, attempt = clock(), 0
        while True:
            run = self.retrieve(run_id, **options)
            if has_ended(run):
                return run
            pause = poll_interval(attempt, longest_interval)
            if max_wait is not None and clock() - start + pause > max_wait:
                left = max_wait - (clock() - start)
                if left <= 0:
                    error = RunWaitTimeoutError(f"run {run_id} is {run.state} after {max_wait:g} seconds")
                    error.run = run
                    raise error
                pause = left
            sleep(pause)
            attempt += 1


class RunsWithRawResponse:
    """Runs, with whole responses."""

    def __init__(self, runs: Runs) -> None:
        self.create = raw(runs.create)
        self.list = raw(runs.list)
        self.retrieve = raw(runs.retrieve)
        self.cancel = raw(runs.cancel)
        self.retry = raw(runs.retry)
        self.submit_followup = raw(runs.submit_followup)
        self.answer = raw(runs.answer)
        self.conversation = raw(runs.conversation)
        self.timeline = raw(runs.timeline)
        self.transcript = raw(runs.transcript)
        self.attachment = raw(runs.attachment)
        self.outputs = raw(runs.outputs)
        self.open_pull_request = raw(runs.open_pull_request)
        self.approve_output = raw(runs.approve_output)
        self.reject_output = raw(runs.reject_output)
        self.retry_output = raw(runs.retry_output)


class Conversations:
    """Conversations, which outlive the runs in them."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> ConversationsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return ConversationsWithRawResponse(self)

    def retrieve(self, conversation_id: str, **options: Unpack[RequestOptions]) -> types.Conversation:
        """Return the messages of all runs of a conversation."""
        path = f"/agent/conversations/{segment('conversation_id', conversation_id)}"
        return self._client.call("GET", path, options, types.Conversation)

    def transcript(self, conversation_id: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return a conversation as the bytes of a JSON file."""
        path = f"/agent/conversations/{segment('conversation_id', conversation_id)}/transcript"
        return self._client.call("GET", path, options, bytes)

    def submit_followup(
        self, conversation_id: str, **params: Unpack[types.CreateConversationFollowupParams]
    ) -> types.ConversationFollowupResponse:
        """Send a message to the newest run of a conversation."""
        path = f"/agent/conversations/{segment('conversation_id', conversation_id)}/followups"
        return self._client.call(
            "POST", path, params, types.ConversationFollowupResponse, types.CreateConversationFollowupParams
        )


class ConversationsWithRawResponse:
    """Conversations, with whole responses."""

    def __init__(self, conversations: Conversations) -> None:
        self.retrieve = raw(conversations.retrieve)
        self.transcript = raw(conversations.transcript)
        self.submit_followup = raw(conversations.submit_followup)


class Artifacts:
    """What runs left: files, and links. ``artifacts`` of a run names them."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> ArtifactsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return ArtifactsWithRawResponse(self)

    def retrieve(self, uid: str, **options: Unpack[RequestOptions]) -> types.Artifact:
        """Return what is known of an artifact."""
        path = f"/agent/artifacts/{segment('uid', uid)}"
        return self._client.call("GET", path, options, types.Artifact)

    def download(self, uid: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return the bytes of a file that a run left. An agent wrote them: do not trust them."""
        path = f"/agent/artifacts/{segment('uid', uid)}/download"
        return self._client.call("GET", path, options, bytes)


class ArtifactsWithRawResponse:
    """Artifacts, with whole responses."""

    def __init__(self, artifacts: Artifacts) -> None:
        self.retrieve = raw(artifacts.retrieve)
        self.download = raw(artifacts.download)


class Skills:
    """Skills: the bundled ones, and those of the applied definitions."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> SkillsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return SkillsWithRawResponse(self)

    def list(self, **options: Unpack[RequestOptions]) -> types.BundledSkills:
        """Return the catalog, for grouping. The skills that a run had are its ``advertised_skills``."""
        return self._client.call("GET", "/agent/skills", options, types.BundledSkills)

    def defined(self, **params: Unpack[types.ListAgentSkillsParams]) -> types.ListAgentSkillsResponse:
        """Return the skills of the applied definitions."""
        return self._client.call(
            "GET", "/agent", params, types.ListAgentSkillsResponse, types.ListAgentSkillsParams
        )


class SkillsWithRawResponse:
    """Skills, with whole responses."""

    def __init__(self, skills: Skills) -> None:
        self.list = raw(skills.list)
        self.defined = raw(skills.defined)


class Identities:
    """The agents of the applied definitions."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> IdentitiesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return IdentitiesWithRawResponse(self)

    def list(self, **params: Unpack[types.ListAgentIdentitiesParams]) -> types.ListAgentIdentitiesResponse:
        """Return the agents of one factory, or of all."""
        return self._client.call(
            "GET",
            "/agent/identities",
            params,
            types.ListAgentIdentitiesResponse,
            types.ListAgentIdentitiesParams,
        )

    def retrieve(self, uid: str, **options: Unpack[RequestOptions]) -> types.AgentIdentity:
        """Return one agent."""
        path = f"/agent/identities/{segment('uid', uid)}"
        return self._client.call("GET", path, options, types.AgentIdentity)


class IdentitiesWithRawResponse:
    """Agents, with whole responses."""

    def __init__(self, identities: Identities) -> None:
        self.list = raw(identities.list)
        self.retrieve = raw(identities.retrieve)


class Schedules:
    """The schedule triggers of the applied definitions."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> SchedulesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return SchedulesWithRawResponse(self)

    def list(self, **options: Unpack[RequestOptions]) -> types.ListSchedulesResponse:
        """Return the schedules of all factories."""
        return self._client.call("GET", "/agent/schedules", options, types.ListSchedulesResponse)

    def retrieve(self, schedule_id: str, **options: Unpack[RequestOptions]) -> types.Schedule:
        """Return one schedule."""
        path = f"/agent/schedules/{segment('schedule_id', schedule_id)}"
        return self._client.call("GET", path, options, types.Schedule)


class SchedulesWithRawResponse:
    """Schedules, with whole responses."""

    def __init__(self, schedules: Schedules) -> None:
        self.list = raw(schedules.list)
        self.retrieve = raw(schedules.retrieve)


class Agent:
    """Agents: their runs, conversations, artifacts, skills and schedules."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def runs(self) -> Runs:
        """Runs of agents."""
        return Runs(self._client)

    @cached_property
    def conversations(self) -> Conversations:
        """Conversations, which outlive the runs in them."""
        return Conversations(self._client)

    @cached_property
    def artifacts(self) -> Artifacts:
        """What runs left: files, and links."""
        return Artifacts(self._client)

    @cached_property
    def skills(self) -> Skills:
        """Skills: the bundled ones, and those of the applied definitions."""
        return Skills(self._client)

    @cached_property
    def identities(self) -> Identities:
        """The agents of the applied definitions."""
        return Identities(self._client)

    @cached_property
    def schedules(self) -> Schedules:
        """The schedule triggers of the applied definitions."""
        return Schedules(self._client)

    @cached_property
    def with_raw_response(self) -> AgentWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AgentWithRawResponse(self)

    def models(self, **options: Unpack[RequestOptions]) -> types.ListModelsResponse:
        """Return the language models that settings and definitions name."""
        return self._client.call("GET", "/agent/models", options, types.ListModelsResponse)

    def environments(self, **params: Unpack[types.ListEnvironmentsParams]) -> types.ListEnvironmentsResponse:
        """Return the environments that definitions name."""
        return self._client.call(
            "GET", "/agent/environments", params, types.ListEnvironmentsResponse, types.ListEnvironmentsParams
        )


class AgentWithRawResponse:
    """Models and environments, with whole responses."""

    def __init__(self, agent: Agent) -> None:
        self.models = raw(agent.models)
        self.environments = raw(agent.environments)
