import json
import sys

if "/etc" in json.load(sys.stdin)["tool_args"]:
    print("deny: not in /etc")
    sys.exit(1)
