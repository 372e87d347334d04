"""First-party plugins of hookturn. They use only what any plugin may use, and are found by entry points like any."""
