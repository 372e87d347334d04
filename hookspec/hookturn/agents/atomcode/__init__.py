"""AtomCode: its tools."""
