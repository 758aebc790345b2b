"""What is taken out of a trace before it is stored, and files that nobody else reads.

`rules` and `redaction` replace secrets in bodies, `structure` and `exports` drop the
bodies altogether, `sealed` encrypts files. Nothing here claims that what is left says
nothing about anyone.
"""
