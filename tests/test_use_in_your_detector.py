"""Every snippet of docs/use_in_your_detector.md runs as it stands."""

import re
from importlib.util import find_spec

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs" / "use_in_your_detector.md").read_text()
SNIPPETS = re.findall(r"^## (.+?)$|^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def snippets():
    heading = ""
    for title, code in SNIPPETS:
        heading = title or heading
        if code:
            yield pytest.param(code, id=heading)


def test_no_snippet_is_overlooked():
    assert len(list(snippets())) == PAGE.count("```python") == PAGE.count("```") // 2


@pytest.mark.parametrize("code", snippets())
def test_snippet(code, tmp_path, monkeypatch):
    if "mmdet" in code and find_spec("mmdet") is None:
        pytest.skip("MMDetection is not installed: make test-mmdet")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
