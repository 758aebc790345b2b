"""One agent alone: frozen cases, stubbed tools, and the record of each run, as plain values.

Nothing here opens a socket, starts a process or reads a clock; `apps.isolation` does.
What an agent does alone is evidence about the agent on this input, not about the system
that it is a part of.
"""
