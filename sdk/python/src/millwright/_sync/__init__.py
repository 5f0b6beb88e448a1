"""The synchronous half of the package. It is made from the asynchronous half by scripts/sync."""
