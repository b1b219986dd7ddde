"""Models in this process that read: log-probabilities of tokens and texts, and reward heads."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pluribus.backends import Request, connect, parse  # noqa: E402  # after the skip
from pluribus.backends._batching import own_stream  # noqa: E402  # likewise
from pluribus.backends._reading import Reader, Reading, continuations, rewards  # noqa: E402  # likewise
from pluribus.errors import BackendError, ConfigError, Refused, UsageError  # noqa: E402  # likewise
from pluribus.types import Completion, Message, Sampling  # noqa: E402  # likewise
from pluribus.zoo import folder, members  # noqa: E402  # likewise

TEXTS = [
    "4",
    "The sum is 12.",
    "I add them one by one: 2 + 2 is 4, and 4 + 3 is 7, so it is 7. {final answer: 7}",
    "no",
]
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 200,
}


def asking(text: str = "what is 2 + 2 ?", **wishes: Any) -> Request:
    return Request((Message("user", text),), Sampling(max_tokens=6, seed=3), **wishes)


def conversation(answer: str, question: str = "what is 2 + 2 ?") -> Request:
    return Request((Message("user", question), Message("assistant", answer)), Sampling())


async def all_at_once(model: str | dict[str, Any], requests: Sequence[Request]) -> list[Completion]:
    backend = connect(parse(model))
    try:
        return list(await asyncio.gather(*map(backend.complete, requests)))
    finally:
        await backend.close()


async def one_by_one(model: str | dict[str, Any], requests: Sequence[Request]) -> list[Completion]:
    backend = connect(parse(model))
    try:
        return [await backend.complete(request) for request in requests]
    finally:
        await backend.close()


async def trouble(model: str | dict[str, Any], request: Request) -> Exception:
    with pytest.raises((BackendError, UsageError)) as caught:
        await all_at_once(model, [request])
    assert "\n" not in str(caught.value)
    return caught.value


# --- log-probabilities -----------------------------------------------------------------------------------------------


def raw(member: str) -> tuple[Any, Any]:
    path = folder(member)
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    return model, transformers.AutoTokenizer.from_pretrained(path)


@pytest.mark.parametrize("member", members())
async def test_a_continuation_is_what_one_forward_pass_says(member: str) -> None:
    told = await all_at_once(f"zoo/{member}", [asking(continuation=text) for text in TEXTS])
    model, tokenizer = raw(member)
    prompt = tokenizer("<|user|>what is 2 + 2 ?<|assistant|>", add_special_tokens=False)["input_ids"]
    for text, completion in zip(TEXTS, told, strict=True):
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logprobs = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        wanted = logprobs[range(len(tokens)), tokens].tolist()
        assert completion.text == text and completion.logprobs == pytest.approx(wanted, abs=1e-4)
        assert (completion.prompt_tokens, completion.completion_tokens) == (len(prompt) + len(tokens), 0)


async def test_a_batch_of_continuations_is_the_same_one_by_one() -> None:
    requests = [asking(q, continuation=text) for text in TEXTS for q in ("2 + 2 ?", "add 3 and 4 and then 5 to 1 .")]
    together, alone = await all_at_once("zoo/qwen", requests), await one_by_one("zoo/qwen", requests)
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


async def test_what_was_generated_has_the_log_probabilities_of_its_own_continuation() -> None:
    (said,) = await all_at_once("zoo/qwen", [Request(asking().messages, Sampling(0.0, 1.0, 6), top_logprobs=20)])
    (read,) = await all_at_once("zoo/qwen", [asking(continuation=said.text)])
    assert said.logprobs is not None and read.logprobs is not None
    assert read.logprobs == pytest.approx(said.logprobs[: len(read.logprobs)], abs=1e-4)


async def test_alternatives_are_the_models_own_distribution_at_any_temperature() -> None:
    hot, cold = Sampling(1.7, 0.5, 5, seed=1), Sampling(0.0, 1.0, 5)
    requests = [Request(asking().messages, sampling, top_logprobs=n) for sampling in (hot, cold) for n in (3, 20)]
    _, hot_told, three, told = await all_at_once("zoo/qwen", requests)
    assert told.top_logprobs is not None and hot_told.top_logprobs is not None and three.top_logprobs is not None
    assert len(told.top_logprobs) == told.completion_tokens == len(told.logprobs or ())
    assert hot_told.top_logprobs[0] == pytest.approx(told.top_logprobs[0], abs=1e-4)
    assert dict(three.top_logprobs[0]) == pytest.approx(dict(list(told.top_logprobs[0].items())[:3]), abs=1e-4)
    model, tokenizer = raw("qwen")
    prompt = tokenizer("<|user|>what is 2 + 2 ?<|assistant|>", add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        first = model(torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
    likeliest = first.topk(20)
    wanted = sum(likeliest.values.exp().tolist())
    assert sum(map(math.exp, told.top_logprobs[0].values())) == pytest.approx(wanted, abs=1e-4)
    text, logprob = next(iter(told.top_logprobs[0].items()))
    assert logprob == pytest.approx(likeliest.values[0].item(), abs=1e-4)
    assert text == tokenizer.decode([likeliest.indices[0].item()])


async def test_alternatives_change_nothing_and_come_only_when_asked_for() -> None:
    plain, told = await all_at_once("zoo/qwen", [asking(), asking(top_logprobs=2)])
    assert plain.top_logprobs is None and plain.logprobs is None
    assert plain.text == told.text and told.top_logprobs is not None


async def test_generated_and_read_requests_run_side_by_side() -> None:
    requests = [asking(f"what is {i} + 2 ?", **({"continuation": "5"} if i % 2 else {})) for i in range(20)]
    told = await all_at_once({"model": "zoo/qwen", "max_batch": 4}, requests)
    assert all((one.logprobs is not None) == bool(i % 2) for i, one in enumerate(told))
    assert all(one.text for one in told)


@pytest.mark.parametrize(
    "request_, complaint",
    [
        (asking(continuation=""), "the continuation is empty"),
        (
            asking(continuation="7 " * 3000),
            r"the prompt of \d+ tokens and the continuation of \d+ do not fit in .* 2048",
        ),
        (asking("7 " * 3000, continuation="7"), "leaves no room in the context of 2048"),
        (asking(top_logprobs=21), "top_logprobs is 21"),
        (asking(top_logprobs=-1), "top_logprobs is -1"),
    ],
)
async def test_what_can_not_be_read_is_refused(request_: Request, complaint: str) -> None:
    error = await trouble("zoo/qwen", request_)
    assert isinstance(error, Refused)
    with pytest.raises(Refused, match=complaint):
        raise error


async def test_a_template_that_has_the_model_think_first_is_refused(tmp_path: Path) -> None:
    model, tokenizer = raw("qwen")
    tokenizer.chat_template = "{{ messages[-1].content }}<think>\n"
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert "think first" in str(await trouble(f"local/{tmp_path}", asking(continuation="4")))


# --- reward heads ----------------------------------------------------------------------------------------------------

Make = Callable[..., str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Saves an untrained reward model with the tokenizer of a member of the zoo; returns its folder."""
    torch.set_num_threads(1)  # several threads wait for each other on a busy machine

    def make(family: str = "Llama", padding: int | None = 0, **changes: Any) -> str:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder("qwen"))
        tokenizer.pad_token = None if padding is None else tokenizer.decode([padding])
        shape = {**SHAPE, "vocab_size": 896, "num_labels": 1, "pad_token_id": padding, "eos_token_id": 4, **changes}
        torch.manual_seed(11)
        config = getattr(transformers, f"{family}Config")(**shape)
        model = transformers.AutoModelForSequenceClassification.from_config(config)
        with torch.no_grad():
            model.score.weight.mul_(50)  # scores far enough apart to be told from rounding
        path = tmp_path_factory.mktemp("reward")
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        return str(path)

    return make


