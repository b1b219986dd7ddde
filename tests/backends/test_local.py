"""Models in this process, tried on tiny untrained ones that the tests make themselves."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pluribus.backends import Request, call_seed, connect, parse  # noqa: E402  # after the skip
from pluribus.backends._batching import Batcher, Row, choose  # noqa: E402  # likewise
from pluribus.backends._loading import Source, load_model  # noqa: E402  # likewise
from pluribus.backends._think import split_think  # noqa: E402  # likewise
from pluribus.errors import BackendError, ConfigError, MissingDependency, Refused, UnknownName, UsageError  # noqa: E402
from pluribus.steps import split_steps  # noqa: E402  # likewise
from pluribus.traffic import call_key  # noqa: E402  # likewise
from pluribus.types import Completion, Message, Sampling  # noqa: E402  # likewise
from pluribus.zoo import folder, members  # noqa: E402  # likewise

TEXTS = [f"{a} plus {b} is {a + b}, and {a} times {b} is {a * b}." for a in range(20) for b in range(20)]
TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 160,
    "bos_token_id": None,
}
FAMILIES = ("llama", "qwen", "mistral", "neox", "gemma", "phi", "olmo")


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _model(family: str, tokenizer: Any, **changes: Any) -> Any:
    """An untrained model whose next token is far from uniform, so that rounding rarely decides."""
    torch.manual_seed(7)
    shape = {**SHAPE, "vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, **changes}
    config = {
        "llama": lambda: transformers.LlamaConfig(**shape, num_key_value_heads=2),
        "qwen": lambda: transformers.Qwen3Config(**shape, num_key_value_heads=2, head_dim=8),
        "mistral": lambda: transformers.MistralConfig(**shape, num_key_value_heads=2, sliding_window=24),
        "neox": lambda: transformers.GPTNeoXConfig(**shape),
        "gemma": lambda: transformers.Gemma3TextConfig(
            **shape,
            num_key_value_heads=1,
            head_dim=8,
            query_pre_attn_scalar=8,
            sliding_window=24,
            layer_types=["sliding_attention", "full_attention"],
        ),
        "phi": lambda: transformers.PhiConfig(**shape, qk_layernorm=True),
        "olmo": lambda: transformers.Olmo2Config(**shape),
    }[family]()
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(2 if family == "gemma" else 12)
    return model


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One saved model per family."""
    torch.set_num_threads(1)  # several threads wait for each other on a busy machine
    tokenizer, root = _tokenizer(), tmp_path_factory.mktemp("models")
    for family in FAMILIES:
        _model(family, tokenizer).save_pretrained(root / family)
        tokenizer.save_pretrained(root / family)
    return {family: str(root / family) for family in FAMILIES}


def _ask(text: str, **sampling: Any) -> Request:
    drawn = Sampling(**{"temperature": 1.0, "top_p": 0.95, "max_tokens": 12, "seed": 5, **sampling})
    return Request((Message("user", text),), drawn)


def _mixed(n: int = 32) -> list[Request]:
    """Requests of very different prompt lengths and sampling."""
    return [
        _ask(" ".join(TEXTS[i : i + 1 + i % 4]), seed=i, max_tokens=4 + i % 17, temperature=(0.0, 0.7, 1.3)[i % 3])
        for i in range(n)
    ]


async def _all(folder: str, requests: Sequence[Request], **options: Any) -> list[Completion]:
    backend = connect(parse({"model": f"local/{folder}", **options}))
    try:
        return list(await asyncio.gather(*map(backend.complete, requests)))
    finally:
        await backend.close()


async def _one_by_one(folder: str, requests: Sequence[Request]) -> list[Completion]:
    backend = connect(parse(f"local/{folder}"))
    try:
        return [await backend.complete(request) for request in requests]
    finally:
        await backend.close()


def _texts(completions: Sequence[Completion]) -> list[str]:
    return [completion.text for completion in completions]


# --- what is said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_request_gets_the_same_text_alone_and_in_any_batch(family: str, folders: dict[str, str]) -> None:
    requests = _mixed()
    together = _texts(await _all(folders[family], requests))
    assert len(set(together)) > len(together) // 2
    assert together == _texts(await _all(folders[family], requests, max_batch=3))
    assert together[::5] == _texts(await _one_by_one(folders[family], requests[::5]))


