from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "diversity.md"


def test_the_pages_examples_give_what_they_print() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 20
    assert doctest.DocTestRunner().run(test).failed == 0
