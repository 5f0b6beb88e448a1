"""Uses a client that was generated from api/openapi.yaml against a running server: client_generated.py URL KEY."""

import sys
import time
import uuid

from generated import AuthenticatedClient
from generated.api.default import cancel_run, create_followup, create_run, get_conversation, get_run, get_run_conversation, list_runs
from generated.models import AmbientAgentConfig, Error, ListRunsStateType0Item, RunAgentRequest, RunFollowupRequest
from generated.types import UNSET

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
stranger = AuthenticatedClient(base_url=sys.argv[1], token="mw_nobody")


def run_of(prompt, **more):
    answer = create_run.sync_detailed(client=client, body=RunAgentRequest(prompt=prompt, **more))
    assert answer.status_code == 200 and answer.parsed.run_id == answer.parsed.task_id, answer
    return answer.parsed.run_id


def ended(run_id):
    for _ in range(300):
        run = get_run.sync(client=client, run_id=run_id)
        if run.finished_at:
            return run
        time.sleep(0.1)
    raise AssertionError(f"run {run_id} does not end")


first = run_of("Say hello", title="A title", config=AmbientAgentConfig(name="checked", model_id="some-model"))
run = ended(first)
assert run.state == "SUCCEEDED" and run.title == "A title" and run.prompt == "Say hello", run
assert run.agent_config.name == "checked" and run.agent_config.model_id == "some-model", run.agent_config
assert run.creator.type_ == "service_account" and run.created_at <= run.updated_at, run

for i in range(3):
    ended(run_of(f"run {i}"))  # a run that changes meanwhile moves in the order of last changes
seen, cursor = [], UNSET
while True:
    page = list_runs.sync(client=client, limit=2, cursor=cursor)
    seen += [r.run_id for r in page.runs]
    if not page.page_info.has_next_page:
        break
    cursor = page.page_info.next_cursor
assert first in seen and len(set(seen)) == len(seen) >= 4, seen
named = list_runs.sync(client=client, name="checked", state=[ListRunsStateType0Item.SUCCEEDED, ListRunsStateType0Item.FAILED])
assert [r.run_id for r in named.runs] == [first], named

followup = create_followup.sync(client=client, run_id=first, body=RunFollowupRequest(message="And again"))
assert followup.outcome == "handoff_execution", followup
ended(first)
said = get_run_conversation.sync(client=client, run_id=first)
assert len(said.steps) == 2 and said.steps[1].messages[0].content[0].text == "And again", said
assert get_conversation.sync(client=client, id=said.conversation_id).conversation_id == said.conversation_id

for answer, status, code in [
    (get_run.sync_detailed(client=client, run_id=str(uuid.uuid4())), 404, "resource_not_found"),
    (create_run.sync_detailed(client=client, body=RunAgentRequest(prompt=" ")), 400, "invalid_request"),
    (cancel_run.sync_detailed(client=client, run_id=first), 400, "invalid_request"),
    (list_runs.sync_detailed(client=client, cursor="nonsense"), 400, "invalid_request"),
    (list_runs.sync_detailed(client=stranger), 401, "authentication_required"),
]:
    assert answer.status_code == status and isinstance(answer.parsed, Error), answer
    assert answer.parsed.code == code and answer.parsed.retryable is False and answer.parsed.trace_id, answer.parsed
    assert answer.headers["content-type"] == "application/problem+json", answer.headers
print("a generated client works")
