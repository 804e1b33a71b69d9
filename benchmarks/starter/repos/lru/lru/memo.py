"""Keeping the results of a function in a cache."""

import functools


def memoized(cache, name=None, ttl=None):
    """Return a decorator that keeps results in ``cache``, in the namespace ``name``.

    Arguments are told apart by their ``repr``. The decorated function has a method ``forget()``, which drops
    all its results.
    """

    def decorate(function):
        space = name or function.__name__

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            parts = [repr(arg) for arg in args]
            parts += [f"{key}={value!r}" for key, value in sorted(kwargs.items())]
            key = f"{space}:{','.join(parts)}"
            return cache.get_or_load(key, lambda _: function(*args, **kwargs), ttl=ttl)

        wrapper.forget = lambda: cache.drop_tag(space)
        return wrapper

    return decorate
