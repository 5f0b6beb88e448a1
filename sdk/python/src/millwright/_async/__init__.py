"""The asynchronous half of the package. The synchronous half is made from it by scripts/sync."""
