# Everything that the project can do, each by one command. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := $(VENV)/made-from-requirements
SITE := _build/html
# As new as the last build that succeeded.
BUILT := _build/site-built
PORT ?= 8000
RUN ?= runs/multi30k-en-de
COURSE_VENV := .venv-course
# What starts the environments of other versions: small, where the book's is large.
STARTER := .venv-starter
STARTER_READY := $(STARTER)/made-from-requirements
RELEASES ?= newest
# How uv chooses for `make releases`, beside the newest that fit.
CHOOSE_lowest := --resolution lowest-direct
CHOOSE_pinned := --constraint requirements.txt
# What tests the package, as requirements.txt pins it; some releases of torch refuse the
# newest setuptools, so that has no pin.
TESTERS := beartype|hypothesis|ipykernel|packaging|pytest|pytest-xdist
PACKAGE_TESTS := tests/test_*.py $(addprefix tests/,data fast inference model parsing training)
COLAB_PYTHON ?=
CHAPTERS ?=
MINUTES ?= 2
PARTS ?= kills kills_of_two disk decoding inputs fuzz twice texts processors
UNKNOWN = $(filter-out $(wildcard notebooks/*.ipynb),$(CHAPTERS:%=notebooks/%.ipynb))
NOT_CHOSEN = $(filter-out $(CHAPTERS:%=notebooks/%.ipynb),$(wildcard notebooks/*.ipynb))
RUFF_FORMAT := $(BIN)/ruff format --extend-exclude '*.ipynb' .
# As narrow as the book's page shows without scrolling.
RUFF_FORMAT_NOTEBOOKS := $(BIN)/ruff format --line-length 79 notebooks

# One thread a process: on a shared machine two threads are slower than one.
export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help environment book test serve lint types times format pdf bench colab \
	releases safety links kernels audit soak reproducible pins site clean \
	course slides lab rebrand test-course new-enough-python

help: ## list the commands
	@echo "make …"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

book: environment ## execute what has changed and build the site into _build/html
	@echo "==> Notebooks: those that are not in the cache"
	@$(BIN)/python -m tools.site.execute --stale
	@$(MAKE) --no-print-directory site
	@echo
	@echo "The book is built: open $(SITE)/index.html, or run 'make serve'."

test: environment ## check style, package, notebooks that changed, site; FULL=1 for all
	@$(MAKE) --no-print-directory lint
	@echo "==> Tests: the package, the tools, the text"
	@$(BIN)/python -m tools.run_tests $(if $(FULL),--all)
	@echo "==> Notebooks: every cell of those whose outputs are not in the cache"
	@$(BIN)/python -m tools.site.execute $(if $(FULL),--all,--stale)
	@$(MAKE) --no-print-directory site
	@echo "==> Tests: the site in a browser, light and dark, wide and narrow"
	@$(BIN)/python -m pytest tests/site -q -n 2
	@echo
	@$(BIN)/python -m tools.site.browser && echo "Passed: style, package, notebooks, site." || \
		echo "Passed: style, package, notebooks. The site was built, but not opened."

serve: environment ## show the site, rebuilt as you write; CHAPTERS=… executes these only; PORT=…
	@$(if $(UNKNOWN),echo "There is no $(UNKNOWN): chapters are named as in CHAPTERS=03-attention."; exit 1)
	@$(BIN)/jupyter-book config sphinx . >/dev/null
	@$(if $(CHAPTERS),echo 'nb_execution_excludepatterns = "$(NOT_CHOSEN)".split()' >> conf.py)
	@PYTHONPATH=book/_ext $(BIN)/sphinx-autobuild . _build/live -t live $(if $(CHAPTERS),,-W) -n --keep-going -q \
		--port $(PORT) --ignore '*/.*' --ignore '*/_build/*' --ignore '*/__pycache__/*'

lint: environment ## check code and notebooks; changes nothing
	@echo "==> Style: ruff, the notebooks' normal form, the workflows"
	@$(BIN)/ruff check --quiet .
	@$(RUFF_FORMAT) --check --quiet && $(RUFF_FORMAT_NOTEBOOKS) --check --quiet || \
		{ echo "The layout of the files above is not ruff's: run 'make format'."; exit 1; }
	@$(BIN)/python -m tools.site.notebooks --check
	@$(BIN)/python -m tools.site.readme --check
	@$(BIN)/zizmor --offline --quiet --no-progress .github
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@echo "Style is clean."

types: environment ## check the package's types with pyright (fetches it the first time)
	@$(BIN)/pyright

times: environment ## note each chapter's run time, as its set-up cell will announce it
	@$(BIN)/python -m tools.site.announce_times

format: environment ## bring code and notebooks into their normal form
	@$(BIN)/ruff check --fix --quiet . || true
	@$(RUFF_FORMAT)
	@$(RUFF_FORMAT_NOTEBOOKS)
	@$(BIN)/python -m tools.site.notebooks
	@$(BIN)/python -m tools.site.readme

pdf: environment ## the whole built book as one PDF, _build/book.pdf (needs Chromium)
	@test -f $(SITE)/index.html || { echo "There is no site yet: run 'make book' first."; exit 1; }
	@echo "==> PDF: each page printed by Chromium, then joined"
	@$(BIN)/python -m tools.site.book_pdf

bench: environment ## measure speed beside other libraries; RUN=… is a trained model's folder
	@test -e $(RUN) || { echo "There is no $(RUN): benchmarks/README.md has the command that trains it."; exit 1; }
	@$(BIN)/python -m benchmarks.training_step
	@$(BIN)/python -m benchmarks.decoding $(RUN)

colab: $(STARTER_READY) ## run the chapters with Colab's versions (once: 5 GB); CHAPTERS=… for some
	@$(STARTER)/bin/python -m tools.site.colab $(CHAPTERS) --python "$(COLAB_PYTHON)"

releases: $(STARTER_READY) ## test the package with RELEASES=lowest, pinned or newest (once: 5 GB)
	@rm -rf build  # setuptools would take old files from it
	@$(STARTER)/bin/uv venv --quiet --clear --seed .venv-$(RELEASES)
	@$(STARTER)/bin/uv pip install --quiet --python .venv-$(RELEASES) $(CHOOSE_$(RELEASES)) \
		'.[book]' $$(grep -E '^($(TESTERS))==' requirements.txt) 'setuptools>=77'
	@env -u PYTHONPATH .venv-$(RELEASES)/bin/python -m pytest $(PACKAGE_TESTS) -q -n 2 \
		--confcutdir tests -p no:cacheprovider
	@test $(RELEASES) != newest || \
		$(STARTER)/bin/python -m tools.site.colab --ready .venv-newest/bin/python

safety: new-enough-python ## look for known vulnerabilities of what is pinned
	@$(PYTHON) -m venv _build/pip-audit
	@_build/pip-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	@for file in requirements.lock requirements.txt; do \
		_build/pip-audit/bin/pip-audit --strict --no-deps --disable-pip -r $$file || exit 1; done

links: environment ## look whether what the book links to elsewhere is still there
	@$(BIN)/jupyter-book config sphinx . >/dev/null
	@PYTHONPATH=book/_ext $(BIN)/sphinx-build -b linkcheck -D nb_execution_mode=off -q . _build/links

kernels: environment ## test the GPU's kernels without a GPU, in Triton's interpreter
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target _build/triton triton==3.9.0
	@PYTHONPATH=_build/triton TRITON_INTERPRET=1 $(BIN)/python -m pytest tests/fast/test_gpu_attention.py -q

audit: environment ## open every page: accessibility, links, weight, speed; for run-times
	@$(BIN)/python -m tools.site.audit

soak: environment ## kill trainings, damage files, …; MINUTES=… for each part, PARTS=… of them
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris==3.0.0 || \
		echo "atheris does not install here: the part 'fuzz' is passed over."
	@$(BIN)/python -m tests.soak $(PARTS) --minutes $(MINUTES) --record _build/soak.json

reproducible: environment ## build the site twice from the same outputs and compare the bytes
	@rm -rf _build/twice
	@for zone in UTC Asia/Kolkata; do \
		mkdir -p _build/twice/$$zone/_build && \
		cp -r _build/.jupyter_cache _build/twice/$$zone/_build && \
		TZ=$$zone $(BIN)/jupyter-book build . --path-output _build/twice/$$zone -W -n --keep-going -q >/dev/null || \
		exit 1; done
	@diff -rq _build/twice/UTC/_build/html _build/twice/Asia/Kolkata/_build/html && echo "Both builds are equal."

pins: environment ## find the newest versions and hashes of all that requirements.txt needs
	@grep -v '^torch==' requirements.txt | $(BIN)/uv pip compile - --quiet --universal --upgrade \
		--python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
		--custom-compile-command "make pins" --output-file requirements.lock

course: environment ## chapters and assignments for teaching, in _build/course; CHAPTERS=…
	@$(BIN)/python -m tools.course.make $(CHAPTERS)

slides: environment ## one deck a chapter, in _build/html/slides, looked over in a browser; CHAPTERS=…
	@$(BIN)/python -m tools.site.execute --stale $(CHAPTERS)
	@$(BIN)/python -m tools.site.slides.make $(CHAPTERS)
	@$(BIN)/python -m pytest tests/slides -q

lab: environment ## open the chapters in JupyterLab, which is fetched the first time
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint requirements.txt jupyterlab==4.6.6
	@$(BIN)/jupyter lab notebooks

test-course: environment ## mark assignments with nbgrader and Otter (an environment of its own)
	@test -x $(COURSE_VENV)/bin/python || $(BIN)/python -m venv $(COURSE_VENV)
	@$(BIN)/python -c 'import site; print(site.getsitepackages()[0], "$(CURDIR)/src", sep="\n")' > \
		"$$($(COURSE_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/book.pth"
	@$(COURSE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/course/requirements.txt
	@$(COURSE_VENV)/bin/python -m pytest tests/tools/course/test_tools.py -q

rebrand: environment ## after a fork: make rebrand REPO=https://github.com/me/my-book
	@$(BIN)/python -m tools.rebrand "$(REPO)"

clean: ## remove what was built; the environment stays
	rm -rf _build

# The steps that the commands above share.

site:
	@test -e $(BUILT) -a -e $(SITE)/index.html && test -z "$$(find . _build/.jupyter_cache/executed \
		\( -path './.*' -o -path ./_build -o -name __pycache__ \) -prune -o \
		-type f -newer $(BUILT) -print -quit)" && \
		echo "==> Site: nothing has changed since it was built" || \
		$(MAKE) --no-print-directory $(BUILT)

.PHONY: $(BUILT)
$(BUILT):
	@echo "==> Site: strict, every warning is an error"
	@mkdir -p _build && rm -f $@ && touch $@.begun
	@$(BIN)/jupyter-book build . -W -n --keep-going -q >/dev/null
	@$(BIN)/python -m tools.site.slides.make
	@mv $@.begun $@

environment: $(ENVIRONMENT)

new-enough-python:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "No $(PYTHON) here: install Python 3.11 or newer, or say PYTHON=/path/to/python."; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else \
		f"Python 3.11 or newer is needed, but $(PYTHON) is {v[0]}.{v[1]}: say PYTHON=/path/to/python.")'

$(ENVIRONMENT): requirements.txt requirements.lock pyproject.toml | new-enough-python
	@echo "==> Environment: $(VENV), from requirements.lock (the first time: minutes, and 2 to 5 GB)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep '^torch==' requirements.txt)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(STARTER_READY): requirements.txt | new-enough-python
	@$(PYTHON) -m venv $(STARTER)
	@$(STARTER)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint requirements.txt nbclient jupyter_client packaging pyyaml uv
	@touch $@
