"""A configured hook as a pluggy plugin, one module a kind of ``run:``. Knows no configuration files and no trust."""
