"""What runs inside of the sandbox, before and around the agent.

The modules here import the standard library and each other, nothing else: the entry
script loads them by path into whatever Python (3.9 or later) the agent runs with.
"""
