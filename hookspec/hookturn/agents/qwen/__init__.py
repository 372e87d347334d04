"""Qwen Code: its tools and its recorded sessions."""
