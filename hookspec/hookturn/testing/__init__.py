"""For hook authors: event factories, a scripted agent, assertions on outcomes, a pytest plugin.

It drives the real engine and knows nothing of agents and configuration. Names
are imported when they are asked for: pytest loads the plugin in every run.
"""