@pytest.mark.parametrize("family", FAMILIES)
async def test_greedy_is_what_generate_says(family: str, folders: dict[str, str]) -> None:
    requests = [_ask(TEXTS[i] * (1 + i % 2), temperature=0.0, max_tokens=10) for i in range(6)]
    model = transformers.AutoModelForCausalLM.from_pretrained(folders[family]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[family])
    expected = []
    for request in requests:
        ids = torch.tensor([tokenizer(f"<|user|>{request.messages[0].content}<|assistant|>")["input_ids"]])
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=10, pad_token_id=0
        )
        expected.append(tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True))
    assert _texts(await _all(folders[family], requests)) == expected


@pytest.mark.parametrize("family", ["llama", "qwen", "neox"])
async def test_a_reply_that_was_begun_goes_on_as_generate_does(family: str, folders: dict[str, str]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[family])
    model = transformers.AutoModelForCausalLM.from_pretrained(folders[family]).eval()
    begun = [replace(_ask(text, temperature=0.0), prefill=f"{text[:9]} so") for text in TEXTS[:3]]
    said = await _all(folders[family], [*begun, *(replace(one, prefill=None) for one in begun)])
    for request, completion in zip(begun, said, strict=False):
        prompt = f"<|user|>{request.messages[0].content}<|assistant|>"
        first, second = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (prompt, request.prefill))
        tokens = torch.tensor([first + second])
        with torch.no_grad():
            out = model.generate(tokens, max_new_tokens=12, do_sample=False, pad_token_id=0)
        whole, head = (tokenizer.decode(part, skip_special_tokens=True) for part in (out[0], tokens[0]))
        assert completion.text == whole[len(head) :]
        assert completion.prompt_tokens == tokens.shape[1]
    assert _texts(said[:3]) != _texts(said[3:])


async def test_a_trained_model_goes_on_from_any_step_of_its_own_reply() -> None:
    """Greedily, the rest is what it had said before, to the letter."""
    asked = _ask("Ann has 12 apples. Ann buys 7 more. Ann loses 5. How many are left?", temperature=0.0, max_tokens=60)
    backend = connect(parse("zoo/qwen"))
    try:
        whole = (await backend.complete(asked)).text
        ends = [whole.index(step) + len(step) for step in split_steps(whole)]
        rests = await asyncio.gather(*(backend.complete(replace(asked, prefill=whole[:end])) for end in ends))
    finally:
        await backend.close()
    assert len(ends) > 2
    assert _texts(rests) == [whole[end:] for end in ends]


async def test_a_beginning_takes_room_and_is_another_call(folders: dict[str, str]) -> None:
    plain = _ask("Why?", max_tokens=100)
    with pytest.raises(Refused, match="leaves no room"):
        await _all(folders["llama"], [replace(plain, prefill="so " * 200)])
    begun = replace(plain, prefill="So")
    assert len({call_key("m", one) for one in (plain, begun, replace(begun, prefill="No"))}) == 3
    assert call_seed(0, "m", plain) != call_seed(0, "m", begun)
    for bad in (replace(plain, prefill=""), replace(begun, continuation="So")):
        with pytest.raises(Refused, match="prefill"):
            await _all(folders["llama"], [bad])


async def test_another_sample_or_seed_is_another_draw(folders: dict[str, str]) -> None:
    request = _ask("3 plus 4", temperature=1.3)
    draws = [replace(request, sample=i) for i in range(8)]
    draws += [_ask("3 plus 4", temperature=1.3, seed=i) for i in range(100, 104)]
    assert len(set(_texts(await _all(folders["llama"], draws)))) == 12


async def test_usage_and_reasons(folders: dict[str, str]) -> None:
    backend = connect(parse(f"local/{folders['llama']}"))
    completion = await backend.complete(_ask("2 plus 2", max_tokens=7, temperature=0.0))
    assert completion.finish_reason == "length"
    assert completion.completion_tokens == 7
    assert completion.prompt_tokens == backend.count_tokens("<|user|>2 plus 2<|assistant|>")
    assert completion.model == backend.model == parse(f"local/{folders['llama']}").model
    assert completion.cost_usd == 0.0
    assert completion.latency_s is not None and completion.latency_s > 0
    assert backend.context_length == 160
    await backend.close()


