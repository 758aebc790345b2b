"""Views: access, form, one call, redirect or render."""
