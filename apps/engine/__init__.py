"""The rules, as plain Python: same trace and parameters, same answer."""
