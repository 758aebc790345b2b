"""ATIF: fields, steps and traces."""
