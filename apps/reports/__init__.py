"""Frozen report documents, and markdown and PDF of them."""
