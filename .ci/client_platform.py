"""Uses the newer published client of an agent platform with the same API against a running server: client_platform.py URL KEY."""

import json
import sys
import time
import uuid

import warp_platform_sdk
from warp_platform_sdk import WarpClient

# Strict: an answer that is not of the client's types is an error.
client = WarpClient(base_url=sys.argv[1] + "/api/v1", api_key=sys.argv[2], _strict_response_validation=True, max_retries=0)
runs = client.agent.runs


def ended(run_id):
    for _ in range(300):
        run = runs.retrieve(run_id)
        if run.state in ("SUCCEEDED", "FAILED", "ERROR", "CANCELLED"):
            return run
        time.sleep(0.1)
    raise AssertionError(f"run {run_id} stays {run.state}")


(factory,) = client.factories.list()
assert client.factories.get(factory.uid) == factory and factory.agent_defaults and factory.repositories[0].repo == "shop", factory
(lead,) = client.agent.agent.list().agents
assert lead.agent_type == "FOREMAN" and lead.factory_uid == factory.uid and lead.harness.type == "claude", lead
assert client.agent.agent.get(lead.uid) == lead
assert client.agent.agent.list(factory_uid=str(uuid.uuid4())).agents == []
(schedule,) = client.agent.schedules.list().schedules
assert schedule.cron_schedule == "0 3 * * *" and schedule.history.next_run and client.agent.schedules.retrieve(schedule.id) == schedule, schedule
assert {m.id for m in client.agent.list_models().models} == {"auto", "claude-opus-5", "gpt-6", "opus"}
assert [e.uid for e in client.agent.list_environments(sort_by="name").environments] == ["env-1"]
(skill,) = client.agent.list().agents
assert skill.name == "triage" and skill.variants[0].id in lead.skills, skill

dispatched = client.factories.runs.create(factory.uid, prompt="Plan it")
assert dispatched.foreman_agent == "lead", dispatched
runs.cancel(dispatched.run_id)

first = client.agent.run(prompt="Say hello")
run = ended(first.run_id)
assert run.state == "SUCCEEDED", run
assert [e.event_type for e in runs.get_timeline(run.run_id).events] == ["oz_run_created", "oz_run_claimed", "agent_started", "oz_run_done"]
conversation = runs.get_conversation(run.run_id)
assert conversation.to_dict() == client.agent.conversations.retrieve(run.conversation_id).to_dict() and conversation.steps[0].messages, conversation
for transcript in runs.get_transcript(run.run_id), client.agent.conversations.get_transcript(run.conversation_id):
    assert json.loads(transcript.read())["conversation_id"] == run.conversation_id
followup = client.agent.conversations.submit_followup(run.conversation_id, message="And again")
assert followup.run_id == run.run_id and followup.outcome == "handoff_execution", followup
ended(run.run_id)
assert [r.run_id for r in runs.list(schedule_id=schedule.id)] == []

checked = client.factories.files.validate(files=[{"path": "automations/a/automation.md", "content": "---\ntriggers: [{provider: github, event: push}]\n---\nLook.\n"}])
assert checked.valid and [d.code for d in checked.diagnostics] == ["trigger-no-source"] and checked.deferred_resolutions == [], checked
version = client.factories.files.schemas.list().current_version
documents = client.factories.files.schemas.retrieve(version).documents
assert client.factories.files.schemas.get_document("webhook.schema.json", schema_version=version) == documents["webhook"]

for call in [
    lambda: runs.interrupt(run.run_id),
    lambda: client.agent.conversations.interrupt(run.conversation_id),
    lambda: list(client.factories.tasks.list(factory.uid)),
    lambda: client.factories.tasks.create(factory.uid, conversation_id=run.conversation_id, title="t", stage="TRIAGE"),
    lambda: client.agent.schedules.create(name="n", cron_schedule="0 1 * * *", prompt="p"),
    lambda: client.agent.schedules.pause(schedule.id),
    lambda: client.agent.agent.create(name="n"),
    lambda: client.agent.agent.delete(lead.uid),
    lambda: runs.list_handoff_attachments(run.run_id),
    lambda: runs.get_harness_usage(run.run_id),
]:
    try:
        raise AssertionError(f"no error: {call()}")
    except warp_platform_sdk.UnprocessableEntityError as e:
        assert e.body["code"] == "operation_not_supported" and e.body["detail"], e.body
print("a newer published client works")
