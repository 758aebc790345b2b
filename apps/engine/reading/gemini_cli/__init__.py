"""Gemini CLI: messages and contents."""
