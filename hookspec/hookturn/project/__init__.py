"""Puts an engine together for a project: configuration layers, trust, discovery of plugins, builtins."""
