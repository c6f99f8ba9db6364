# Everything sets itself up: `make test` and `make demo` work in a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
.PHONY: demo test docs check-pages gallery screenshots bench photographs fuzz kill oldest audit models keypoints ratios dist clean

# One virtual environment; each set of extras is installed when it is first needed.
$(BIN)/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

# The versions that the checks are known to pass with; empty: the newest. (Most of what is installed is never imported: what
# is, is compiled then, which takes a minute less.)
CONSTRAINTS ?= constraints.txt
.venv/installed-%: $(BIN)/python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --no-compile $(addprefix --constraint ,$(CONSTRAINTS)) --editable '.[$*]'
	@touch $@

demo: .venv/installed-images ## describe and match a photograph and its warp
	$(BIN)/python examples/demo.py

# What checks the explorer's JavaScript; without npm, or without a network, those tests are skipped and say so.
.venv/installed-javascript: tools/javascript/package.json $(BIN)/python
	@if command -v npm >/dev/null && npm install --prefix tools/javascript --no-package-lock --no-audit --no-fund --silent; \
	then touch $@; else echo "no npm, or it could not install: the explorer's JavaScript is not checked"; fi

WORKERS ?= 2
test: .venv/installed-test .venv/installed-javascript ## lint, types, tests and doctests
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target loops lint
	$(PYTEST) -n $(WORKERS) --dist worksteal || { test $$? -eq 1 && echo "once more, alone: what failed" && \
		$(PYTEST) --last-failed --last-failed-no-failures none; }

# Two workers fill two cores: threads of BLAS and of PyTorch would wait for each other, and busily. Where no bytecode is
# written, every process that the tests start compiles the package again, and every worker all tests.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# What reads the code and runs none of it; several at a time, each with what it says in one piece.
LINTERS := ruff-check ruff-format mypy pyright
.PHONY: lint $(LINTERS)
lint: $(LINTERS)
pyright:
	$(BIN)/pyright --pythonpath $(BIN)/python
mypy:
	$(BIN)/mypy
ruff-check:
	$(BIN)/ruff check
ruff-format:
	$(BIN)/ruff format --check

# The compiled loops that take longest and that tests of both workers use: both would compile them, at the same time.
LOOPS := loops-photographs loops-blobs loops-patches
.PHONY: loops $(LOOPS)
loops: $(LOOPS)
loops-photographs:
	@$(BIN)/mkdesc compile >/dev/null
loops-blobs:
	@$(BIN)/python -c "import numpy; from mkdesc.images.detectors.dog import Dog; \
		noise = numpy.random.default_rng(0).integers(0, 256, (90, 90), 'uint8'); \
		[Dog(sigma=sigma).detect(noise) for sigma in (1.6, 1.2)]"
loops-patches:
	@$(BIN)/python -c "import mkdesc, numpy; [mkdesc.describe(numpy.zeros((1, 64, 64), kind), model) \
		for model in ('extended', 'paper') for kind in ('uint8', 'float32')]"

docs: .venv/installed-docs ## the site, into site/
	rm -rf site
	$(BIN)/sphinx-build -d build/doctrees --fail-on-warning --keep-going --quiet docs site
	$(BIN)/python tools/check_site.py site

check-pages: .venv/installed-test .venv/installed-javascript ## a page of each kind of site/ in Chromium: axe, 400 px, searches
	$(BIN)/python tools/check_pages.py site

gallery: .venv/installed-images,plots,colmap ## the gallery's pictures, into docs/gallery; minutes
	$(BIN)/python tools/gallery.py

screenshots: .venv/installed-test ## pictures of the explorer and of a reconstruction, into docs; needs Chromium
	$(BIN)/python tools/screenshots.py

bench: .venv/installed-bench ## speed beside the peers'; prints a table, writes JSON
	$(BIN)/python benchmarks/speed.py

photographs: .venv/installed-bench ## features on photographs beside the peers': the tables of README.md and docs; an hour
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/photographs.py

fuzz: .venv/installed-test ## damaged files against every reader: 100,000, some half an hour
	$(BIN)/python tools/fuzz

kill: .venv/installed-test ## commands that are killed and run again: 363 times
	$(BIN)/python tools/kill

# What needs no PyTorch. Old matplotlib warns with a new pyparsing, old typer with a new click.
ROOMS := _support datasets explorer/test_server.py features heads images kernels measures models retrieval
oldest: ## the tests with the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --editable . $$($(PYTHON) tools/oldest.py) \
		pytest pytest-timeout hypothesis 'scikit-learn<1.7' 'pyparsing<3.2' 'click<8.3'
	.venv-oldest/bin/python -m pytest --ignore tests/images/test_cutting_torch.py $(addprefix tests/,$(ROOMS))

