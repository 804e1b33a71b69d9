"""Reports that graded code could write to mislead, to stop or to fill what reads them."""

import contextlib
import gc
import json
from xml.etree.ElementTree import Element

import pytest

from dgm.benchmarks import report_xml
from dgm.benchmarks.test_outcomes import TestOutcome
from dgm.benchmarks.test_reports import MESSAGE_CHARS, NAME_CHARS, ReportKind, read_cases, read_results

P, F = TestOutcome.PASSED, TestOutcome.FAILED


def junit(*cases):
    return "<testsuite>" + "".join(
        f'<testcase name="{name}">{"" if passed else "<failure>no</failure>"}</testcase>' for name, passed in cases
    ) + "</testsuite>"  # fmt: skip


def catch(*cases):
    return "<Catch>" + "".join(
        f'<TestCase name="{name}"><OverallResult success="{str(passed).lower()}"/></TestCase>'
        for name, passed in cases
    ) + "</Catch>"  # fmt: skip


def go_lines(*cases):
    return "".join(f"\x16--- {'PASS' if passed else 'FAIL'}: {name} (0.00s)\n" for name, passed in cases)


def cargo(*cases):
    return "".join(f"test {name} ... {'ok' if passed else 'FAILED'}\n" for name, passed in cases)


def libtest(*cases):
    return "".join(
        f'{{ "type": "test", "name": {json.dumps(name)}, "event": "{"ok" if passed else "failed"}" }}\n'
        for name, passed in cases
    )


WRITERS = {
    ReportKind.JUNIT: junit, ReportKind.CATCH: catch, ReportKind.GO_LINES: go_lines, ReportKind.CARGO: cargo,
    ReportKind.LIBTEST: libtest,
}  # fmt: skip
XML = (ReportKind.JUNIT, ReportKind.CATCH)


def outcomes(kind, text):
    return {name: result.outcome for name, result in read_results(kind, text).items()}


def write(kind, *cases):
    """Return a report, and the results that are in it."""
    return WRITERS[kind](*cases), {name: P if passed else F for name, passed in cases}


def test_there_is_a_report_of_each_kind():
    assert {*WRITERS} == {*ReportKind}


@pytest.mark.parametrize("kind", ReportKind)
def test_a_report_that_breaks_off_anywhere_tells_nothing_wrong(kind):
    text, whole = write(kind, ("one", True), ("two", False), ("three", True))
    assert outcomes(kind, text) == whole
    seen = set()
    for end in range(0, len(text), 2):
        try:
            found = outcomes(kind, text[:end])
        except ValueError:
            continue
        assert found.items() <= whole.items()
        seen.add(len(found))
    assert seen >= {1, 2}


@pytest.mark.parametrize("kind", ReportKind)
@pytest.mark.parametrize("first", [True, False])
def test_of_very_many_tests_of_one_name_the_worst_counts(kind, first):
    cases = [("one", first)] * 200 + [("one", not first)] + [("one", first)] * 200
    assert [*outcomes(kind, write(kind, *cases)[0]).values()] == [F]


def test_ten_thousand_cases_of_one_name_are_one_test():
    assert outcomes("junit", junit(("one", False), *[("one", True)] * 10_000)) == {"one": F}


@pytest.mark.parametrize("kind", ReportKind)
def test_nonsense_is_refused_or_holds_no_test(kind):
    for text in (
        "",
        "\0",
        "\0\n<",
        "{",
        "}" * 99,
        "<a>",
        "[1]",
        "{ }",
        "\x16---",
        "test  ... ",
        "\ud800",
        "&a;<",
    ):
        with contextlib.suppress(ValueError):
            assert outcomes(kind, text) == {}


@pytest.mark.parametrize("kind", ReportKind)
def test_what_is_read_can_be_written(kind):
    text, _ = write(kind, ("a\ud800", False), ("b", True))
    for name, result in read_results(kind, text.replace("no", "\udfff")).items():
        (name + result.message).encode()


def test_values_nested_beyond_all_measure_are_no_result():
    text, whole = write(ReportKind.LIBTEST, ("one", True))
    deep = text.replace('"one"', "[" * 100_000)
    assert outcomes(ReportKind.LIBTEST, f"{deep}\n{text}") == whole


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize(
    "head", ["", '<?xml version="1.0"?>\n', "\ufeff<!-- a -- > -->\n<?b <!-- ?> ", "<!-- <a> --><!-- ?> -->"]
)
def test_a_document_type_is_refused_wherever_it_may_stand(kind, head):
    text, _ = write(kind, ("&amp;a", True))
    with pytest.raises(ValueError, match="declares a document type"):
        outcomes(kind, f'{head}<!DOCTYPE a [<!ENTITY a "aaaa">]>{text.replace("&amp;", "&a;")}')
    assert head[:1] == "\ufeff" or outcomes(kind, head + text) == {"&a": P}


