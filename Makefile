# The same without make: python3 manage.py run | test | check-code | fix-code
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help run test soak check fix bench shot

help:  ## List what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run:  ## Start everything in the foreground and print a sign-in link
	@$(PYTHON) manage.py run

test:  ## Run all tests on embedded servers and in a real browser
	@$(PYTHON) manage.py test

soak:  ## Kill and repeat for long, what the tests do a few times
	@EVALSITE_SOAK=1 EVALSITE_SKIP_BROWSER=1 $(PYTHON) manage.py test

check:  ## Check style, types, floors, migrations and templates
	@$(PYTHON) manage.py check-code

fix:  ## Repair what style and format checks can repair
	@$(PYTHON) manage.py fix-code

bench:  ## Measure uploads and the parsing of each format beside their floors, and memory
	@$(PYTHON) manage.py bench

shot:  ## Take screenshots of the main pages into .shots
	@$(PYTHON) manage.py shot
