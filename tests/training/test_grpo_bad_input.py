"""What can not be learned by GRPO is one line that says what was found, what was expected, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.training.grpo_files import prompts, step_model, student, wishes, write

from pluribus.errors import CodeNotAllowed, ConfigError, DataError, UsageError
from pluribus.rows import Row
from pluribus.training import make_training
from pluribus.training._run import fingerprint, notes, prepare, run
from pluribus.training.grpo import per_generation, steps_of

PROGRAM = {"prompt": [{"role": "user", "content": "add"}], "kind": "program", "tests": ["assert add(2) == 3"]}


def config(grpo: dict[str, Any], data: Path = Path("prompts.jsonl"), out: Path = Path("out"), **more: Any) -> Any:
    return make_training(wishes(data, out, grpo, **more))


def one_line(problem: pytest.ExceptionInfo[Any], *expected: str) -> None:
    said = str(problem.value)
    assert "\n" not in said
    for words in expected:
        assert words in said


# --- wishes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grpo", "complaint"),
    [
        ({"objective": "pass", "k": 7}, "k is 7, and there are 6 samples per prompt; expected k of at most that many"),
        (
            {"objective": "pass", "k": 2, "k_end": 9},
            "k is 9, and there are 6 samples per prompt; expected k of at most that many",
        ),
        (
            {"objective": "majority", "k": 1, "estimator": "loo1"},
            "estimator loo1 has no baseline at k = 1: expected k of at least 2; use urloo, which is RLOO",
        ),
        (
            {"objective": "majority", "k": 6}, "estimator urloo needs more samples than k: n is 6 and k is 6; use loo",
        ),
        (
            {"objective": "pass", "k": 3, "k_end": 6}, "estimator urloo needs more samples than k: n is 6 and k is 6",
        ),
        (
            {"objective": "pass", "k": 3, "estimator": "loo"},
            "estimator loo needs as many samples as k: n is 6 and k is 3; use loo1 or urloo",
        ),
        (
            {"objective": "max", "k": 3, "estimator": "naive"},
            "estimator naive needs as many samples as k: n is 6 and k is 3; use loo1 or urloo",
        ),
        ({"estimator": "gae"}, "estimator gae needs a value network beside the policy, and none is trained here"),
        ({"estimator": "gae"}, "use urloo, which is RLOO for objective mean"),
        ({"objective": "majority"}, "k is missing: objective majority is about k samples; say for example k: 3"),
        ({"k": 3}, "k is 3, and objective mean sees one sample; drop k, or name another objective"),
        ({"k_end": 3}, "and objective mean sees one sample; drop k"),
        ({"estimator": "loo1"}, "estimator loo1 is not there for objective mean; use urloo, which is RLOO"),
        (
            {"objective": "pass", "k": 3, "estimator": "rloo"},
            "estimator rloo is that of objective mean; use urloo or loo1 for pass",
        ),
        ({"reward_mode": "PRM"}, "reward_mode PRM needs a process reward model; name its folder with prm"),
        ({"reward_mode": "PRMVR"}, "reward_mode PRMVR needs a process reward model; name its folder with prm"),
        (
            {"reward_mode": "PRM", "prm": "p", "objective": "pass", "k": 3},
            "objective pass is about outcomes, and reward_mode PRM has none; use PRMVR",
        ),
        ({"reward_mode": "ORM"}, "reward_mode ORM needs a reward model; name judges, or the folder of a"),
        (
            {"reward_mode": "ORM", "judges": "j", "objective": "majority", "k": 3},
            "objective majority needs rewards of answers, right or not, and reward_mode ORM gives each reply its own; "
            "use mean, max or best_of",
        ),
        ({"reward_mode": "ORM", "judges": "j", "objective": "pass", "k": 3}, "use mean, max or best_of"),
        (
            {"objective": "best_of", "k": 3},
            "objective best_of needs scores of the samples; name judges, or a folder with prm",
        ),
        ({"objective": "weighted_majority", "k": 3}, "objective weighted_majority needs scores of the samples"),
        (
            {"self_labelled": True, "objective": "majority", "k": 3},
            "self_labelled already takes the vote for the truth; with it objective is mean, found majority",
        ),
        (
            {"self_labelled": True, "reward_mode": "ORM", "judges": "j"},
            "self_labelled makes the labels of reward_mode VR and PRMVR, found ORM",
        ),
        ({"judges": "j"}, "judges are not asked with reward_mode VR and objective mean; say reward_mode ORM"),
        ({"prm": "p"}, "prm marks nothing with reward_mode VR and objective mean; say reward_mode PRMVR, or drop it"),
        ({"reward_baseline": "token"}, "reward_baseline does nothing with reward_mode VR; it is for PRM and PRMVR"),
        (
            {"reward_mode": "PRM", "prm": "p", "verifiable_reward_coef": 0.5},
            "verifiable_reward_coef does nothing with reward_mode PRM; it is for PRMVR",
        ),
        ({"eval_steps": 5}, "grpo.eval_steps is about held-out questions, and there are none; name some with eval"),
        ({"objective": "vote", "k": 3}, "grpo.objective is 'vote'"),
        ({"estimator": "LOO"}, "grpo.estimator is 'LOO'"),
        ({"reward_mode": "vr"}, "grpo.reward_mode is 'vr'"),
        ({"reward_baseline": "mean"}, "grpo.reward_baseline is 'mean'"),
        ({"samples": 1}, "grpo.samples is 1; input should be greater than or equal to 2"),
        ({"objective": "pass", "k": 0}, "grpo.k is 0; input should be greater than or equal to 1"),
        ({"temperature": 0}, "grpo.temperature is 0; input should be greater than 0"),
        ({"top_p": 1.5}, "grpo.top_p is 1.5; input should be less than or equal to 1"),
        ({"kl": -0.1}, "grpo.kl is -0.1; input should be greater than or equal to 0"),
        ({"kl": float("inf")}, "grpo.kl is inf; input should be a finite number"),
        ({"k_samples": 3}, "k_samples"),
    ],
)  # fmt: skip
def test_wishes_that_do_not_go_together(grpo: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        config(grpo)
    one_line(problem, complaint)


@pytest.mark.parametrize("kind", ["sft", "dpo", "prm"])
def test_no_other_kind_knows_of_it(kind: str) -> None:
    with pytest.raises(ConfigError) as problem:
        make_training({"kind": kind, "model": "zoo/qwen", "data": "d", "out": "o", "grpo": {"samples": 4}})
    one_line(problem, f"grpo does nothing in a training of kind {kind}; drop it")


# --- rows ------------------------------------------------------------------------------------------------------------


def bad_rows(tmp_path: Path, rows: list[Row], **grpo: Any) -> Any:
    return prepare(config(grpo, write(tmp_path, rows), tmp_path / "out"), {})


def test_free_text_has_no_checker(tmp_path: Path) -> None:
    with pytest.raises(DataError) as problem:
        bad_rows(tmp_path, prompts(2, kind="text"))
    one_line(
        problem, "prompts.jsonl: row 1 is of kind text, which has no checker", "reward_mode VR", "say reward_mode ORM"
    )


def test_a_row_without_an_answer(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "answer"} for row in prompts(2)]
    with pytest.raises(DataError) as problem:
        bad_rows(tmp_path, rows)
    one_line(problem, "prompts.jsonl: row 1 has no answer, and reward_mode VR needs one; give each row its answer")
    assert bad_rows(tmp_path, rows, self_labelled=True).rows == rows  # which needs none


def test_held_out_rows_need_answers_whatever_the_labels(tmp_path: Path) -> None:
    data = write(tmp_path, prompts(2))
    rows = [{key: value for key, value in row.items() if key != "answer"} for row in prompts(4)[2:]]
    held = write(tmp_path, rows, "held")
    with pytest.raises(DataError) as problem:
        prepare(config({"self_labelled": True}, data, tmp_path / "out", eval_data=str(held)), {})
    one_line(problem, "held.jsonl: row 1 has no answer, and eval_data needs one")


def test_held_out_questions_are_others(tmp_path: Path) -> None:
    data, held = write(tmp_path, prompts(3)), write(tmp_path, prompts(4)[2:], "held")
    with pytest.raises(DataError) as problem:
        prepare(config({}, data, tmp_path / "out", eval_data=str(held)), {})
    one_line(problem, "held.jsonl: 1 of its 2 questions are in the data too, the first is row 1; hold out others")


def test_programs_need_a_sandbox_that_was_allowed(tmp_path: Path) -> None:
    with pytest.raises(CodeNotAllowed) as problem:
        bad_rows(tmp_path, [PROGRAM])
    one_line(problem, "the rows are checked by running programs that models write; allow it with ")


def test_held_out_programs_need_it_too(tmp_path: Path) -> None:
    """Whatever rewards the others: else every look would say that nothing changed."""
    held = write(tmp_path, [PROGRAM], "held")
    wanted = {"reward_mode": "ORM", "judges": "j"}
    with pytest.raises(CodeNotAllowed):
        prepare(config(wanted, write(tmp_path, prompts(2)), tmp_path / "out", eval_data=str(held)), {}, score)


async def score(_: Any, said: Any) -> list[float | None]:
    return [0.5] * len(said)


@pytest.mark.parametrize("objective", ["majority", "weighted_majority"])
def test_programs_have_no_vote(tmp_path: Path, objective: str) -> None:
    with pytest.raises(DataError) as problem:
        bad_rows(tmp_path, [PROGRAM], objective=objective, k=3, **{"judges": "j"} if objective != "majority" else {})
    one_line(problem, "kind program, whose replies have no answers in common", f"objective {objective} is a vote")


def test_demonstrations_are_no_prompts(tmp_path: Path) -> None:
    asked, said = [{"role": "user", "content": "1 + 1 ?"}], [{"role": "assistant", "content": "2"}]
    with pytest.raises(DataError) as problem:
        bad_rows(tmp_path, [{"prompt": asked, "completion": said}])
    one_line(
        problem, "prompts.jsonl:1: kind is missing; expected the kind of the answer: number, ", "its columns are: "
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError) as problem:
        prepare(config({}, tmp_path / "no.jsonl", tmp_path / "out"), {})
    one_line(problem, "no.jsonl: can not be read: No such file")


def test_judges_that_nobody_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as problem:
        bad_rows(tmp_path, prompts(2), reward_mode="ORM", judges="judges.yaml")
    one_line(problem, "grpo.judges is there, and nobody opened it; give ", "the judges", "score")


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_sizes_that_make_no_whole_groups(tmp_path: Path) -> None:
    data = write(tmp_path, prompts(2))
    with pytest.raises(ConfigError) as problem:
        prepare(config({}, data, tmp_path / "out", batch_size=4, accumulation=2), {})
    one_line(
        problem, "batch_size 4 x accumulation 2 x 1 process is 8 samples a step, and grpo.samples is 6 of each prompt"
    )
    one_line(problem, "choose sizes whose product is a multiple of 6")


def test_drawings_that_make_no_whole_steps() -> None:
    with pytest.raises(ConfigError) as problem:
        per_generation(config({"prompts": 3}, batch_size=4, accumulation=3), 1)
    one_line(
        problem, "grpo.prompts 3 x samples 6 is 18 samples at once, and batch_size 4 x accumulation 3 x 1 process is 12"
    )
    one_line(problem, "a step; choose sizes so that the samples drawn at once make whole steps")


def test_replies_that_leave_the_prompt_no_room(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as problem:
        prepare(config({"max_new_tokens": 64}, write(tmp_path, prompts(3)), tmp_path / "out", max_length=64), {})
    one_line(problem, "grpo.max_new_tokens is 64, and prompt and reply have 64 tokens; say fewer")


def test_fewer_questions_than_are_drawn_from_at_once(tmp_path: Path) -> None:
    data = write(tmp_path, prompts(2))
    with pytest.raises(DataError) as problem:
        prepare(config({}, data, tmp_path / "out", batch_size=18), {})
    one_line(
        problem, "2 questions are in it, and 3 are drawn from at once; give more questions, a smaller batch_size or"
    )


def long_prompts(count: int) -> list[Row]:
    return [
        {**row, "prompt": [{"role": "user", "content": "one two three four five six seven" * 9}]}
        for row in prompts(count)
    ]


def test_prompts_that_leave_no_room_are_left_out_and_counted(tmp_path: Path) -> None:
    data = write(tmp_path, [*prompts(3), *long_prompts(2)])
    job = prepare(config({}, data, tmp_path / "out", max_length=80), {})
    assert len(job.rows) == 3 and "2 of 5 prompts leave no room for a reply of 32 tokens, and are left out" in notes(
        job
    )
    assert len(prepare(config({}, data, tmp_path / "out"), {}).rows) == 5


def test_too_few_prompts_that_leave_room(tmp_path: Path) -> None:
    data = write(tmp_path, [*prompts(1), *long_prompts(4)])
    with pytest.raises(DataError) as problem:
        prepare(config({}, data, tmp_path / "out", max_length=80), {})
    one_line(problem, "1 questions are in it that leave room for a reply of 32 tokens, and 2 are drawn from at once")
    one_line(problem, "fewer max_new_tokens")
    held = write(tmp_path, long_prompts(2), "held")
    with pytest.raises(DataError) as problem:
        prepare(config({}, write(tmp_path, prompts(3)), tmp_path / "out", max_length=80, eval_data=str(held)), {})
    one_line(problem, "held.jsonl: no question in it leaves room for a reply; say fewer max_new_tokens")


@pytest.mark.parametrize(
    ("sizes", "prompts_", "processes", "known"),
    [((12, 1), None, 1, 1), ((4, 3), None, 1, 3), ((3, 1), None, 2, 1), ((3, 4), 4, 1, 8), ((3, 1), 4, 2, 4)],
)
def test_sizes_that_fit(sizes: tuple[int, int], prompts_: int | None, processes: int, known: int) -> None:
    """Batches that each device makes of one drawing."""
    grpo = {"prompts": prompts_} if prompts_ else {}
    assert per_generation(config(grpo, batch_size=sizes[0], accumulation=sizes[1]), processes) == known


# --- what is said before the start -----------------------------------------------------------------------------------


def told(tmp_path: Path, grpo: dict[str, Any], rows: int = 8, **more: Any) -> list[str]:
    return notes(prepare(config(grpo, write(tmp_path, prompts(rows)), tmp_path / "out", **more), {}))


def test_samples_are_counted_before_the_start(tmp_path: Path) -> None:
    more: dict[str, Any] = {"max_steps": 10, "batch_size": 6, "accumulation": 2}
    assert told(tmp_path, {}, **more) == [
        "2 prompts x 6 samples = 12 samples at once, for 1 optimiser step; 120 samples in all"
    ]
    assert told(tmp_path, {"prompts": 4, "iterations": 2}, **more) == [
        "4 prompts x 6 samples = 24 samples at once, for 4 optimiser steps; 60 samples in all"
    ]


def test_all_prompts_are_counted_where_epochs_are_said(tmp_path: Path) -> None:
    (said,) = told(tmp_path, {}, rows=8, max_steps=None, epochs=3.0)
    assert said.endswith("for 1 optimiser step; 144 samples in all")  # 8 prompts x 6 samples x 3
    (said,) = told(tmp_path, {"prompts": 4, "iterations": 2}, rows=8, max_steps=None, epochs=1.0)
    assert said.endswith("for 4 optimiser steps; 48 samples in all")


@pytest.mark.parametrize(
    ("grpo", "more", "warning"),
    [
        ({"samples": 3}, {}, "grpo.samples is 3: below 4 the other samples are a poor baseline"),
        ({"top_p": 0.9}, {}, "grpo.top_p is 0.9: what is learned from is then not what the policy gives; 1 is exact"),
        ({"self_labelled": True}, {}, "self_labelled without eval_data: nobody will see when wrong answers are"),
        ({"prompts": 4}, {"save_steps": 3}, "save_steps 3 is no multiple of 2"),
        ({"kl": 0.1}, {"max_steps": 12, "logging_steps": 3}, "logging_steps 3 gives 4 lines, and the alarms about"),
    ],
)  # fmt: skip
def test_what_is_unwise_is_said(tmp_path: Path, grpo: dict[str, Any], more: dict[str, Any], warning: str) -> None:
    said = told(tmp_path, grpo, **more)
    assert len(said) == 2 and said[1].startswith(warning)
    sound = {"samples": {"samples": 4}, "prompts": {"prompts": 2}}.get(next(iter(grpo)), {})
    assert len(told(tmp_path, sound, **more | {"logging_steps": 2})) == 1


# --- process reward models -------------------------------------------------------------------------------------------


def refused(tmp_path: Path, prm: str | Path) -> pytest.ExceptionInfo[UsageError]:
    with pytest.raises(UsageError) as problem:
        bad_rows(tmp_path, prompts(2), reward_mode="PRM", prm=str(prm))
    return problem


def test_a_prm_that_is_no_folder(tmp_path: Path) -> None:
    one_line(refused(tmp_path, tmp_path / "none"), "prm '", "none' is no folder; name one that pluribus train prm made")
    one_line(refused(tmp_path, "local/zoo"), "prm 'local/zoo' is no folder")


def test_another_reward_is_another_training(tmp_path: Path) -> None:
    """By its weights or its words, not by its name."""
    prm, judges, data = step_model(tmp_path / "prm"), tmp_path / "judges.yaml", write(tmp_path, prompts(2))
    judges.write_text("one", "utf-8")
    stepwise = config({"reward_mode": "PRM", "prm": prm}, data)
    judged = config({"reward_mode": "ORM", "judges": str(judges)}, data)
    before = [fingerprint(stepwise), fingerprint(judged)]
    assert [fingerprint(stepwise), fingerprint(judged)] == before
    step_model(tmp_path / "prm", tokens=300)
    judges.write_text("another", "utf-8")
    assert not {fingerprint(stepwise), fingerprint(judged)} & {*before}


def test_a_folder_that_says_nothing_of_steps(tmp_path: Path) -> None:
    one_line(
        refused(tmp_path, student(tmp_path / "student")), "student' has no prm.json: nobody can say where its steps end"
    )


def test_a_prm_with_another_models_tokenizer(tmp_path: Path) -> None:
    found = refused(tmp_path, step_model(tmp_path / "prm", tokens=200))
    one_line(found, "prm' has a tokenizer of 258 tokens, and its weights know 200: it is another model's")
    one_line(found, "give the folder as pluribus train prm wrote it")


def test_a_prm_json_that_says_something_else(tmp_path: Path) -> None:
    folder = Path(step_model(tmp_path / "prm"))
    (folder / "prm.json").write_text(json.dumps({"cut": "words"}), "utf-8")
    one_line(refused(tmp_path, folder), "prm.json has separator ", "a cut is one of: ")


def test_a_language_model_with_a_prm_json_is_no_prm(tmp_path: Path) -> None:
    """Its head would be random numbers: nothing is begun."""
    folder = Path(student(tmp_path / "student"))
    (folder / "prm.json").write_text(json.dumps({"separator": "\n"}), "utf-8")
    one_line(refused(tmp_path, folder), "student' is a Qwen3ForCausalLM", "name a folder that pluribus train prm made")


# --- nothing is begun ------------------------------------------------------------------------------------------------


def test_nothing_is_begun_where_something_is_wrong(tmp_path: Path) -> None:
    data = write(tmp_path, prompts(2))
    for grpo in ({"samples": 5}, {"reward_mode": "PRM", "prm": "nowhere"}):
        with pytest.raises(UsageError):
            run(config(grpo, data, tmp_path / "out"), {})
    assert not (tmp_path / "out").exists()


def test_steps_are_counted_as_the_trainer_does() -> None:
    assert steps_of(config({}, max_steps=7), 8, 1) == 7
    assert steps_of(config({"prompts": 4}, max_steps=None, epochs=2.0), 9, 1) == 8  # 2 drawings x 2 steps x 2 epochs
    assert steps_of(config({}, max_steps=None, epochs=1.0), 8, 2) == 2
