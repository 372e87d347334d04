"""Gemini CLI: its tools and its recorded sessions."""
