"""opencode: its tools."""