def reward_of(completion: Completion) -> float:
    assert completion.scores is not None
    return completion.scores["reward"]


@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
@pytest.mark.parametrize("padding", [0, 4, None])  # 4 ends a reply: it is padding and the last token at once
async def test_a_reward_is_the_heads_output_in_any_batch(family: str, padding: int | None, made: Make) -> None:
    path = made(family, padding)
    model = {"model": f"local/{path}", "head": "reward"}
    requests = [conversation(text, question) for text in TEXTS for question in ("2 + 2 ?", "add 3 , 4 and 5 .")]
    together, alone = await all_at_once(model, requests), await one_by_one(model, requests)
    head = transformers.AutoModelForSequenceClassification.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    for request, one, other in zip(requests, together, alone, strict=True):
        chat = [{"role": message.role, "content": message.content} for message in request.messages]
        ids = tokenizer(tokenizer.apply_chat_template(chat, tokenize=False), add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            wanted = head(torch.tensor([ids])).logits[0, 0].item()
        assert reward_of(one) == pytest.approx(wanted, abs=1e-5) and reward_of(other) == pytest.approx(wanted, abs=1e-5)
        assert (one.text, one.prompt_tokens, one.completion_tokens) == ("", len(ids), 0)
        assert one.logprobs is None and one.cost_usd == 0.0 and one.latency_s is not None
    assert len({round(reward_of(one), 3) for one in together}) > 4, "the scores tell the replies apart"


async def test_the_head_is_part_of_the_models_name(made: Make) -> None:
    path = made()
    (told,) = await all_at_once({"model": f"local/{path}", "head": "reward"}, [conversation("4")])
    assert told.model.startswith(f"local/{path}[head=reward,weights=")
    with pytest.raises(UsageError, match="it scores replies and writes none"):
        await all_at_once(f"local/{path}", [asking()])


@pytest.mark.parametrize(
    "request_, complaint",
    [
        (asking(), "do not end with one of the assistant's"),
        (Request((), Sampling()), "do not end with one of the assistant's"),
        (conversation("7 " * 300), r"the conversation of \d+ tokens does not fit in the context of 200"),
        (Request(conversation("4").messages, Sampling(), top_logprobs=5), "no log-probabilities"),
        (Request(conversation("4").messages, Sampling(), continuation="4"), "no log-probabilities"),
    ],
)
async def test_what_a_reward_model_refuses(request_: Request, complaint: str, made: Make) -> None:
    model = {"model": f"local/{made()}", "head": "reward"}
    backend = connect(parse(model))
    good, bad = await asyncio.gather(
        backend.complete(conversation("4")), backend.complete(request_), return_exceptions=True
    )
    await backend.close()
    assert isinstance(good, Completion) and isinstance(bad, Refused)
    with pytest.raises(Refused, match=complaint):
        raise bad


async def test_a_model_without_a_reward_head_is_named(made: Make, tmp_path: Path) -> None:
    three = {"model": f"local/{made(num_labels=3)}", "head": "reward"}
    assert "has 3 outputs, a reward model has 1" in str(await trouble(three, conversation("4")))
    causal = {"model": "zoo/qwen", "head": "reward"}
    assert "outputs, a reward model has 1" in str(await trouble(causal, conversation("4")))
    config = transformers.LlamaConfig(**SHAPE, vocab_size=896, num_labels=1)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder("qwen")).save_pretrained(tmp_path)
    headless = {"model": f"local/{tmp_path}", "head": "reward"}
    assert "has no reward head: its weights lack score.weight" in str(await trouble(headless, conversation("4")))
    with pytest.raises(ConfigError, match="head is 'value'"):
        connect(parse({"model": "zoo/qwen", "head": "value"}))


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"quantization": "8bit"}, {"quantization": "4bit"}])
async def test_a_reward_model_in_lower_precision_says_nearly_the_same(options: dict[str, str], made: Make) -> None:
    if "quantization" in options:
        pytest.importorskip("bitsandbytes")
    path, requests = made(), [conversation(text) for text in TEXTS]
    exact = await all_at_once({"model": f"local/{path}", "head": "reward", "device": "cpu"}, requests)
    rough = await all_at_once({"model": f"local/{path}", "head": "reward", "device": "cpu", **options}, requests)
    assert [reward_of(one) for one in rough] != [reward_of(one) for one in exact]
    assert [reward_of(one) for one in rough] == pytest.approx([reward_of(one) for one in exact], abs=2.0)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft asks for an old name
