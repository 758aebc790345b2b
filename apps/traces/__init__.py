"""Uploads, traces, steps, bodies, tasks with their trials."""
