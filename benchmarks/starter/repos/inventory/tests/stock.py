"""A warehouse with some stock, shared by the tests."""

from inventory import Warehouse, render, stock_table


def show(store):
    """Print the stock, to make a failing run easier to read."""
    print()
    print(render(stock_table(store), ("item", "on hand", "reserved", "available")))


def filled():
    store = Warehouse("north")
    store.receive("bolt", 100, unit_cost=3)
    store.receive("bolt", 50, unit_cost=4)
    store.receive("nut", 80, unit_cost=2)
    store.receive("glue", 10, unit_cost=250, expires="2024-03-31")
    store.receive("glue", 5, unit_cost=240, expires="2024-01-31")
    store.receive("tape", 7, unit_cost=120)
    return store