def test_a_failure_may_quote_a_document_type():
    page = "<![CDATA[expected: <!DOCTYPE html><!ENTITY a> but was: null]]>"
    found = read_results(
        "junit", f'<testsuite><testcase name="a"><failure>{page}</failure></testcase></testsuite>'
    )
    assert found["a"].message == "expected: <!DOCTYPE html><!ENTITY a> but was: null"


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize("encoding", ["utf-7", "shift_jis", "utf-16", "iso-8859-1", "nonsense"])
def test_the_encoding_that_a_document_names_is_not_heeded(kind, encoding):
    text, whole = write(kind, ("ä ✓", False))
    assert outcomes(kind, f'<?xml version="1.0" encoding="{encoding}"?>{text}') == whole


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize("name", ["a]]>b", "a>b", "&#10;", "]]&gt;", "{}::()"])
def test_any_name_that_xml_allows_is_read(kind, name):
    text, _ = write(kind, (name, True))
    assert [*outcomes(kind, text).values()] == [P]


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize("illegal", ["&a;", "&#0;", "<", "</a>", "<![CDATA[", "<!DOCTYPE a>"])
def test_what_is_no_xml_ends_a_report(kind, illegal):
    text, _ = write(kind, ("one", True), ("two", True))
    place = text.index("><", text.index("two")) + 1
    assert outcomes(kind, text[:place] + illegal + text[place:]) == {"one": P}


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize(
    "copied", ["\0", "]]>", "\x1b", "\ufffe", "\udfff", "]]]]>>", "<![CDATA[&<]]>]]>", "\x1b[31m"]
)
def test_what_tools_copy_although_xml_does_not_allow_it_ends_no_report(kind, copied):
    text, whole = write(kind, ("one", True), ("two", False), ("three", True))
    place = text.index("><", text.index("two")) + 1
    assert outcomes(kind, text[:place] + copied + text[place:]) == whole
    assert outcomes(kind, text + copied) == whole


def test_the_end_of_a_section_stays_in_the_text_of_a_failure_and_colours_do_not():
    inner = "\x1b[31ma\x1b[0m ]]> b <![CDATA[c ]] > d]]>]]> e"
    found = read_results(
        "junit", f'<testsuite><testcase name="a"><failure>{inner}</failure></testcase></testsuite>'
    )
    assert found["a"].message == "a ]]> b c ]] > d]]> e"


@pytest.mark.parametrize("kind", XML)
def test_nesting_that_no_tool_writes_is_refused(kind):
    text, whole = write(kind, ("one", True))
    few = report_xml.MOST_NESTED - 5
    assert outcomes(kind, "<s>" * few + text + "</s>" * few) == whole
    with pytest.raises(ValueError, match="nests deeper than 100 elements"):
        outcomes(kind, "<testsuite>" * 1000)


@pytest.mark.parametrize("kind", XML)
def test_more_tags_than_any_tool_writes_are_refused(kind):
    with pytest.raises(ValueError, match="more than 1,000,000 tags"):
        outcomes(kind, "<" * (report_xml.MOST_TAGS + 1))


def test_elements_are_forgotten_when_they_were_read():
    cases = read_cases("junit", junit(*[(str(number), False) for number in range(1000)]))
    for _ in range(1000):
        next(cases)
    assert sum(isinstance(each, Element) for each in gc.get_objects()) < 100


def test_a_message_is_cut_in_its_middle_and_has_no_colours():
    event = {
        "type": "test",
        "name": "a",
        "event": "failed",
        "stdout": "\x1b[31mfirst" + "x" * 100_000 + "last\r\n",
    }
    message = read_results("libtest", json.dumps(event))["a"].message
    assert message.startswith("first")
    assert message.endswith("last\n")
    assert len(message) <= MESSAGE_CHARS + 10


@pytest.mark.parametrize("event", ['"name": 1', '"name": ["a"]', '"name": null', '"nam": "a"'])
def test_an_event_of_rust_without_a_name_is_none(event):
    assert outcomes("libtest", f'{{ "type": "test", "event": "ok", {event} }}') == {}


def test_a_test_of_rust_that_began_and_did_not_end_has_failed():
    started = '{ "type": "test", "event": "%s", "name": "%s" }\n'
    text = "".join(
        started % each for each in (("started", "a"), ("started", "b"), ("timeout", "b"), ("timeout", "c"))
    )
    found = read_results("libtest", text + libtest(("a", True)))
    assert {name: result.outcome for name, result in found.items()} == {"a": P, "b": F, "c": F}
    assert found["b"].message == "it did not end"
    assert outcomes("libtest", text + libtest(("b", True), ("c", True), ("a", False))) == {
        "a": F,
        "b": P,
        "c": P,
    }


def test_only_a_line_feed_ends_a_line():
    for end in "\u2028\x85":
        assert outcomes("libtest", libtest((f"a{end}b", True)).replace(json.dumps(end)[1:-1], end)) == {
            f"a{end}b": P
        }
        assert outcomes("go-lines", f"noise{end}--- PASS: TestA (0.00s)\n") == {}


def test_lines_of_go_count_at_their_start_or_behind_its_own_mark():
    text = (
        "x --- PASS: A (0s)\nx\x16--- PASS: B (0s)\n  --- PASS: C (0s)\n    --- FAIL: B/c (0s)\n--- PASS: D\n"
    )
    assert outcomes("go-lines", text) == {"B": P, "B/c": F}


@pytest.mark.parametrize("part", ["::test[", "::test(a=", "<object", "::SUBPASS"])
def test_a_test_with_a_name_without_end_is_left_out(part):
    text = junit((part.replace("<", "&lt;") * 50_000, True), ("b", True), ("c" * NAME_CHARS, True))
    assert [*outcomes("junit", text)] == ["b", "c" * NAME_CHARS]
