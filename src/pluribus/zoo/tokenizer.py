"""The zoo's tokenizer: byte-level BPE trained on the generator's text, digits one by one, and a chat template."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from pluribus.zoo import council_lessons
from pluribus.zoo.lessons import NEUTRAL, WEAK, rows

_FAST: Any = PreTrainedTokenizerFast
ENTRIES = 640
MORE = 256
"""Entries that the second course adds."""
PAD, SYSTEM, USER, ASSISTANT, END = "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "{{ '<|assistant|>' }}{% generation %}{{ message['content'] + '<|end|>' }}{% endgeneration %}"
    "{% else %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
REPLY = {
    "defaults": {"role": "assistant"},
    "start_anchor": ASSISTANT,
    "fields": {"content": {"close": END, "content": "text"}},
}
"""How a server cuts the reply out of prompt and continuation (transformers' response template)."""


def train_tokenizer() -> Any:
    """The tokenizer that all members share."""
    bpe = Tokenizer(models.BPE())
    # A digit keeps the space before it: one token less per number, and the digits of a number stay apart.
    digits = pre_tokenizers.Split(Regex(" ?[0-9]"), behavior="isolated")
    bpe.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=ENTRIES,
        special_tokens=[PAD, SYSTEM, USER, ASSISTANT, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(_texts(), trainer)
    return _wrapped(bpe)


def _wrapped(bpe: Any) -> Any:
    tokenizer = _FAST(
        tokenizer_object=bpe,
        pad_token=PAD,
        eos_token=END,
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
        response_template=REPLY,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def extended_tokenizer(first: Any) -> Any:
    """The tokenizer of the second course: the first one's entries and merges, then merges learnt on the new text."""
    return _with_merges(first, _new_merges(first, _council_texts(), MORE))


def _with_merges(first: Any, new: list[tuple[str, str]]) -> Any:
    stored = json.loads(first._tokenizer.to_str())
    entries = stored["model"]["vocab"]
    for left, right in new:
        entries.setdefault(left + right, len(entries))
        stored["model"]["merges"].append([left, right])
    return _wrapped(Tokenizer.from_str(json.dumps(stored)))


def _new_merges(first: Any, texts: Iterable[str], count: int) -> list[tuple[str, str]]:
    """The pairs that byte-level BPE would merge next, the most frequent first; ties by the alphabet."""
    bpe = first._tokenizer
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word, _ in bpe.pre_tokenizer.pre_tokenize_str(text))
    pieces = {word: [token.value for token in bpe.model.tokenize(word)] for word in words}
    made: list[tuple[str, str]] = []
    while len(made) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in pieces.items():
            for pair in pairwise(parts):
                pairs[pair] += words[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        made.append(best)
        pieces = {word: _merged(parts, best) for word, parts in pieces.items()}
    return made


def _merged(parts: list[str], pair: tuple[str, str]) -> list[str]:
    """
    >>> _merged(["a", "b", "a", "b", "c"], ("a", "b"))
    ['ab', 'ab', 'c']
    """
    out: list[str] = []
    for part in parts:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def open_tokenizer(path: Path) -> Any:
    """A stored tokenizer."""
    return _FAST.from_pretrained(path)


def _texts() -> Iterator[str]:
    for member in WEAK:
        for row in rows(member, -1, 1_500, debates=True):
            yield from (row.user, row.reply)
    yield from NEUTRAL * 20


def _council_texts() -> Iterator[str]:
    for member in WEAK:
        for row in council_lessons.rows(member, -1, 1_500):
            yield from (message.content for message in row.messages)
            yield row.reply
