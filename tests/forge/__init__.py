"""The real command in processes that are forked from one loaded program.

Most of a start is loading. `program` loads everything, once for each process that runs tests, and
forks; `fresh` makes of the fork a process like one newly started, which runs the command that
people run; `forked` is how a test starts one and holds it. What a test shows of the start itself,
before the command is loaded, is no matter for this: it runs `python -m folkmoot`.
"""
