"""The pytest plugin: fixtures for hook authors. Loaded in every pytest run, so it imports nothing of the engine."""
