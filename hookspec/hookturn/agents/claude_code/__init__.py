"""Claude Code: its tools and its recorded sessions."""
