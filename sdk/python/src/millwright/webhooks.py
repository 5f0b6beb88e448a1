"""For senders: sign and send deliveries."""

from ._async.sender import AsyncWebhookSender
from ._delivery import DeliveryReceipt
from ._signing import sign
from ._sync.sender import WebhookSender

__all__ = ["AsyncWebhookSender", "DeliveryReceipt", "WebhookSender", "sign"]
