from __future__ import annotations

from pathlib import Path

import pytest

from pluribus.errors import ConfigError, UnknownName
from pluribus.prompts import Peer, dialect, dialects, fence, fingerprint, own_fields, render
from pluribus.types import Message, Question

CHOICE = Question("q", "t", "Which is a colour?", "choice", ("red", "seven"), context="Think of paint.")


def own_words(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    return str(folder)


def test_choices_and_context_stand_in_the_question() -> None:
    (message,) = [m for m in render(dialect("standard"), "answer", CHOICE) if m.role == "user"]
    assert "Think of paint." in message.content
    assert "red" in message.content and "(A)" in message.content and "(B)" in message.content
    assert "{final answer:" in message.content


def test_a_users_folder_lies_over_the_standard_one(tmp_path: Path) -> None:
    words = dialect(own_words(tmp_path, answer="[system]\nBe $mood.\n[user]\nQ: $question\n"))
    assert render(words, "answer", CHOICE, system="You are Ann.", mood="brief")[0] == Message(
        "system", "You are Ann.\n\nBe brief."
    )
    assert "debate_revise" in words.texts


def test_a_field_nobody_fills_is_named(tmp_path: Path) -> None:
    words = dialect(own_words(tmp_path, answer="[user]\n$question $nonsense\n"))
    with pytest.raises(ConfigError, match="'nonsense'"):
        render(words, "answer", CHOICE)


def test_unknown_prompt_and_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown prompt of dialect zoo 'sing'"):
        render(dialect("zoo"), "sing", CHOICE)
    with pytest.raises(ConfigError, match="no prompts at"):
        dialect(str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"holds no \.txt"):
        dialect(str(tmp_path))


def test_text_in_fields_is_never_a_template() -> None:
    question = Question("q", "t", "It costs $price and ${more} $$", "number")
    assert "It costs $price and ${more} $$" in render(dialect("zoo"), "answer", question)[-1].content


def test_a_fence_is_longer_than_any_run_inside() -> None:
    assert fence("no tildes") == "~~~"
    assert fence("~~~~~~ and ~~~") == "~~~~~~~"


def test_the_fingerprint_follows_the_words_that_are_used(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    a = dialect(own_words(tmp_path / "a", answer="[user]\n$question\n", cot="[user]\n1 $question\n"))
    b = dialect(own_words(tmp_path / "b", answer="[user]\n$question\n", cot="[user]\n2 $question\n"))
    assert fingerprint(a, ["answer"]) == fingerprint(b, ["answer"])
    assert fingerprint(a, ["cot"]) != fingerprint(b, ["cot"])


@pytest.mark.parametrize("name", dialects())
def test_every_embedded_prompt_renders(name: str) -> None:
    words = dialect(name)
    for prompt, text in words.texts.items():
        if text.startswith("["):
            others = dict.fromkeys(own_fields(words, prompt), "its own")
            messages = render(words, prompt, CHOICE, own="mine", peers=[Peer("agent 2", "theirs")], **others)
            assert messages and all(message.content.strip() for message in messages)
