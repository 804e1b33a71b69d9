"""Ideas are recognised in several wordings, and not where they are denied."""

import pytest

from dgm.offline.guidelines import CONCEPTS, Concept, recognise_concepts

SAID = {
    Concept.SEVERAL_CALLS: [
        "Call several tools at once.", "You can make multiple tool calls in a reply.", "Issue tool calls in parallel.",
    ],
    Concept.TESTS_FIRST: [
        "Before editing, execute the existing tests.", "Start by running the tests.", "First run the test suite.",
    ],
    Concept.REPRODUCE: [
        "Always reproduce the bug first.", "Write a script that shows the problem.", "Build a reproduction.",
    ],
    Concept.PLAN_FIRST: ["Make a plan before you act.", "Outline your plan first.", "Write a short plan."],
    Concept.NO_TESTS: ["Never run the tests.", "Don't execute the test suite.", "Avoid running tests."],
    Concept.FINISH_EARLY: ["Finish as soon as your first edit is made.", "After one edit, stop."],
    Concept.SMALLEST: ["Keep the change small.", "Prefer a minimal diff.", "Change as little as possible."],
    Concept.REVIEW: ["Check your changes before finishing.", "Look over the diff.", "Re-read what you changed."],
    Concept.MORE_FIXES: ["Consider several possible fixes.", "Think of alternative solutions."],
    Concept.RELATED: ["Look at the callers too.", "Read surrounding code.", "Inspect neighbouring modules."],
    Concept.READ_TESTS: ["Study the tests.", "Look at the existing tests."],
    Concept.TARGETED: ["Run only relevant tests.", "Just run the tests that matter."],
    Concept.WHOLE_FILE: ["View the entire file.", "Read files in full."],
    Concept.UNTIL_DONE: ["Continue until you are done.", "Keep working until you say DONE."],
}  # fmt: skip
DENIED = {
    Concept.SEVERAL_CALLS: ["Call only one tool at a time.", "Never make several tool calls at once."],
    Concept.TESTS_FIRST: ["Do not run the tests first.", "There is no need to run the tests before editing."],
    Concept.REPRODUCE: ["Don't bother to reproduce it.", "Never write a script that shows the bug."],
    Concept.PLAN_FIRST: ["Do not write a plan.", "Never make a plan first."],
    Concept.NO_TESTS: [
        "Run the tests.",
        "Do not finish; run the tests.",
        "Do not run all tests before editing.",
    ],
    Concept.FINISH_EARLY: ["Do not stop after your first edit."],
    Concept.REVIEW: ["You needn't review the diff."],
    Concept.RELATED: ["Do not read related code."],
    Concept.WHOLE_FILE: ["Avoid reading the whole file."],
}


@pytest.mark.parametrize(("concept", "sentence"), [(c, s) for c, every in SAID.items() for s in every])
def test_a_paraphrase_is_recognised(concept, sentence):
    assert concept in recognise_concepts("You are a programmer. " + sentence + " Use the tools.")


@pytest.mark.parametrize(("concept", "sentence"), [(c, s) for c, every in DENIED.items() for s in every])
def test_a_denial_is_not_taken_for_the_idea(concept, sentence):
    assert concept not in recognise_concepts("You are a programmer. " + sentence + " Use the tools.")


@pytest.mark.parametrize("concept", list(Concept))
def test_the_canonical_sentence_means_its_concept(concept):
    assert concept in recognise_concepts(CONCEPTS[concept])


def test_the_plain_prompt_asks_for_nothing():
    assert (
        recognise_concepts(
            "You are a programmer. Fix the problem. Use the tools.\nSay DONE when you have finished."
        )
        == set()
    )
