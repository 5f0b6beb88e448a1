"""What type checkers must make of the package. Checked by mypy and pyright, not run."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import assert_type

from millwright import (
    APIResponse,
    AsyncEventStream,
    AsyncMillwright,
    DeliveryEvent,
    EventStream,
    Millwright,
    RunEvent,
)
from millwright import types as t
from millwright._async.agent import AsyncRunsPage
from millwright.webhooks import AsyncWebhookSender, DeliveryReceipt, WebhookSender


def synchronous(client: Millwright, sender: WebhookSender) -> None:
    assert_type(client.agent.runs.create(prompt="x", config={"name": "n"}, timeout=5), t.RunAgentResponse)
    assert_type(client.agent.runs.retrieve("r"), t.RunItem)
    assert_type(client.agent.runs.cancel("r"), str)
    assert_type(client.agent.runs.retrieve("r").created_at, datetime)
    for run in client.agent.runs.list(state="QUEUED", created_after=datetime.now()):
        assert_type(run, t.RunItem)
    page = client.agent.runs.list()
    assert_type(page.runs, list[t.RunItem])
    assert_type(page.response, t.ListRunsResponse)
    assert_type(page.get_next_page().runs, list[t.RunItem])
    assert_type(client.agent.runs.events("r"), EventStream[RunEvent])
    assert_type(client.factories.webhooks.deliveries.events("f", "w"), EventStream[DeliveryEvent])
    assert_type(client.agent.runs.with_raw_response.retrieve("r"), APIResponse[t.RunItem])
    assert_type(client.agent.runs.with_raw_response.list().parse().runs, list[t.RunItem])
    assert_type(client.get("/x", to=t.RunItem), t.RunItem)
    assert_type(client.with_raw_response.get("/x", to=t.RunItem), APIResponse[t.RunItem])
    assert_type(client.with_options(timeout=1), Millwright)
    assert_type(sender.send({}), DeliveryReceipt)

    client.agent.runs.create(promt="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.agent.runs.list(limit="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.keys.create(name="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def asynchronous(client: AsyncMillwright, sender: AsyncWebhookSender) -> None:
    assert_type(
        await client.agent.runs.create(prompt="x", config=t.AmbientAgentConfig(name="n")), t.RunAgentResponse
    )
    async for run in client.agent.runs.list(state=["QUEUED", "A_NEW_STATE"]):
        assert_type(run, t.RunItem)
    page = await client.agent.runs.list()
    assert_type(page.runs, list[t.RunItem])
    assert_type((await page.get_next_page()).runs, list[t.RunItem])
    assert_type(client.agent.runs.events("r"), AsyncEventStream[RunEvent])
    async with client.agent.runs.events("r") as events:
        async for event in events:
            assert_type(event.state, t.RunStateEvent | None)
    assert_type(await client.agent.runs.with_raw_response.list(), APIResponse[AsyncRunsPage])
    assert_type(await client.get("/x", to=t.RunItem), t.RunItem)
    assert_type(await sender.send({}), DeliveryReceipt)
