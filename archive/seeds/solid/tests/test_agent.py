"""Tests of the agent's own parts, for those who change it: ``python3 -m unittest discover -s tests -t .``."""

import os
import tempfile
import unittest

from agent import editing, native_format, text_format
from agent.memory import Call, History, Turn
from agent.tools import Toolbox


class AgentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "a.py")
        editing.create(self.path, "x = 1\ny = 2\n")
        self.toolbox = Toolbox(self.folder)
        self.addCleanup(self.toolbox.close)

    def bash(self, command):
        return self.toolbox.run("bash", {"command": command})

    def test_folder_and_variables_persist(self):
        self.bash("mkdir d; cd d; export A=7")
        self.assertEqual(self.bash("basename $PWD; echo $A"), "d\n7\n")

    def test_long_output_shows_both_ends_and_where_the_rest_is(self):
        shown = self.bash("echo first; seq 9999; echo last")
        self.assertTrue(shown.startswith("first") and shown.endswith("last\n") and "left out" in shown)

    def test_an_edit_that_does_not_fit_shows_the_nearest_lines(self):
        self.assertIn("y = 2", editing.replace(self.path, "y  = 2", "y = 3"))
        self.assertTrue(editing.replace(self.path, "y = 2", "y = 3").startswith("edited"))

    def test_the_first_submit_shows_the_changes(self):
        self.bash("echo new > b.txt")
        self.assertIn("+new", self.toolbox.run("submit", {}))
        self.assertEqual(self.toolbox.run("submit", {}), "submitted")

    def test_both_forms_read_calls(self):
        self.assertEqual(
            text_format.parse({"content": "a\n```bash\nls\n```"}, 1)[0].arguments, {"command": "ls"}
        )
        call = {"id": "1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
        self.assertEqual(
            native_format.parse({"tool_calls": [call]}, 1), [Call("1", "bash", {"command": "ls"})]
        )

    def test_a_long_conversation_gets_shorter(self):
        history = History("first")
        for _ in range(9):
            turn = Turn({"content": ""}, "said", [])
            turn.results = ["x" * 9000]
            history.turns.append(turn)
        history.limit = 30000
        history.fit()
        self.assertLess(history.size(), 30000)


if __name__ == "__main__":
    unittest.main()
