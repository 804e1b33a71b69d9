"""The output limit of a try, by the sizes that a server tells."""

import pytest

from tests.support.models.connection_script import Bench


@pytest.mark.parametrize(("half", "sent"), [(True, 2_000), (False, 3_000)])
def test_a_reply_fills_at_most_half_of_a_told_context_where_the_model_sets_the_limit(half, sent):
    bench = Bench(access={"half_context": half})
    bench.model.adopt(bench.heard, {"context": 4_000})
    bench.ask(max_tokens=3_000)
    bench.ask(max_tokens=500)
    assert [body["max_tokens"] for body in bench.script.bodies] == [sent, 500]
