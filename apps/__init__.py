"""The product: one package per floor of the house; see README.md beside this file."""
