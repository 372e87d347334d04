"""The resident process, which answers agents without a start of its own, and its thin client."""