async def test_logprobs_are_the_models_own_before_temperature(folders: dict[str, str]) -> None:
    request = _ask("2 plus 2", temperature=1.3)
    (plain,) = await _all(folders["llama"], [request])
    (told,) = await _all(folders["llama"], [request], logprobs=True)
    assert plain.logprobs is None
    assert told.text == plain.text
    assert told.logprobs is not None and len(told.logprobs) == told.completion_tokens
    model = transformers.AutoModelForCausalLM.from_pretrained(folders["llama"]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["llama"])
    ids = tokenizer("<|user|>2 plus 2<|assistant|>")["input_ids"]
    with torch.inference_mode():
        first = model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
    assert min(abs(first - told.logprobs[0])) < 1e-4


async def test_max_tokens_never_passes_the_context(folders: dict[str, str]) -> None:
    (completion,) = await _all(folders["neox"], [_ask("2 plus 2", max_tokens=4096)])
    assert completion.prompt_tokens is not None and completion.completion_tokens is not None
    assert completion.finish_reason == "stop" or completion.prompt_tokens + completion.completion_tokens == 160


async def test_stop_strings_cut_text_and_count(folders: dict[str, str]) -> None:
    whole = _ask("6 times 7", temperature=0.0, max_tokens=40)
    (long,) = await _all(folders["llama"], [whole])
    stop = long.text[9:11]
    (short,) = await _all(folders["llama"], [_ask("6 times 7", temperature=0.0, max_tokens=40, stop=(stop, "never"))])
    assert short.text == long.text[: long.text.index(stop)]
    assert short.finish_reason == "stop"
    assert short.completion_tokens is not None and long.completion_tokens is not None
    assert 0 < short.completion_tokens < long.completion_tokens


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = torch.log(torch.tensor([[0.05, 0.4, 0.25, 0.3]])).repeat(1000, 1)
    draws = torch.arange(1000) / 1000
    for top_p, kept in ((0.3, {1}), (0.5, {1, 3}), (0.9, {1, 2, 3}), (1.0, {0, 1, 2, 3})):
        tokens = choose(logits, torch.ones(1000), torch.full((1000,), top_p), draws)
        assert set(tokens.tolist()) == kept, top_p
    counts = torch.bincount(tokens, minlength=4)
    assert (counts - torch.tensor([50, 400, 250, 300])).abs().max() <= 1


def test_top_p_looks_past_the_first_tokens_of_a_flat_distribution() -> None:
    logits = torch.zeros(2, 1000)
    logits[:, 500] = 1.0
    tokens = choose(logits, torch.ones(2), torch.tensor([0.9, 1e-6]), torch.tensor([0.999, 0.999]))
    assert tokens[0] > 800
    assert tokens[1] == 500


def test_temperature_is_each_rows_own_and_broken_logits_are_told() -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, 1.0], [float("nan"), 1.0]])
    tokens = choose(logits, torch.tensor([0.0, 100.0, 1.0]), torch.ones(3), torch.tensor([0.1, 0.1, 0.1]))
    assert tokens.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("<think>a</think>b", "b", "a"),
        ("<think>a</think>b<think>c</think>d", "bd", "a\n\nc"),
        ("a</think>b", "b", "a"),
        ("<think>a", "", "a"),
        ("<think>\n\n</think>\n\nb", "b", None),
        ("b < c", "b < c", None),
    ],
)
def test_thinking_is_kept_apart(text: str, said: str, thought: str | None) -> None:
    assert split_think(text) == (said, thought)


# --- how requests share a model ----------------------------------------------------------------------------------


async def test_a_cancelled_request_leaves_the_others_alone(folders: dict[str, str]) -> None:
    requests = _mixed(12)
    expected = _texts(await _all(folders["llama"], requests))
    backend = connect(parse(f"local/{folders['llama']}"))
    tasks = [asyncio.create_task(backend.complete(request)) for request in requests]
    doomed = asyncio.create_task(backend.complete(_ask("1 plus 1", max_tokens=150, temperature=1.3)))
    await asyncio.wait([tasks[0]])
    doomed.cancel()
    assert _texts(await asyncio.gather(*tasks)) == expected
    with pytest.raises(asyncio.CancelledError):
        await doomed
    await backend.close()


