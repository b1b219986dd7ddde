"""One file per kind of judge: it reads a verdict out of a model's reply or says why there is none; it never guesses.

A member has `PROMPTS` (the prompts it uses) and one coroutine, `judge(agent, candidate, …) -> Reply`, on an agent that
sits at the question.
"""
