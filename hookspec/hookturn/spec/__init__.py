"""THE CONTRACT: everything that a hook author needs to read, and nothing that calls a hook."""
