#!/bin/sh
echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "network", "updatedInput": {"command": "curl -sS https://example.net"}}}'
