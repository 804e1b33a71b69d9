"""Arguments of calls that some JSON libraries cannot read or write."""

import json

import pytest

from dgm.wires.values import INVALID_JSON, arguments_of, is_json, mend_arguments

ODD = ['{"a":' * 900 + "1" + "}" * 900, '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', "{" * 5000]


@pytest.mark.parametrize("text", ODD)
def test_arguments_that_not_every_library_can_write_are_shown_as_text(text):
    assert not is_json(text)
    assert arguments_of(text) == {INVALID_JSON: text}
    assert json.loads(mend_arguments(text)) == {INVALID_JSON: text}
