# Everything a person or a machine runs here. `make demo` and `make test` are enough to begin.
.DEFAULT_GOAL := help
.PHONY: mcp-conformance mcp-reference mcp-crash mcp-bench mcp-server-bench undo help demo test test-all check house docs golden format bench burst damage patch-check shell-policy findtools escapes skills-check skills-speed real crash-sessions crash rewinds children-crash children-bench jobs ignore-trees weak-model peers-cases text-calls chaos real-server first-day peers smoke schedules texts tui captures contact-sheets looks web-check index-speed index-crash memory-crash speech pages search-eval search-fit search-policy shows clean work-crash journal-damage tasks-bench

# The first Python of 3.11 or newer that can make a virtual environment; PYTHON=... overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PY := .venv/bin/python
STAMP := .venv/.installed
WORKERS ?= 4
CRASHES ?= 1000
REWINDS ?= 200
WORKKILLS ?= 1000
SEARCH_DATA ?= .scratch/search
# The suite in several processes, where pytest-xdist is there.
PYTEST = PYTHONDONTWRITEBYTECODE= $(PY) -m pytest $(SELECTED) \
  $$($(PY) -c 'import xdist; print("-n $(WORKERS) --dist loadfile --no-loadscope-reorder")' 2>/dev/null)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "CodeWhale needs Python 3.11 or newer with venv (or: make PYTHON=/path/to/python)"; exit 2; }
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@echo "Installing CodeWhale and its tools into .venv ..."
	@$(PY) -m pip install -q -e '.[dev]'
	@touch $@

demo: $(STAMP) ## the main job once, on a scratch repository, with an embedded scripted model
	@$(PY) scripts/demo.py

test: SELECTED = -m "not slow"
test: $(STAMP) ## the test suite but for the slow tests: some minutes
	@$(PYTEST)

test-all: SELECTED =
test-all: $(STAMP) ## the whole test suite, as CI runs it
	@$(PYTEST)

check: $(STAMP) ## format, lint, types, floor plan, papers up to date
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) scripts/catalog.py --check
	@$(PY) scripts/docs.py --check
	@$(PY) -m pytest tests/house

house: $(STAMP) ## the floor plan alone
	@$(PY) -m pytest tests/house

docs: $(STAMP) ## write the catalog and the generated parts of the papers again
	@$(PY) scripts/catalog.py
	@$(PY) scripts/docs.py --write

golden: $(STAMP) ## take the head bytes as they are now for the ones checked in: look at the difference
	@$(PY) tests/house/test_golden.py
	@git --no-pager diff --stat -- tests/house/golden

format: $(STAMP) ## format and fix what ruff can fix
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

bench: $(STAMP) ## speed and size against a floor agent, in figures and bounds
	@$(PY) scripts/bench.py

burst: $(STAMP) ## what a streamed answer costs from socket to event, against the barest reader
	@$(PY) scripts/burst.py

captures: $(STAMP) ## draw the captures of the terminal interface in docs/captures again
	@$(PY) scripts/captures.py

first-day: $(STAMP) ## a first day in tmux: what each task takes in keys and approvals, against its bound; writes the table in docs
	@$(PY) scripts/first_day.py --write

peers: $(STAMP) ## other terminal agents beside this one over the same scripted endpoint; writes the README's table
	@$(PY) scripts/peers.py --write

contact-sheets: $(STAMP) ## every screen at four widths, in all themes and both languages, one picture a theme
	@$(PY) scripts/contact_sheets.py

looks: $(STAMP) ## ten scenes of the real program in tmux, at three sizes, dark and light, into .scratch/looks
	@$(PY) scripts/looks.py

web-check: $(STAMP) ## the interface in headless Chromium: title, focus, a typed turn and an approval; skipped without one
	@$(PY) -m pytest tests/scenarios/test_browser.py -q -rs

tui: $(STAMP) ## what the terminal interface costs on a real pseudo-terminal: first paint, keys, scrolling, memory
	@$(PY) scripts/tui.py

index-speed: $(STAMP) ## how fast a tree is indexed, checked and kept true: 10,000 files of real source
	@$(PY) scripts/indexspeed.py

memory-crash: $(STAMP) ## two writers and a person at one file of facts, and 200 killed writers; nothing is missing after it
	@$(PY) scripts/memorycrash.py

index-crash: $(STAMP) ## 2,000 changes and 200 kills, after each of which the index equals one made from nothing
	@$(PY) scripts/indexcrash.py

pages: $(STAMP) ## what of 40 marked pages is kept by fetch_url, and how long pages take to be read
	@$(PY) scripts/pages.py

speech: $(STAMP) ## 200 sentences in five languages by espeak-ng, measured with sox (skipped without them)
	@$(PY) scripts/speech.py

search-eval: $(STAMP) ## how well code search finds files with known answers (SEARCH_DATA=folder), next to other ways
	@$(PY) scripts/search_eval.py "$(SEARCH_DATA)" $(if $(SEMBLE),--semble $(SEMBLE))

search-fit: $(STAMP) ## fit the weights of code search on SEARCH_DATA and put them into the package
	@$(PY) scripts/fit_search.py "$(SEARCH_DATA)" --write

search-policy: $(STAMP) ## calls and tokens to find code with codebase_search and with grep and names alone (SEARCH_DATA)
	@$(PY) scripts/search_policy.py "$(SEARCH_DATA)"

real: $(STAMP) ## repair broken open-source packages through the front door
	@$(PY) scripts/real.py

