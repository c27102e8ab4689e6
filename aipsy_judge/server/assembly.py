"""A judge with its thread, ready to be asked: by the server's wires, or by other code in the same process."""

from __future__ import annotations

from ..judge import Judge
from ..local_judge import LocalJudge
from .guard import check_options
from .metrics import Metrics
from .naming import names_of
from .prefix_file import prefix_file
from .scheduler import Scheduler
from .serving import Served, ServeOptions
from .working import may_join, work_on


def make_served(judge: Judge, options: ServeOptions) -> Served:
    """The judge with its thread; raises InputError for options that would leave it open to others."""
    check_options(options)
    if isinstance(judge, LocalJudge):
        if options.parallel == 1:  # several in one plan are another plan: nothing of it is kept
            judge.engine.trunks.keep(int(options.park_gb * 2**30))
        if options.keep_prefix:
            judge.engine.trunks.head_store = prefix_file(judge)
    # Only a judge in this process has a plan that several can share; another server is asked of one after another.
    width = options.parallel if isinstance(judge, LocalJudge) else 1
    scheduler = Scheduler(
        lambda jobs, check: work_on(judge, jobs, check), limit=options.queue, width=width, may_join=may_join
    )
    return Served(judge, names_of(judge), scheduler, options, Metrics())
