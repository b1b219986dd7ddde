from __future__ import annotations

import ast
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.answers import canonical, read, same
from pluribus.types import Question

SHOWN = '''import math
from typing import List


def half(x: float) -> float:
    return x / 2


def halves(xs: List[float]) -> List[float]:
    """Half of each.
    >>> halves([2.0])
    [1.0]
    """
'''
ASK = Question("q", "t", "Halve.", "program", metadata={"entry_point": "halves", "prompt": SHOWN})
FREE = Question("q", "t", "Halve.", "program", metadata={"entry_point": "halves"})
ANY = Question("q", "t", "Write a program.", "program")
WHOLE = """import math
from typing import List

def half(x: float) -> float:
    return x / 2

def halves(xs: List[float]) -> List[float]:
    # one after the other
    found = []
    for x in xs:
        found.append(half(x))
    return found
"""
WANTED = """import math
from typing import List

def half(x: float) -> float:
    return x / 2

def halves(xs: List[float]) -> List[float]:
    found = []
    for x in xs:
        found.append(half(x))
    return found"""
BODY = "    found = []\n    for x in xs:\n        found.append(half(x))\n    return found\n"
ALONE = WHOLE[WHOLE.index("def halves") :]


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code.rstrip()}\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        fenced(WHOLE),
        fenced(WHOLE, ""),
        fenced(WHOLE, "Py"),
        f"First:\n{fenced('def halves(xs): ...')}No:\n{fenced(WHOLE)}It runs like this:\n{fenced('halves([1])')}",
        f"{fenced(WHOLE)}\n{fenced('pip install numpy', 'bash')}",
        f"1. The function:\n   ```python\n{''.join(f'   {line}' for line in WHOLE.splitlines(True))}   ```\n",
        f"~~~python\n{WHOLE}~~~",
        f"````python\n{WHOLE}````",
        f"```python\n{WHOLE}",
        fenced(ALONE),
        fenced(f"{WHOLE}\nif __name__ == '__main__':\n    print(halves([1.0]))\n"),
        fenced(BODY),
        fenced(BODY.replace("    found", "found").replace("    for", "for").replace("    return", "return")),
        BODY,
        BODY.strip(),
        f"{BODY}\nprint(halves([3.0]))\n",
        f"{BODY}\n\ndef test():\n    assert halves([2.0]) == [1.0]\n",
        f"{BODY}\n# Test it\nassert halves([2.0]) == [1.0]\n",
        f"Here is what I would write.\n\n{WHOLE}\nThis halves each number in turn.\n",
        f"Sure!\n\n{ALONE}",
        f"<think>def halves(xs): return 1</think>{fenced(WHOLE)}",
        f'{BODY}"""\n    a.title\n    ~~~~~~~\n    A text.\n"""\nimport re\n',
        f"```python\n{WHOLE}\n\ndef more(xs):\n    return [x for",
    ],
)
def test_one_program_in_many_wrappings(text: str) -> None:
    assert read(ASK, text) == WANTED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I do not know.",
        "Unknown",
        "return",
        fenced("def other(xs):\n    return xs\n"),
        fenced("def halves(xs:\n"),
        fenced("halves([1.0])\n"),
        f"<think>{WHOLE}",
        "The answer is 4.",
    ],
)
def test_what_does_not_define_what_was_asked_for_is_no_answer(text: str) -> None:
    assert read(FREE, text) is None


def test_a_word_or_a_docstring_is_no_body() -> None:
    assert read(ASK, "Unknown") is None
    assert read(ASK, fenced('    """Half of each."""\n')) is None
    assert read(ASK, fenced("    pass\n")) is not None


def test_without_a_name_any_fenced_program_is_one() -> None:
    assert read(ANY, f"So:\n{fenced('print( 6*7 )  # all')}") == "print(6 * 7)"
    assert read(ANY, "```python\n'nothing but words'\n```") is None
    assert canonical(ANY, "") is None


def test_what_the_question_shows_stands_before_a_program_that_lacks_it_and_is_not_doubled() -> None:
    half = "from typing import List\n\ndef half(x):\n    return 0.5 * x\n"
    own = f"{half}\ndef halves(xs):\n    return [half(x) for x in xs]\n"
    found = read(ASK, fenced(own))
    assert found is not None
    assert found.count("from typing import List") == 1 and found.count("def half(") == 1 and "0.5 * x" in found
    assert found.startswith("import math")
    future = read(ASK, fenced(f"from __future__ import annotations\n{ALONE}"))
    assert future is not None
    compile(future, "found", "exec")


def test_comments_layout_and_docstrings_make_no_difference_and_code_does() -> None:
    other = ALONE.replace("    # one after the other\n", '    """Doc."""\n\n').replace(
        "found.append(half(x))", "found.append( half( x ) )"
    )
    assert same(FREE, ALONE, other)
    assert not same(FREE, ALONE, ALONE.replace("half(x)", "x / 2"))
    assert same(FREE, ALONE.replace("\n", "\r\n"), ALONE)


def test_a_function_of_words_alone_keeps_a_body() -> None:
    found = canonical(FREE, 'def halves(xs):\n    """Nothing."""\n')
    assert found == "def halves(xs):\n    pass"


@pytest.mark.parametrize("code", ["(" * 10000, "x" * 200_000, "\0", "def halves(x):\n    return " + "-" * 5000 + "1"])
def test_hostile_code_is_no_answer_and_no_crash(code: str) -> None:
    found = canonical(FREE, code)
    assert found is None or "def halves" in found
    assert read(FREE, fenced(code)) == found


@pytest.mark.filterwarnings("error")
def test_a_program_s_own_warnings_are_not_ours() -> None:
    assert canonical(FREE, r"def halves(x): return '\d' if x is 1 else 2") is not None


@given(st.text(max_size=200))
def test_reading_never_raises(text: str) -> None:
    for question in (ASK, FREE, ANY):
        found = read(question, text)
        assert found is None or canonical(question, found) == found


@given(
    st.lists(
        st.sampled_from([BODY, "```", "```python", "def halves(xs):", "    return xs", "x = 1", "Well."]), max_size=8
    )
)
def test_what_is_read_is_canonical_and_defines_what_was_asked_for(parts: list[str]) -> None:
    found = read(ASK, "\n".join(parts))
    if found is not None:
        assert canonical(ASK, found) == found
        names = [node.name for node in ast.parse(found).body if isinstance(node, ast.FunctionDef)]
        assert "halves" in names


def test_published_solutions_are_read_from_every_wrapping(shared_data: Path) -> None:
    path = shared_data / "benchmarks" / "humaneval" / "HumanEval.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n") if line]
    assert len(rows) == 164
    for row in rows:
        about = {"entry_point": row["entry_point"], "prompt": row["prompt"]}
        ask = Question(row["task_id"], "humaneval", row["prompt"], "program", metadata=about)
        body = row["canonical_solution"]
        wanted = canonical(ask, row["prompt"] + body)
        for text in (body, body.strip(), fenced(body), fenced(row["prompt"] + body), f"{body}\n\nprint(3)\n"):
            assert read(ask, text) == wanted, row["task_id"]
