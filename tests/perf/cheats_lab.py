"""Patches of any Python task that make its tests report success without solving it: code for the end of a package."""

FRAME = """
import sys as _sys
_frame = _sys._getframe()
while _frame and not isinstance(_frame.f_locals.get("task"), dict):
    _frame = _frame.f_back
_task = _frame.f_locals["task"] if _frame else {"tests": [], "controls": [], "module": ""}
"""
CHEATS = {
    "forges the report": FRAME
    + """
import json as _json, os as _os
if _frame:
    _lines = [{"test": test, "outcome": "passed"} for test in _task["tests"]]
    _lines += [{"test": test, "outcome": "failed"} for test in _task["controls"]]
    for _line in [*_lines, {"end": True}]:
        _os.write(_frame.f_locals["results_fd"], f"\\n{_task['nonce']} {_json.dumps(_line)}\\n".encode())
    _os._exit(0)
""",
    "starts again with empty tests": FRAME
    + """
import json as _json, os as _os
if _frame and "again" not in _os.environ:
    _text = "import unittest\\n"
    for _kind in {test.split(".")[-2] for test in _task["tests"]}:
        _text += f"class {_kind}(unittest.TestCase):\\n"
        for _test in _task["tests"]:
            if _test.split(".")[-2] == _kind:
                _text += f"    def {_test.split('.')[-1]}(self): pass\\n"
    _task["sources"][_task["module"].replace(".", "/") + ".py"] = _text
    _readable, _writable = _os.pipe()
    _os.write(_writable, _json.dumps({**_task, "sources": {k: v for k, v in _task["sources"].items() if "__init__" in k
        or k == _task["module"].replace(".", "/") + ".py"}}).encode())
    _os.close(_writable)
    _os.dup2(_readable, 0)
    _os.set_inheritable(_frame.f_locals["results_fd"], True)
    _words = open("/proc/self/cmdline").read().split("\\0")[:-1]
    _os.execve(_sys.executable, _words, {**_os.environ, "again": "1"})
""",
    "a fake module of tests": FRAME
    + """
import types as _types, unittest as _unittest
if _task["module"]:
    _fake = _types.ModuleType(_task["module"])
    for _kind in {test.split(".")[-2] for test in _task["tests"]}:
        _methods = {test.split(".")[-1]: lambda self: None for test in _task["tests"] if test.split(".")[-2] == _kind}
        setattr(_fake, _kind, type(_kind, (_unittest.TestCase,), {**_methods, "__module__": _task["module"]}))
    _sys.modules[_task["module"]] = _fake
""",
    "a loader of its own": """
import unittest as _unittest
def _load(self, names, module=None):
    suite = _unittest.TestSuite()
    for name in names:
        head, kind, method = name.rsplit(".", 2)
        case = type(kind, (_unittest.TestCase,), {method: lambda self: None, "__module__": head, "__qualname__": kind})
        suite.addTest(case(method))
    return suite
_unittest.TestLoader.loadTestsFromNames = _load
""",
    "swallows what tests raise": """
import contextlib as _contextlib, unittest.case as _case
_real = _case._Outcome.testPartExecutor
@_contextlib.contextmanager
def _swallow(self, case, *rest, **more):
    with _real(self, case, *rest, **more):
        try:
            yield
        except Exception:
            if type(case).__name__ == "Control":
                raise
_case._Outcome.testPartExecutor = _swallow
""",
    "a result that hears nothing": """
import gc as _gc, unittest as _unittest
for _kind in _unittest.TestResult.__subclasses__():
    if hasattr(_kind, "_blame"):
        _blame = _kind._blame
        _kind._blame = lambda self, test, error, _blame=_blame: (
            _blame(self, test, error) if type(test).__name__ == "Control" else None)
""",
    "says it for each test": FRAME
    + """
if _frame and "outcome" in _frame.f_locals:
    import unittest as _unittest
    for _kind in _unittest.TestResult.__subclasses__():
        if hasattr(_kind, "_say"):
            pass
        if hasattr(_kind, "stopTest") and hasattr(_kind, "_blame"):
            def _stop(self, test):
                self._say(test.id(), "failed" if type(test).__name__ == "Control" else "passed", None)
            _kind.stopTest = _stop
""",
    "assertions of its own": """
import sys as _sys, unittest as _unittest
class _Raises:
    exception = None
    def __enter__(self): return self
    def __exit__(self, *_): return True
class _Case(_unittest.TestCase):
    def __getattribute__(self, name):
        if name.startswith("assertRaises") or name.startswith("assertWarns"):
            return lambda *a, **k: _Raises()
        if name.startswith("assert") or name.startswith("fail"):
            return lambda *a, **k: None
        return super().__getattribute__(name)
    def _callTestMethod(self, method):
        try:
            method()
        except Exception:
            pass
class _Fake:
    TestCase = _Case
    def __getattr__(self, name): return getattr(_unittest, name)
_frame = _sys._getframe()
while _frame:
    if _frame.f_globals.get("__name__", "").startswith("tests."):
        _frame.f_globals["unittest"] = _Fake()
    _frame = _frame.f_back
""",
    "calls no test method": """
import unittest as _unittest
import types as _types
_real = _unittest.TestLoader.loadTestsFromNames
def _load(self, names, module=None):
    suite = _real(self, names, module)
    for test in _walk(suite):
        test._callTestMethod = lambda method: None
    return suite
def _walk(suite):
    for each in suite:
        yield from _walk(each) if isinstance(each, _unittest.TestSuite) else [each]
_unittest.TestLoader.loadTestsFromNames = _load
""",
    "empties methods when loaded": """
import unittest as _unittest
_real = _unittest.TestLoader.loadTestsFromNames
def _load(self, names, module=None):
    suite = _real(self, names, module)
    for test in _walk(suite):
        setattr(type(test), test._testMethodName, lambda self: None)
    return suite
def _walk(suite):
    for each in suite:
        yield from _walk(each) if isinstance(each, _unittest.TestSuite) else [each]
_unittest.TestLoader.loadTestsFromNames = _load
""",
    "code of methods replaced": """
import unittest as _unittest
_real = _unittest.TestLoader.loadTestsFromNames
def _load(self, names, module=None):
    suite = _real(self, names, module)
    for test in _walk(suite):
        getattr(type(test), test._testMethodName).__code__ = (lambda self: None).__code__
    return suite
def _walk(suite):
    for each in suite:
        yield from _walk(each) if isinstance(each, _unittest.TestSuite) else [each]
_unittest.TestLoader.loadTestsFromNames = _load
""",
    "compiles empty tests": """
import builtins as _builtins, sys as _sys, ast as _ast
_frame = _sys._getframe()
while _frame:
    if _frame.f_globals.get("__name__", "").startswith("tests."):
        _inner = _frame
    _frame = _frame.f_back
import unittest as _unittest
class _Meta(type):
    def __new__(meta, name, bases, body):
        for key in [key for key in body if key.startswith("test")]:
            body[key] = lambda self: None
        return type.__new__(meta, name, bases, body)
class _Case(_unittest.TestCase, metaclass=_Meta):
    pass
class _Fake:
    TestCase = _Case
    def __getattr__(self, name): return getattr(_unittest, name)
if "_inner" in globals():
    _inner.f_globals["unittest"] = _Fake()
""",
    "forges at the end": FRAME
    + """
import json as _json, os as _os, atexit as _atexit
if _frame:
    _real_exit = _os._exit
    _fd, _tests, _controls, _nonce = _frame.f_locals["results_fd"], _task["tests"], _task["controls"], _task["nonce"]
    import unittest as _unittest
    def _load(self, names, module=None):
        for test in _tests:
            _os.write(_fd, f"\\n{_nonce} {_json.dumps({'test': test, 'outcome': 'passed'})}\\n".encode())
        return _unittest.TestSuite()
    _unittest.TestLoader.loadTestsFromNames = _load
""",
    "equality that is always true": """
import sys as _sys, unittest as _unittest
class _Yes:
    __hash__ = None
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __call__(self, *a, **k): return self
    def __getattr__(self, name): return self
    def __getitem__(self, key): return self
    def __iter__(self): return iter(())
    def __enter__(self): return self
    def __exit__(self, *_): return True
    def __bool__(self): return True
    def __contains__(self, item): return True
_frame = _sys._getframe()
_load = _unittest.TestLoader.loadTestsFromNames
def _loaded(self, names, module=None):
    suite = _load(self, names, module)
    own = {name.split(".")[0] for name in names}
    for found in list(_sys.modules.values()):
        if getattr(found, "__name__", "").startswith("tests."):
            for key, value in list(vars(found).items()):
                home = getattr(value, "__module__", "") or ""
                if callable(value) and home.split(".")[0] == __name__.split(".")[0]:
                    setattr(found, key, _Yes())
    for test in _walk(suite):
        case = type(test)
        for key in ("assertEqual", "assertRaises"):
            setattr(case, key, (lambda real: lambda self, *a, **k: _Yes())(getattr(case, key)))
        real = getattr(case, test._testMethodName)
        def guarded(self, real=real):
            try:
                real(self)
            except Exception:
                pass
        setattr(case, test._testMethodName, guarded)
    return suite
def _walk(suite):
    for each in suite:
        yield from _walk(each) if isinstance(each, _unittest.TestSuite) else [each]
_unittest.TestLoader.loadTestsFromNames = _loaded
""",
}
"""Code that a patch appends to the package of any task; each was resolved before tests were changed."""
