"""The kinds of change that help, and those that help only together with other changes."""

from dgm.offline.edits import loops, memory, offers, prompts, tools
from dgm.offline.edits.kind import Group, Signal, kinds

_LIMIT, _CUT, _WRONG, _CRASH, _EMPTY = Signal

HELPFUL = kinds(
    Group.HELPFUL,
    ("more-steps", 6, loops.more_steps, "Runs end at the step limit: allow more steps.", (_LIMIT, _EMPTY)),
    (
        "test-after-edit",
        4,
        tools.test_after_edit,
        "Run the tests after each edit, unasked.",
        (_LIMIT, _WRONG),
    ),
    ("reproduce", 4, prompts.reproduce, "Passing tests prove little: ask for a reproduction.", (_WRONG,)),
    ("trace", 5, prompts.trace, "What the failing test does not run is not at fault.", (_WRONG,)),
    ("head-and-tail", 4, tools.head_and_tail, "The end of long output matters: cut its middle.", (_CUT,)),
    ("filter-log", 3, tools.filter_log, "Log lines fill the output: leave them out.", (_CUT,)),
    ("targeted-tests", 3, prompts.targeted_tests, "Whole test runs print too much.", (_CUT, _LIMIT)),
    ("list-files", 3, prompts.list_files, "Show the files in the first message: it saves a step.", (_LIMIT,)),
    ("read-tests", 2, prompts.read_tests, "Tests tell what the code is meant to do.", (_WRONG,)),
    ("more-fixes", 2, prompts.more_fixes, "The first fix is often a lucky one: look for others.", (_WRONG,)),
    ("survive-refusal", 2, memory.survive_refusal, "A refused request need not end the run.", (_CRASH,)),
    ("patient-improve", 1, loops.patient_improve, "Improving takes more steps than solving.", (_LIMIT,)),
)
CONDITIONAL = kinds(
    Group.CONDITIONAL,
    ("more-output", 4, tools.more_output, "Show more of a long output.", (_CUT,)),
    ("tail-only", 1.5, tools.tail_only, "What matters in a long output is its end.", (_CUT,)),
    ("tests-first", 2, prompts.tests_first, "See what fails before changing anything.", (_WRONG,)),
    ("related-code", 2, prompts.related_code, "The fault is often in another file.", (_WRONG, _EMPTY)),
    ("whole-file", 2, prompts.whole_file, "An edit needs more context than a few lines.", (_WRONG,)),
    ("execute-all", 4, loops.execute_all, "Run all calls of a reply: it saves steps.", (_LIMIT,)),
    ("several-calls", 4, prompts.several_calls, "Ask for several calls in a reply.", (_LIMIT,)),
    ("plan-first", 2, prompts.plan_first, "A plan keeps the work on its track.", (_WRONG, _EMPTY)),
    ("until-done", 3, loops.until_done, "A reply without calls is not always the end.", (_WRONG, _EMPTY)),
    ("retry", 1.5, memory.retry, "Start again where the step limit was reached.", (_LIMIT,)),
    ("retry-with-reset", 2, memory.retry_with_reset, "Start again from clean files.", (_LIMIT,)),
    ("retry-with-notes", 2.5, memory.retry_with_notes, "Start again, knowing what was tried.", (_LIMIT,)),
    ("temperature", 1, loops.temperature, "Let attempts differ.", (_WRONG,)),
    ("shorten-results", 2, memory.shorten_results, "Old results need not be kept whole.", (_CRASH,)),
    ("first-occurrence", 1, tools.first_occurrence, "An ambiguous edit may take the first place.", (_EMPTY,)),
    ("test-tool", 2, offers.test_tool, "Offer a tool that runs the tests.", (_WRONG,)),
    ("view-tool", 2, offers.view_tool, "Offer a tool that shows part of a file.", (_CUT,)),
    ("quiet-test-command", 2, tools.quiet_test_command, "Hide what passing tests print.", (_CUT,)),
)
