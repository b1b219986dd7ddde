"""A local page on which people decide the pairs that judges disagree about.

`material` finds the pairs, `queue` says who sees which one next, `markup` makes a model's text safe and readable,
`guard` keeps strangers out, `app` is the page, `numbers` says how far people and judges agree, and `label_studio`
takes the same pairs to Label Studio and its verdicts back.
"""
