"""OpenAI Codex: its tools and its recorded sessions."""
