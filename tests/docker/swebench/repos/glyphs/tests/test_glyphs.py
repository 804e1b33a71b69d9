import pytest

from glyphs import greeting, width


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("two words", 9), ("漢字", 4), ("/a/b/c", 6)])
def test_width(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize("language", ["de", "ja", "en"])
def test_greeting(language, capsys):
    print(greeting(language))
    assert capsys.readouterr().out.strip()
