"""GitHub Copilot CLI: its tools and its recorded sessions."""