def test_different_models_may_be_loaded_at_once() -> None:
    sources = [Source(str(folder(name)), 8) for name in members() * 3]
    with ThreadPoolExecutor(len(sources)) as pool:
        models = list(pool.map(load_model, sources))
    assert all(not weight.is_meta for model in models for weight in model.parameters())


async def test_equal_specs_share_one_model_and_the_last_one_frees_it(folders: dict[str, str], tmp_path: Path) -> None:
    from pluribus.backends.local import _LEASES

    def held() -> int:
        gc.collect()
        return sum(own in str(source) for source in list(_LEASES))

    own = str(shutil.copytree(folders["llama"], tmp_path / "own"))  # what other tests left is not counted
    first, second = (connect(parse(f"local/{own}")) for _ in range(2))
    other = connect(parse({"model": f"local/{own}", "max_batch": 2}))
    assert held() == 2
    pending = asyncio.create_task(first.complete(_ask("1 plus 1")))
    await asyncio.sleep(0)
    await first.close()
    assert (await pending).text == (await second.complete(_ask("1 plus 1"))).text
    with pytest.raises(BackendError, match="is closed"):
        await first.complete(_ask("1 plus 1"))
    await second.close()
    assert held() == 1
    await other.close()
    assert held() == 0


def test_one_backend_serves_several_event_loops(folders: dict[str, str]) -> None:
    backend = connect(parse(f"local/{folders['llama']}"))
    texts = {asyncio.run(backend.complete(_ask("1 plus 1"))).text for _ in range(2)}
    assert len(texts) == 1
    asyncio.run(backend.close())


class _Cramped(torch.nn.Module):  # type: ignore[misc]  # torch is loaded by importorskip
    """A model on a device that holds only so many sequences."""

    def __init__(self, model: Any, room: int) -> None:
        super().__init__()
        self.model, self.room = model, room
        self.config, self.device = model.config, model.device
        self.error = torch.OutOfMemoryError("no room")

    def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, **others: Any) -> Any:
        if len(input_ids) > self.room:
            raise self.error
        return self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, **others)


def _row(prompt: Sequence[int], budget: int, seed: int = 0) -> Row:
    return Row(
        tuple(prompt), budget, 0.0, 1.0, draws=random.Random(seed), stopped=lambda _: False, unwanted=lambda: False
    )


def _run(model: Any, n: int, max_batch: int) -> list[Row]:
    batcher = Batcher(model, frozenset(), max_batch)
    rows = [_row(range(4, 9 + i), 3 + i) for i in range(n)]
    batcher.waiting.extend(rows)
    while batcher.busy:
        batcher.advance()
    return rows


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_rows_that_join_later_and_caches_that_are_laid_out_anew_change_nothing(family: str) -> None:
    model = _model(family, _tokenizer())
    batcher = Batcher(model, frozenset(), 8)
    rows = [_row(range(4, 6 + 9 * (i % 5)), 110, i) for i in range(6)]
    for row in rows:
        batcher.waiting.append(row)
        for _ in range(9):
            batcher.advance()
    while batcher.busy:
        batcher.advance()
    for row in rows:
        alone = Batcher(model, frozenset(), 1)
        twin = _row(row.prompt, 110)
        alone.waiting.append(twin)
        while alone.busy:
            alone.advance()
        assert row.tokens == twin.tokens
        assert len(row.tokens) == 110


def test_after_a_foreign_error_every_row_ends_and_the_next_runs() -> None:
    model = _model("llama", _tokenizer())
    broken = _Cramped(model, 2)
    broken.error = RuntimeError("a kernel failed")
    batcher = Batcher(broken, frozenset(), 8)
    batcher.waiting.extend([_row([5, 6, 7], 4), _row([5, 6], 4), _row([5], 4)])
    with pytest.raises(RuntimeError, match="a kernel failed"):
        batcher.advance()
    failed = batcher.fail(BackendError("it failed"))
    assert len(failed) == 3 and all(isinstance(row.ended, BackendError) for row in failed)
    assert not batcher.busy
    batcher.waiting.append(_row([5], 2))
    ended = [row for _ in range(3) for row in batcher.advance()]
    assert [row.ended for row in ended] == ["length"]