audit: $(BIN)/python ## known vulnerabilities of these versions; asks a service on the internet
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip_audit --no-deps --disable-pip --requirement constraints.txt

# The bundled models, learned again from a folder of photographs.
PHOTOS ?= ../shared/data/photos
MODELS := src/mkdesc/models
WHITENINGS := src/mkdesc/visual/whitenings
LEARN = $(BIN)/mkdesc learn photos $(PHOTOS) --all --overwrite
models: .venv/installed-images
	$(LEARN) -o $(MODELS)/paper.safetensors --use-side 24
	$(LEARN) -o $(MODELS)/paper-64.safetensors --dims 64 --use-side 24
	$(LEARN) -o $(MODELS)/polar.safetensors --parametrization polar --use-side 24
	$(LEARN) -o $(MODELS)/paper-32px.safetensors --patch-size 32 --use-side 24
	$(LEARN) -o $(MODELS)/extended.safetensors --parametrization extended --ridge 1e-4 --use-side 20
	$(LEARN) -o $(MODELS)/extended-64.safetensors --parametrization extended --ridge 1e-4 --dims 64 \
		--use-side 20
	@echo "photo, photo-64, photo-bits, photo-net and extended-net need a GPU: make nets"
	$(LEARN) -o $(WHITENINGS)/polar-pca.safetensors --parametrization polar --method pca --power 1
	$(LEARN) -o $(WHITENINGS)/polar-lw.safetensors --parametrization polar --method lw --power 1
	$(LEARN) -o $(WHITENINGS)/cartesian-lw.safetensors --parametrization cartesian --method lw --power 1
	$(LEARN) -o $(WHITENINGS)/polar-cartesian-lw.safetensors --method lw --power 1

# The models for keypoints of photographs, and the one for patches with a hidden layer: eight minutes on a GPU, all at a
# time (make --jobs=5 nets). Photographs that occur in a set that is reported on are left out. What the commands print is
# kept in docs/models. Where there is no virtual environment: make nets MKDESC="python3 -m mkdesc"
MKDESC ?= $(BIN)/mkdesc
build/photos:
	mkdir -p build/photos
	cp $(filter-out $(foreach scene,castle door fox,$(PHOTOS)/$(scene)_%),$(wildcard $(PHOTOS)/*)) build/photos

NETS := photo photo-64 photo-bits photo-net extended-net
LIMIT ?= 420
DESCRIPTOR = learn descriptor build/photos --device cuda --limit $(LIMIT)
ONE = $(DESCRIPTOR) --parametrization extended-24 --sides 20,40 --head linear
learn-photo = $(ONE)
learn-photo-64 = $(ONE) --dims 64
learn-photo-bits = $(ONE) --dims 256 --bits
learn-photo-net = $(DESCRIPTOR) --parametrization extended-24 --sides 14,28,56 --head mlp --hidden 896 --rank 160
learn-extended-net = learn photos build/photos --device cuda --all --limit 380 --parametrization extended --use-side 20 \
	--keypoints 4000 --ridge 1e-4 --head mlp --hidden 2048 --rank 256 --loss softmax --batch 4096
# $(call logged,NAME,FOLDER): run the command learn-NAME, keep what it prints, and move the file to FOLDER at the end.
# (The logs of photo and photo-bits compare each with itself, because their files were written to FOLDER at once.)
logged = mkdir -p docs/models && (date -u && $(MKDESC) info && nvidia-smi --query-gpu=name --format=csv,noheader && \
	echo "mkdesc $(learn-$(1))" && $(MKDESC) $(learn-$(1)) -o build/$(1).safetensors) > docs/models/$(1).log 2>&1 && \
	mv build/$(1).safetensors $(2)/$(1).safetensors
.PHONY: nets $(NETS:%=net-%)
nets: $(NETS:%=net-%)
$(NETS:%=net-%): net-%: build/photos
	$(call logged,$*,$(MODELS))

# The weights of the learned detector: four minutes on a GPU, of the same photographs, with photo-net as it is.
# (In its log the limit is of the training alone: 190 s. Now it is of all.)
learn-keypoints = learn keypoints build/photos --device cuda --limit 215
keypoints: build/photos
	$(call logged,keypoints,src/mkdesc/images/detectors/weights)

# The ratio of Lowe's test that suits each bundled model, into its card; two minutes each.
RATIOS := $(basename $(notdir $(wildcard $(MODELS)/*.safetensors)))
ratios: .venv/installed-images
	for model in $(RATIOS); do \
		$(BIN)/mkdesc learn ratio $$model $(PHOTOS) -o build/$$model.safetensors || exit 1; \
		mv build/$$model.safetensors $(MODELS)/$$model.safetensors; \
	done

dist: .venv/installed-build ## wheel and sdist; the same bytes from the same commit
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build

clean:
	rm -rf .venv site tools/javascript/node_modules
