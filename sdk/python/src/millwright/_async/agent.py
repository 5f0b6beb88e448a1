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
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, clock, raw, sleep
from ._stream import AsyncEventStream
from .pagination import AsyncPage


class AsyncRunsPage(AsyncPage["types.RunItem", "types.ListRunsResponse"]):
    """A page of runs."""

    model, member = "ListRunsResponse", "runs"

    @property
    def runs(self) -> list[types.RunItem]:
        """The runs of this page."""
        return self.items


class AsyncRuns:
    """Runs of agents."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncRunsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncRunsWithRawResponse(self)

    async def create(self, **params: Unpack[types.CreateRunParams]) -> types.RunAgentResponse:
        """Start a run. A retry never starts a second one: every call has an idempotency key."""
        return await self._client.call(
            "POST", "/agent/runs", params, types.RunAgentResponse, types.CreateRunParams
        )

    def list(self, **params: Unpack[types.ListRunsParams]) -> AsyncPageRequest[AsyncRunsPage, types.RunItem]:
        """List runs, the last updated first."""
        return self._client.pages("/agent/runs", params, AsyncRunsPage, types.ListRunsParams)

    async def retrieve(self, run_id: str, **options: Unpack[RequestOptions]) -> types.RunItem:
        """Return one run in full."""
        return await self._client.call(
            "GET", f"/agent/runs/{segment('run_id', run_id)}", options, types.RunItem
        )

    async def cancel(self, run_id: str, **options: Unpack[RequestOptions]) -> str:
        """Cancel a run that has not ended, and return its ID."""
        return await self._client.call(
            "POST", f"/agent/runs/{segment('run_id', run_id)}/cancel", options, str
        )

    async def retry(self, run_id: str, **options: Unpack[RequestOptions]) -> types.RunAgentResponse:
        """Start a run that has ended again, as a new run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/retry"
        return await self._client.call("POST", path, options, types.RunAgentResponse)

    async def outputs(self, run_id: str, **options: Unpack[RequestOptions]) -> types.ListOutputsResponse:
        """Return what the server performs for the run at a forge."""
        path = f"/agent/runs/{segment('run_id', run_id)}/outputs"
        return await self._client.call("GET", path, options, types.ListOutputsResponse)

    async def open_pull_request(
        self, run_id: str, **params: Unpack[types.OpenPullRequestParams]
    ) -> types.RunOutput:
        """Open a pull request from the changes of the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/outputs"
        return await self._client.call("POST", path, params, types.RunOutput, types.OpenPullRequestParams)

    async def approve_output(
        self, run_id: str, output_uid: str, **options: Unpack[RequestOptions]
    ) -> types.RunOutput:
        """Agree to a staged output, which the server then performs."""
        return await self._decide(run_id, output_uid, "approve", options)

    async def reject_output(
        self, run_id: str, output_uid: str, **options: Unpack[RequestOptions]
    ) -> types.RunOutput:
        """Reject a staged output."""
        return await self._decide(run_id, output_uid, "reject", options)

    async def retry_output(
        self, run_id: str, output_uid: str, **options: Unpack[RequestOptions]
    ) -> types.RunOutput:
        """Try a failed output again."""
        return await self._decide(run_id, output_uid, "retry", options)

    async def _decide(
        self, run_id: str, output_uid: str, decision: str, options: RequestOptions
    ) -> types.RunOutput:
        path = (
            f"/agent/runs/{segment('run_id', run_id)}/outputs/{segment('output_uid', output_uid)}/{decision}"
        )
        return await self._client.call("POST", path, options, types.RunOutput)

    async def submit_followup(
        self, run_id: str, **params: Unpack[types.CreateFollowupParams]
    ) -> types.RunFollowupResponse:
        """Send a message to a run: it joins the prompt, waits for the execution to end, or reopens the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/followups"
        return await self._client.call(
            "POST", path, params, types.RunFollowupResponse, types.CreateFollowupParams
        )

    async def answer(
        self, run_id: str, **params: Unpack[types.AnswerQuestionParams]
    ) -> types.RunAnswerResponse:
        """Answer what the agent of a run asks; ``questions`` of the run has its questions and their choices."""
        path = f"/agent/runs/{segment('run_id', run_id)}/answers"
        return await self._client.call(
            "POST", path, params, types.RunAnswerResponse, types.AnswerQuestionParams
        )

    async def conversation(self, run_id: str, **options: Unpack[RequestOptions]) -> types.Conversation:
        """Return the conversation of the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/conversation"
        return await self._client.call("GET", path, options, types.Conversation)

    async def timeline(self, run_id: str, **options: Unpack[RequestOptions]) -> types.RunTimeline:
        """Return the changes of the run's state, from its creation on."""
        path = f"/agent/runs/{segment('run_id', run_id)}/timeline"
        return await self._client.call("GET", path, options, types.RunTimeline)

    async def transcript(self, run_id: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return the conversation as the bytes of a JSON file."""
        path = f"/agent/runs/{segment('run_id', run_id)}/transcript"
        return await self._client.call("GET", path, options, bytes)

    async def attachment(self, run_id: str, file_name: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return the bytes of a file of the run."""
        path = f"/agent/runs/{segment('run_id', run_id)}/attachments/{segment('file_name', file_name)}"
        return await self._client.call("GET", path, options, bytes)

    def events(
        self, run_id: str, *, last_event_id: str | None = None, **options: Unpack[RequestOptions]
    ) -> AsyncEventStream[RunEvent]:
        """Follow the state changes and messages of a run, from the beginning or after an event.

        The stream ends when the run has. A connection that drops is made again where it stood, up to
        ``max_retries`` times in a row, 5 by default.
        """
        path = f"/agent/runs/{segment('run_id', run_id)}/events"
        return self._client.events(path, options, read_run_event, ends_stream, last_event_id)

    stream = events

    async def wait(
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
            run = await self.retrieve(run_id, **options)
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
            await sleep(pause)
            attempt += 1


class AsyncRunsWithRawResponse:
    """Runs, with whole responses."""

    def __init__(self, runs: AsyncRuns) -> None:
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


class AsyncConversations:
    """Conversations, which outlive the runs in them."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncConversationsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncConversationsWithRawResponse(self)

    async def retrieve(self, conversation_id: str, **options: Unpack[RequestOptions]) -> types.Conversation:
        """Return the messages of all runs of a conversation."""
        path = f"/agent/conversations/{segment('conversation_id', conversation_id)}"
        return await self._client.call("GET", path, options, types.Conversation)

    async def transcript(self, conversation_id: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return a conversation as the bytes of a JSON file."""
        path = f"/agent/conversations/{segment('conversation_id', conversation_id)}/transcript"
        return await self._client.call("GET", path, options, bytes)

    async def submit_followup(
        self, conversation_id: str, **params: Unpack[types.CreateConversationFollowupParams]
    ) -> types.ConversationFollowupResponse:
        """Send a message to the newest run of a conversation."""
        path = f"/agent/conversations/{segment('conversation_id', conversation_id)}/followups"
        return await self._client.call(
            "POST", path, params, types.ConversationFollowupResponse, types.CreateConversationFollowupParams
        )


class AsyncConversationsWithRawResponse:
    """Conversations, with whole responses."""

    def __init__(self, conversations: AsyncConversations) -> None:
        self.retrieve = raw(conversations.retrieve)
        self.transcript = raw(conversations.transcript)
        self.submit_followup = raw(conversations.submit_followup)


class AsyncArtifacts:
    """What runs left: files, and links. ``artifacts`` of a run names them."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncArtifactsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncArtifactsWithRawResponse(self)

    async def retrieve(self, uid: str, **options: Unpack[RequestOptions]) -> types.Artifact:
        """Return what is known of an artifact."""
        path = f"/agent/artifacts/{segment('uid', uid)}"
        return await self._client.call("GET", path, options, types.Artifact)

    async def download(self, uid: str, **options: Unpack[RequestOptions]) -> bytes:
        """Return the bytes of a file that a run left. An agent wrote them: do not trust them."""
        path = f"/agent/artifacts/{segment('uid', uid)}/download"
        return await self._client.call("GET", path, options, bytes)


class AsyncArtifactsWithRawResponse:
    """Artifacts, with whole responses."""

    def __init__(self, artifacts: AsyncArtifacts) -> None:
        self.retrieve = raw(artifacts.retrieve)
        self.download = raw(artifacts.download)


class AsyncSkills:
    """Skills: the bundled ones, and those of the applied definitions."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncSkillsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncSkillsWithRawResponse(self)

    async def list(self, **options: Unpack[RequestOptions]) -> types.BundledSkills:
        """Return the catalog, for grouping. The skills that a run had are its ``advertised_skills``."""
        return await self._client.call("GET", "/agent/skills", options, types.BundledSkills)

    async def defined(self, **params: Unpack[types.ListAgentSkillsParams]) -> types.ListAgentSkillsResponse:
        """Return the skills of the applied definitions."""
        return await self._client.call(
            "GET", "/agent", params, types.ListAgentSkillsResponse, types.ListAgentSkillsParams
        )


class AsyncSkillsWithRawResponse:
    """Skills, with whole responses."""

    def __init__(self, skills: AsyncSkills) -> None:
        self.list = raw(skills.list)
        self.defined = raw(skills.defined)


class AsyncIdentities:
    """The agents of the applied definitions."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncIdentitiesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncIdentitiesWithRawResponse(self)

    async def list(
        self, **params: Unpack[types.ListAgentIdentitiesParams]
    ) -> types.ListAgentIdentitiesResponse:
        """Return the agents of one factory, or of all."""
        return await self._client.call(
            "GET",
            "/agent/identities",
            params,
            types.ListAgentIdentitiesResponse,
            types.ListAgentIdentitiesParams,
        )

    async def retrieve(self, uid: str, **options: Unpack[RequestOptions]) -> types.AgentIdentity:
        """Return one agent."""
        path = f"/agent/identities/{segment('uid', uid)}"
        return await self._client.call("GET", path, options, types.AgentIdentity)


class AsyncIdentitiesWithRawResponse:
    """Agents, with whole responses."""

    def __init__(self, identities: AsyncIdentities) -> None:
        self.list = raw(identities.list)
        self.retrieve = raw(identities.retrieve)


class AsyncSchedules:
    """The schedule triggers of the applied definitions."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncSchedulesWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncSchedulesWithRawResponse(self)

    async def list(self, **options: Unpack[RequestOptions]) -> types.ListSchedulesResponse:
        """Return the schedules of all factories."""
        return await self._client.call("GET", "/agent/schedules", options, types.ListSchedulesResponse)

    async def retrieve(self, schedule_id: str, **options: Unpack[RequestOptions]) -> types.Schedule:
        """Return one schedule."""
        path = f"/agent/schedules/{segment('schedule_id', schedule_id)}"
        return await self._client.call("GET", path, options, types.Schedule)


class AsyncSchedulesWithRawResponse:
    """Schedules, with whole responses."""

    def __init__(self, schedules: AsyncSchedules) -> None:
        self.list = raw(schedules.list)
        self.retrieve = raw(schedules.retrieve)


class AsyncAgent:
    """Agents: their runs, conversations, artifacts, skills and schedules."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def runs(self) -> AsyncRuns:
        """Runs of agents."""
        return AsyncRuns(self._client)

    @cached_property
    def conversations(self) -> AsyncConversations:
        """Conversations, which outlive the runs in them."""
        return AsyncConversations(self._client)

    @cached_property
    def artifacts(self) -> AsyncArtifacts:
        """What runs left: files, and links."""
        return AsyncArtifacts(self._client)

    @cached_property
    def skills(self) -> AsyncSkills:
        """Skills: the bundled ones, and those of the applied definitions."""
        return AsyncSkills(self._client)

    @cached_property
    def identities(self) -> AsyncIdentities:
        """The agents of the applied definitions."""
        return AsyncIdentities(self._client)

    @cached_property
    def schedules(self) -> AsyncSchedules:
        """The schedule triggers of the applied definitions."""
        return AsyncSchedules(self._client)

    @cached_property
    def with_raw_response(self) -> AsyncAgentWithRawResponse:
        """The same methods, answering with headers, status and body."""
        return AsyncAgentWithRawResponse(self)

    async def models(self, **options: Unpack[RequestOptions]) -> types.ListModelsResponse:
        """Return the language models that settings and definitions name."""
        return await self._client.call("GET", "/agent/models", options, types.ListModelsResponse)

    async def environments(
        self, **params: Unpack[types.ListEnvironmentsParams]
    ) -> types.ListEnvironmentsResponse:
        """Return the environments that definitions name."""
        return await self._client.call(
            "GET", "/agent/environments", params, types.ListEnvironmentsResponse, types.ListEnvironmentsParams
        )


class AsyncAgentWithRawResponse:
    """Models and environments, with whole responses."""

    def __init__(self, agent: AsyncAgent) -> None:
        self.models = raw(agent.models)
        self.environments = raw(agent.environments)
