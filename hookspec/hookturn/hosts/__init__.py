"""Python agent frameworks that hookturn plugs into, and contracts that it shares with them."""
