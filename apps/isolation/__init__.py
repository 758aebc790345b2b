"""Running one agent alone: the sandbox, the wall around calls to targets, their drivers.

Plain Python that opens sockets and starts processes; no Django, no database. What an
agent is given and what its run meant is the engine's to say.
"""
