"""Uses a published client of an agent platform with the same runs API against a running server: client_published.py URL KEY."""

import base64
import datetime
import json
import sys
import time
import uuid

import oz_agent_sdk
from oz_agent_sdk import OzAPI

# Strict: an answer that is not of the client's types is an error.
client = OzAPI(base_url=sys.argv[1] + "/api/v1", api_key=sys.argv[2], _strict_response_validation=True, max_retries=0)
runs = client.agent.runs


def reached(run_id, *states):
    for _ in range(300):
        run = runs.retrieve(run_id)
        if run.state in states:
            return run
        time.sleep(0.1)
    raise AssertionError(f"run {run_id} stays {run.state}")


first = client.agent.run(
    prompt="Say hello",
    title="A title",
    config={"name": "published", "model_id": "some-model", "mcp_servers": {"tools": {"command": "tools", "env": {"KEY": "secret"}}}},
    metadata={"ticket": "T-1"},
    attachments=[{"file_name": "a.png", "mime_type": "image/png", "data": base64.b64encode(b"png").decode()}],
    mode="normal",
    team=True,
    interactive=False,
)
assert first.run_id == first.task_id and first.state == "QUEUED", first
run = reached(first.run_id, "SUCCEEDED")
assert run.title == "A title" and run.source == "API" and run.metadata == {"ticket": "T-1"}, run
assert run.agent_config.api_model_id == "some-model" and run.agent_config.mcp_servers["tools"].env == {"KEY": "***"}, run.agent_config
assert run.created_at <= run.started_at <= run.updated_at and run.session_link.endswith(run.run_id), run

for i in range(3):
    client.agent.run(prompt=f"run {i}")
seen = [r.run_id for r in runs.list(limit=2, sort_by="created_at")]
assert first.run_id in seen and len(set(seen)) == len(seen) >= 4, seen
day = datetime.timedelta(days=1)
found = runs.list(
    state=["SUCCEEDED", "FAILED"],
    metadata={"ticket": "T-1"},
    created_after=run.created_at - day,
    created_before=run.created_at + day,
    q="HELLO",
    name="published",
    source="API",
    execution_location="REMOTE",
    sort_by="created_at",
    sort_order="asc",
)
assert [r.run_id for r in found] == [first.run_id], found
assert [r.run_id for r in runs.list(created_before=run.created_at - day)] == []

assert runs.submit_followup(first.run_id, message="And again", mode="normal")["outcome"] == "handoff_execution"
reached(first.run_id, "SUCCEEDED")

slow = client.agent.run(prompt="Take your time", config={"harness": {"type": "claude"}})
reached(slow.run_id, "INPROGRESS")
assert json.loads(runs.cancel(slow.run_id)) == slow.run_id  # this client hands out the text of the answer
assert runs.retrieve(slow.run_id).state == "CANCELLED"

for call, error, code in [
    (lambda: runs.retrieve(str(uuid.uuid4())), oz_agent_sdk.NotFoundError, "resource_not_found"),
    (lambda: client.agent.run(prompt=" "), oz_agent_sdk.BadRequestError, "invalid_request"),
    (lambda: runs.cancel(slow.run_id), oz_agent_sdk.BadRequestError, "invalid_request"),
    (lambda: runs.list(cursor="nonsense"), oz_agent_sdk.BadRequestError, "invalid_request"),
    (lambda: client.with_options(api_key="mw_nobody").agent.runs.list(), oz_agent_sdk.AuthenticationError, "authentication_required"),
]:
    try:
        raise AssertionError(f"no error: {call()}")
    except error as e:
        assert e.body["code"] == code and e.body["retryable"] is False and e.body["trace_id"], e.body
print("a published client works")
