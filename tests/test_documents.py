"""What the README and the docs show must run."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted((REPOSITORY / "docs").glob("*.md"))


def test_the_python_of_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    assert blocks
    names = {"np": np}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_in_the_docs_run(path):
    results = doctest.testfile(
        str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.failed == 0


@pytest.mark.parametrize("path", [REPOSITORY / "README.md", *DOCUMENTS], ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_promises_are_held_by_tests_that_exist():
    text = (REPOSITORY / "docs" / "safety.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) > 30
    for file, test in named:
        assert f"def {test}(" in (REPOSITORY / file).read_text(), (file, test)
