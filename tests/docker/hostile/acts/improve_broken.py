"""Breaks its own program"""

import task

task.write("agent.py", "def main(:\n")
