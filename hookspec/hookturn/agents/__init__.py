"""What is known of agent programs: their tools, their recorded sessions, their hooks and configurations.

One folder an agent, each of the same shape; agents never import each other.
"""
