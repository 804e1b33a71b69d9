import pytest

from basket import Basket


@pytest.fixture
def basket():
    return Basket()


def test_empty_basket_costs_nothing(basket):
    assert basket.total() == 0


def test_count_multiplies_the_price(basket):
    basket.add("tea", 250, 3)
    assert basket.total() == 750


def test_count_below_one_is_refused(basket):
    with pytest.raises(ValueError, match="at least 1"):
        basket.add("tea", 250, 0)
