"""The zoo's tokenizer: byte-level BPE trained on the generator's text, digits one by one, and a chat template."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from pluribus.zoo.lessons import NEUTRAL, WEAK, rows

_FAST: Any = PreTrainedTokenizerFast
ENTRIES = 640
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


def open_tokenizer(path: Path) -> Any:
    """A stored tokenizer."""
    return _FAST.from_pretrained(path)


def _texts() -> Iterator[str]:
    for member in WEAK:
        for row in rows(member, -1, 1_500, debates=True):
            yield from (row.user, row.reply)
    yield from NEUTRAL * 20