def test_out_of_memory_halves_the_batch_and_goes_on() -> None:
    model = _model("llama", _tokenizer())
    expected = [row.tokens for row in _run(model, 12, 12)]
    assert [row.tokens for row in _run(_Cramped(model, 3), 12, 12)] == expected
    hopeless = _run(_Cramped(model, 0), 3, 8)
    assert all(isinstance(row.ended, BackendError) and "out of memory" in str(row.ended) for row in hopeless)


# --- how weights are loaded ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantization", ["8bit", "4bit"])
async def test_quantized_weights_run_on_the_cpu(quantization: str, folders: dict[str, str]) -> None:
    pytest.importorskip("bitsandbytes")
    (completion,) = await _all(
        folders["llama"], [_ask("1 plus 1", temperature=0.0)], quantization=quantization, device="cpu"
    )
    assert f"[quantization={quantization},weights=" in completion.model
    assert completion.completion_tokens


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft asks for an old name
@pytest.mark.parametrize("options", [{}, {"quantization": "8bit", "device": "cpu"}])
async def test_an_adapter_changes_what_is_said(
    options: dict[str, Any], folders: dict[str, str], tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft")
    model = transformers.AutoModelForCausalLM.from_pretrained(folders["llama"])
    lora = peft.LoraConfig(r=4, lora_alpha=64, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    peft.get_peft_model(model, lora).save_pretrained(tmp_path)
    request = _ask("1 plus 1", temperature=0.0)
    (plain,) = await _all(folders["llama"], [request], **options)
    (adapted,) = await _all(folders["llama"], [request], adapter=str(tmp_path), **options)
    assert adapted.text != plain.text


# --- what can go wrong -------------------------------------------------------------------------------------------


async def test_a_prompt_longer_than_the_context_is_refused_alone(folders: dict[str, str]) -> None:
    backend = connect(parse(f"local/{folders['llama']}"))
    long, fine = await asyncio.gather(
        backend.complete(_ask("9 plus 9 " * 200)), backend.complete(_ask("9 plus 9")), return_exceptions=True
    )
    assert isinstance(long, Refused)
    assert "context of 160" in str(long)
    assert isinstance(fine, Completion)
    await backend.close()


async def test_odd_sampling_is_refused(folders: dict[str, str]) -> None:
    for odd in ({"top_p": 0.0}, {"temperature": -1.0}, {"max_tokens": 0}):
        with pytest.raises(Refused, match="temperature"):
            await _all(folders["llama"], [_ask("1", **odd)])


def test_bad_specs_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a folder here nor a hub id"):
        connect(parse("local/./no/such/folder"))
    with pytest.raises(UsageError, match=r"has no config\.json"):
        connect(parse(f"local/{tmp_path}"))
    with pytest.raises(ConfigError, match="there are: 8bit, 4bit"):
        connect(parse({"model": "local/a/b", "quantization": "2bit"}))
    with pytest.raises(ConfigError, match="whole number from 1"):
        connect(parse({"model": "local/a/b", "max_batch": 0}))
    with pytest.raises(UnknownName, match="quantization"):
        parse({"model": "local/a/b", "quantisation": "8bit"})
    with pytest.raises(UnknownName, match="zoo"):
        connect(parse("zoo/no-such-member"))


async def test_a_folder_that_can_not_be_loaded_is_a_usage_error_every_time(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    backend = connect(parse(f"local/{tmp_path}"))
    for _ in range(2):
        with pytest.raises(UsageError, match="could not be loaded"):
            await backend.complete(_ask("1"))
    await backend.close()


async def test_a_hub_model_is_not_fetched_when_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match="HF_HUB_OFFLINE is set"):
        await _all("nobody/there-is-no-such-model", [_ask("1")])


def test_without_torch_the_extra_is_named_and_connecting_loads_none(folders: dict[str, str]) -> None:
    code = (
        "import sys\n"
        "from pluribus.backends import connect, parse\n"
        f"connect(parse('local/{folders['llama']}'))\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        f"connect(parse('local/{folders['llama']}'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert MissingDependency.__name__ in done.stderr
    assert "pip install 'pluribus[local]'" in done.stderr


async def test_an_architecture_without_a_plain_cache_is_named(tmp_path: Path) -> None:
    config = transformers.MambaConfig(vocab_size=300, hidden_size=16, num_hidden_layers=1, state_size=4)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    _tokenizer().save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="'mamba' is not a decoder-only attention model"):
        await _all(str(tmp_path), [_ask("1")])
