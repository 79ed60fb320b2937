# netboot: two commands on a fresh machine are `make demo` and `make test`; each does its own set-up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
# Machines, namespaces and chroots need root; whoever is not root goes through sudo, as set-up does.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -E env PATH="$(PATH)" PYTHONDONTWRITEBYTECODE=1)
KEEP ?=
RECIPE ?=
FIRMWARE ?=
DISCOVER ?=
SECONDS ?= 60
# Three workers, what belongs together on one of them: docs/decisions/019. What hangs fails: docs/decisions/282.
PYTEST := -m pytest -n 3 -p tests.plugins.workers -p tests.plugins.budgets -p tests.plugins.hangs

.PHONY: help setup demo test check lint unit client pictures fuzz mutants hosts cluster bench wheel deb man container chart clean
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: ## system packages, virtual environment, locked dependencies (seconds when nothing changed)
	@./setup.sh

demo: setup ## from nothing to a Ready node: image, cluster, service, a disk-less machine with a TPM, a Pod, a rollout (KEEP=1: leave it running; RECIPE=…; FIRMWARE=uefi; DISCOVER=1: the machine is not declared, and introduces itself; STATE=kubernetes: three replicas, of which one is killed)
	@$(PY) -m lab.demo $(if $(KEEP),--keep) $(if $(RECIPE),--recipe '$(RECIPE)') $(if $(FIRMWARE),--firmware '$(FIRMWARE)') $(if $(DISCOVER),--discover) $(if $(STATE),--state '$(STATE)')

test: setup lint ## everything: lint, types, contracts, unit, tools, boots of real machines
	@$(SUDO) tests/in_memory.sh $(PY) $(PYTEST) -p tests.plugins.reruns -p tests.plugins.disk tests -rfER

check: setup lint unit ## lint, types, contracts, unit tests: about three minutes on two free cores

lint: setup ## ruff, import contracts, mypy, dead code, shellcheck
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/bin/lint-imports
	@.venv/bin/mypy
	@.venv/bin/vulture
	@shellcheck setup.sh .ci/run tests/in_memory.sh tests/hosts.sh deploy/debian/p* deploy/*.sh
	@shellcheck -s dash images/node/initrd/init images/node/initrd/*.sh images/node/dracut/stage.sh images/node/dracut/hooks/*/*.sh images/node/*/usr/lib/netboot/*.sh images/recipes/features/*/usr/lib/netboot/*.sh images/node/health/generators/* bench/floor_files/initrd/* bench/floor_files/run/floor/*.sh

unit: setup
	@$(PY) $(PYTEST) tests/unit tests/contract -q

client: setup ## the made part of the Python client, from the API's document (docs/python-client.md)
	@$(PY) -m tests.client_source

pictures: setup ## the page's pictures in docs/page, of a made-up fleet; wants Debian's pngquant
	@$(PY) -m tests.browser.pictures

fuzz: setup ## every parser of what strangers send, guided by coverage (SECONDS=60 of each, two at once); certificate requests also against Go's reading
	@$(PY) -m tests.fuzz --seconds $(SECONDS) --keep
	@NETBOOT_FUZZ=200000 $(PY) -m pytest tests/tools/tokens/test_csr_as_go.py -q

mutants: setup ## change one line that matters at a time: a test has to fail for each (docs/mutants.md)
	@$(PY) -m tests.mutants

hosts: ## `make check` by an ordinary user in empty roots of Debian 12 and Ubuntu 24.04 (twenty minutes)
	@$(SUDO) tests/hosts.sh

cluster: setup ## a Kubernetes control plane to play with, until Ctrl-C
	@$(PY) -m lab.kube

bench: setup ## ratios against peers in one run (matchbox, nginx), a fleet that joins a real control plane, boots beside a bare floor
	@$(PY) -m bench

wheel: setup ## dist/netboot-….whl, and what it needs with hashes: docs/install.md
	@$(PY) -m lab.packages wheel dist

deb: setup ## dist/netboot_…_amd64.deb, with its Python libraries inside (VERSION=… in place of the tree's; ARCH="amd64 arm64": of both)
	@$(PY) -m lab.deb dist

man: setup ## dist/man: pages of netboot(1) and of each command, from its own --help (`man -M dist/man netboot`)
	@$(PY) -m lab.packages man dist

container: setup ## dist/netboot_….oci.tar, the container image, and its bill of materials: docs/container.md (BASE=… of a registry, in place of a base made here; ARCH="amd64 arm64": of both, and one archive for one tag)
	@$(SUDO) $(PY) -m lab.container dist

chart: setup ## dist/netboot-….tgz, the Helm chart, and what of it is in the tree: docs/helm.md
	@$(PY) -m lab.chart write
	@$(PY) -m lab.chart package dist

clean: ## remove what builds and tests left (the virtual environment stays)
	@$(SUDO) rm -rf .cache .work .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
