"""For senders and receivers: sign and send deliveries, verify events."""

from ._async.sender import AsyncWebhookSender
from ._delivery import DeliveryReceipt
from ._errors import WebhookVerificationError
from ._signing import sign, verify
from ._sync.sender import WebhookSender

__all__ = [
    "AsyncWebhookSender",
    "DeliveryReceipt",
    "WebhookSender",
    "WebhookVerificationError",
    "sign",
    "verify",
]