crash-sessions: $(STAMP) ## kill -9 the harness CRASHES times and look for loss in its sessions
	@$(PY) scripts/crash.py --kills $(CRASHES)

crash: crash-sessions ## the same, and 50 times each in the middle of checkouts and of skills
	@CODEWHALE_KILLS=50 $(PY) -m pytest tests/scenarios/test_worktrees.py tests/scenarios/test_skill_lives.py -q -n 0 -k 'killed or after_a_kill'

mcp-server-bench: $(STAMP) ## time to the first answer of `codewhale mcp serve`, results of 100 MB, and kill -9 in its calls
	@$(PY) scripts/mcp_server_bench.py

rewinds: $(STAMP) ## kill -9 whoever goes back, forks, exports and queues, REWINDS times, and look for loss
	@$(PY) scripts/rewindcrash.py --kills $(REWINDS)

work-crash: $(STAMP) ## kill -9 processes that work at tasks, WORKKILLS times, 200 of them at named moments, and look for loss
	@$(PY) scripts/workcrash.py --kills $(WORKKILLS)

journal-damage: $(STAMP) ## spoil the journal in 200 places: it opens, or is set aside and said so, and tasks are found again
	@$(PY) scripts/journaldamage.py

children-crash: $(STAMP) ## kill -9 a process whose session has sub-agents at work, REWINDS times, and look for loss
	@$(PY) scripts/childcrash.py --kills $(REWINDS)

tasks-bench: $(STAMP) ## 10,000 tasks listed, read and claimed by ten processes, in figures and bounds
	@$(PY) scripts/tasksbench.py

children-bench: $(STAMP) ## twenty sub-agents of fifty steps and a fork of a large log, in figures and bounds
	@$(PY) scripts/children.py

jobs: $(STAMP) ## a thousand background jobs and 10 GB of output, in figures and bounds
	@$(PY) scripts/jobs.py

findtools: $(STAMP) ## how well a need finds its tool among hundreds, and how fast
	@$(PY) scripts/findtools.py

shell-policy: $(STAMP) ## a million command lines judged, ten thousand allowed ones run in a jail of stubs
	@$(PY) scripts/shellpolicy.py

damage: $(STAMP) ## spoil thousands of tool calls and see that each comes back or is refused
	@$(PY) scripts/damage.py

patch-check: $(STAMP) ## a thousand random patches against git apply, and cuts of five hundred at every line
	@$(PY) scripts/patchcheck.py

texts: $(STAMP) ## every text that a person can read, each with its place (PLACE=part of one)
	@$(PY) scripts/texts.py "$(PLACE)"

undo: $(STAMP) ## what keeping changes undoable costs in a repository of 10,000 files
	@$(PY) scripts/undo.py

ignore-trees: $(STAMP) ## 2,000 random trees with ignore rules, each path judged by us and by git
	@$(PY) scripts/ignoretrees.py

skills-check: $(STAMP) ## 200 skills judged by us and by the standard's own validator (SKILLS_REF=its program; skipped without it)
	@$(PY) scripts/skillscheck.py $(SKILLS_REF)

mcp-conformance: $(STAMP) ## the public conformance suite of MCP against client and server, and its inspector (NPM=folder of an installation; skipped without it)
	@NPM="$(NPM)" $(PY) scripts/mcp_conformance.py
	@NPM="$(NPM)" $(PY) scripts/mcp_conformance_server.py

mcp-reference: $(STAMP) ## the three public reference servers driven through whole turns (NPM=folder of an installation; skipped without it)
	@NPM="$(NPM)" $(PY) scripts/mcp_reference.py

mcp-crash: $(STAMP) ## kill the broker and MCP servers in the middle of calls, REWINDS times, and look for loss and repeats
	@$(PY) scripts/mcp_crash.py --kills $(REWINDS)

mcp-bench: $(STAMP) ## what MCP servers cost: the first request, memory, a warm call, and results of any size
	@$(PY) scripts/mcp_bench.py

skills-speed: $(STAMP) ## how long 500 skills take to be looked at, against its bound
	@$(PY) scripts/skillsspeed.py

escapes: $(STAMP) ## try a hundred ways out of the sandbox, as root and as an ordinary user
	@$(PY) scripts/escapes.py

weak-model: $(STAMP) ## what repairing calls is worth to a model that errs, over 20 tasks and 50 seeds
	@$(PY) scripts/weak_model.py

peers-cases: $(STAMP) ## 58 damaged answers through the front door, at a lenient and a strict endpoint
	@$(PY) scripts/peers_cases.py

chaos: $(STAMP) ## tasks in three wire formats against a mock of providers that breaks on purpose and judges its client
	@$(PY) scripts/chaos.py

real-server: $(STAMP) ## llama.cpp with real weights, asked, cancelled, overflown and restarted through the front door
	@$(PY) scripts/real_server.py

text-calls: $(STAMP) ## 300 answers that hold a call as text, at a model with a native channel for calls and at one without
	@$(PY) scripts/text_calls.py

schedules: $(STAMP) ## 100 automations over 400 days, two changes of daylight saving and two jumps of the clock
	@$(PY) scripts/schedules.py

smoke: $(STAMP) ## every command-line door once, from an installed wheel
	@$(PY) scripts/smoke.py

shows: $(STAMP) ## the demonstration lines, each with its bound; writes shows.json (MISSED=1: those that did not hold)
	@$(PY) scripts/shows.py $(if $(MISSED),--missed)

clean: ## remove what was built, installed and measured
	@rm -rf .venv .scratch dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis shows.json
