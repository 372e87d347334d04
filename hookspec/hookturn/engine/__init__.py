"""Calls hooks: registration, order, dispatch, merging, permissions, sessions. Knows no files and no agents."""
