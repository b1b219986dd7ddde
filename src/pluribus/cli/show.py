"""`pluribus show`: a stored run, one of its questions round by round, or the prompts of a method."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import Home, Json


def show(
    run: Annotated[
        str, Argument(help="A run's name, its id, or how one of them begins; or the word prompt.", metavar="RUN")
    ],
    method: Annotated[
        str | None, Argument(help="With prompt: whose prompts.", metavar="METHOD", show_default=False)
    ] = None,
    question: Annotated[
        str | None, Option(help="One question of the run, by its id or its place (1 is the first).", metavar="ID")
    ] = None,
    prompts: Annotated[
        str | None, Option(help="With prompt: a dialect, or a folder of your own.", metavar="DIR")
    ] = None,
    personas: Annotated[str | None, Option(help="With prompt: the set of the persona.", metavar="SET")] = None,
    persona: Annotated[str | None, Option(help="With prompt: a persona of the set.", metavar="NAME")] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Show a stored run, one question of it, or what a method would send (`show prompt METHOD`).

    Nothing is asked and no task file is read: everything comes from the workspace.
    """
    from pluribus.cli import _shower

    if run == "prompt":
        return _shower.prompt(method, prompts=prompts, personas=personas, persona=persona, json=json)
    _shower.refuse_prompt_flags(method=method, prompts=prompts, personas=personas, persona=persona)
    if question is not None:
        return _shower.one(run, question, home=home, json=json)
    return _shower.whole(run, home=home, json=json)