async def test_an_adapter_brings_the_head_over_a_base_model(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    base = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder("qwen"), num_labels=1, dtype=torch.float32
    )
    lora = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="SEQ_CLS")
    adapted = peft.get_peft_model(base, lora).eval()
    adapted.save_pretrained(tmp_path / "reward")
    model = {"model": "zoo/qwen", "head": "reward", "adapter": str(tmp_path / "reward")}
    (told,) = await all_at_once(model, [conversation("4")])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("qwen"))
    ids = tokenizer("<|user|>what is 2 + 2 ?<|assistant|>4<|end|>", add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        wanted = adapted(torch.tensor([ids])).logits[0, 0].item()
    assert reward_of(told) == pytest.approx(wanted, abs=1e-4)
    causal = transformers.AutoModelForCausalLM.from_pretrained(folder("qwen"))
    plain = peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    peft.get_peft_model(causal, plain).save_pretrained(tmp_path / "words")
    words = {**model, "adapter": str(tmp_path / "words")}
    assert "its weights lack score.weight" in str(await trouble(words, conversation("4")))


# --- batches ---------------------------------------------------------------------------------------------------------


def rows_of(*sizes: int) -> list[Reading]:
    return [Reading(tuple(range(5, 5 + size)), lambda: False, last=1) for size in sizes]


class Cramped:
    """A reader of rows that runs out of memory above a number of tokens."""

    device = torch.device("cpu")

    def __init__(self, most: int) -> None:
        self.most = most
        self.batches: list[list[int]] = []

    def __call__(self, model: Any, rows: Sequence[Reading]) -> list[list[float]]:
        sizes = [row.size for row in rows]
        if len(rows) * max(sizes) > self.most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate a lot")
        self.batches.append(sizes)
        return [[float(size)] for size in sizes]


def run(reader: Reader) -> list[Reading]:
    done: list[Reading] = []
    while reader.busy:
        reader.advance()
        done += reader.take()
    return done


def test_rows_of_about_one_length_share_a_batch_and_the_oldest_is_in_it() -> None:
    room = Cramped(10**9)
    reader = Reader(room, room, max_batch=2)
    reader.waiting.extend(rows_of(10, 90, 11, 91, 9))
    assert sorted(row.values[0] for row in run(reader)) == [9, 10, 11, 90, 91]
    assert [sorted(sizes) for sizes in room.batches] == [[10, 11], [90, 91], [9]]


def test_out_of_memory_halves_the_batch_and_a_row_alone_ends_with_an_error() -> None:
    room = Cramped(40)
    reader = Reader(room, room, max_batch=8)
    reader.waiting.extend(rows_of(10, 10, 10, 10, 10, 10, 50))
    done = run(reader)
    assert sum(row.ended == "read" for row in done) == 6 and len(done) == 7
    (lost,) = (row for row in done if row.ended != "read")
    assert lost.size == 50 and isinstance(lost.ended, BackendError) and "with one sequence of 50" in str(lost.ended)


def test_nobody_is_lost_when_a_pass_fails_and_the_cancelled_are_not_read() -> None:
    def broken(model: Any, rows: Sequence[Reading]) -> list[list[float]]:
        raise ValueError("a foreign error")

    reader = Reader(None, broken, max_batch=2)
    rows = [*rows_of(3, 4, 5), Reading((1,), lambda: True)]
    reader.waiting.extend(rows)
    with pytest.raises(ValueError, match="a foreign error"):
        reader.advance()
    assert set(map(id, reader.fail(BackendError("over")))) == set(map(id, rows)) and not reader.busy


def test_what_is_not_finite_is_an_error() -> None:
    reader = Reader(None, lambda model, rows: [[math.nan], [1.0]], max_batch=2)
    reader.waiting.extend(rows_of(3, 3))
    broken, fine = run(reader)
    assert isinstance(broken.ended, BackendError) and "not finite" in str(broken.ended)
    assert fine.ended == "read" and fine.values == [1.0]


# --- on a GPU --------------------------------------------------------------------------------------------------------


def test_a_cpu_has_no_queues() -> None:
    assert own_stream(torch.device("cpu")) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
async def test_workers_on_one_gpu_have_queues_of_their_own_and_say_what_they_say_alone(made: Make) -> None:
    device = torch.device("cuda")
    one, other = own_stream(device), own_stream(device)
    assert one is not None and other is not None and one.cuda_stream != other.cuda_stream
    assert torch.cuda.default_stream(device).cuda_stream not in (one.cuda_stream, other.cuda_stream)
    options = {"device": "cuda", "dtype": "float32"}
    scorer = {"model": f"local/{made()}", "head": "reward", **options}
    asks = [asking(f"what is {i} + 2 ?", continuation="5") for i in range(8)]
    replies = [conversation(str(i)) for i in range(8)]
    alone = [await all_at_once({"model": "zoo/qwen", **options}, asks), await all_at_once(scorer, replies)]
    beside = await asyncio.gather(all_at_once({"model": "zoo/qwen", **options}, asks), all_at_once(scorer, replies))
    for first, second in zip(alone, beside, strict=True):
        for a, b in zip(first, second, strict=True):
            assert a.logprobs == pytest.approx(b.logprobs, abs=1e-3) and a.scores == pytest.approx(b.scores, abs=1e-3)


def test_a_rows_values_do_not_depend_on_its_neighbours_however_rows_are_padded() -> None:
    model, _ = raw("qwen")
    rows = rows_of(4, 9)
    together = continuations(model, rows)
    assert together == [pytest.approx(continuations(model, [row])[0], abs=1e-4) for row in rows]
    config = transformers.LlamaConfig(**SHAPE, vocab_size=896, num_labels=1, pad_token_id=None)
    head = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    rows.append(Reading((5, 6, 0), lambda: False))  # 0 fills columns, and is a token like any other
    with torch.inference_mode():
        wanted = [head(torch.tensor([row.tokens])).logits[0].tolist() for row in rows]
        assert rewards(head, rows) == [pytest.approx(one, abs=1e-5) for one in wanted]
