"""The kinds of change that make no difference, and those that do harm."""

from dgm.offline.edits import loops, memory, prompts, tools
from dgm.offline.edits.kind import Group, Signal, kinds

_LIMIT, _CUT, _WRONG, _CRASH, _EMPTY = Signal

NEUTRAL = kinds(
    Group.NEUTRAL,
    ("document", 1, prompts.document, "Say what the start of the program does.", ()),
    ("log-results", 1.5, loops.log_results, "Log what the tools gave.", (_CRASH,)),
    ("rename", 1, tools.rename, "A clearer name for what cuts the output.", ()),
    ("no-exit-status", 1.5, tools.no_exit_status, "The exit status is clear from the output.", ()),
    ("line-ends", 1.5, tools.line_ends, "Edits should work with any line ends.", (_EMPTY,)),
    ("review-diff", 2, prompts.review_diff, "Ask for a last look at the changes.", (_WRONG,)),
    ("smallest-change", 2, prompts.smallest_change, "Small changes break less.", (_WRONG,)),
    ("shorter-timeout", 1.5, tools.shorter_timeout, "Commands that hang should end sooner.", ()),
    (
        "careful-improve",
        1,
        prompts.careful_improve,
        "Recall that a broken agent is worth nothing.",
        (_CRASH,),
    ),
)
HARMFUL = kinds(
    Group.HARMFUL,
    ("fewer-steps", 2, loops.fewer_steps, "Long runs seldom succeed: stop sooner.", ()),
    ("less-output", 2, tools.less_output, "Long outputs cost tokens: show less.", ()),
    ("drop-stderr", 2, tools.drop_stderr, "Errors of commands distract: drop stderr.", ()),
    ("no-tests", 1.5, prompts.no_tests, "Running tests takes steps.", (_LIMIT,)),
    ("finish-after-edit", 2, loops.finish_after_edit, "One edit is enough: finish after it.", (_LIMIT,)),
    ("forget-results", 1.5, memory.forget_results, "Old results cost tokens.", (_CRASH,)),
    ("undo-at-limit", 1.5, memory.undo_at_limit, "Half-done work is worse than none.", ()),
    ("leave-at-limit", 1, loops.leave_at_limit, "Make the step limit an error.", ()),
    ("hasty-improve", 1.5, loops.hasty_improve, "Improving should not take long.", ()),
    ("rewrite-status", 1.5, tools.misspelt_status, "Report the return code.", (_CRASH,)),
    ("evidence-key", 1, prompts.misspelt_evidence, "Name the evidence folder by its full name.", ()),
    ("unclosed", 2.5, loops.drop_colon, "Shorten the loop over the calls.", ()),
)
