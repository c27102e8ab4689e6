"""The Empathy Potential Model (EMPA): from a judged dialogue to a trajectory and EPM-Q.

Everything flows one way: forms -> vectors -> trajectory -> stop -> indices -> epmq. `evaluate` goes it for arrays of
dialogues, `cases` for filled forms, `judging` has a judge fill them; `compare` and `perturbation` look at many. The
numbers are in `parameters` (two profiles that never mix), axes and scores in a pack (data/epm), the questions in its
two rubrics.

Source: arXiv:2603.00552 and the released code and run logs of EMPA. Where they disagree, parameters.py says which is
followed.
"""
