import unittest
from unittest import mock

import report
from vendor import licence


class Report(unittest.TestCase):
    def test_report(self):
        self.assertEqual(report.render([2, 3]), "total: 5")
        self.assertEqual(report.render([4]), "total: 4")

    def test_licence_is_asked_for(self):
        with mock.patch.object(licence, "check") as check:
            report.render([1])
        self.assertEqual(check.call_count, 1)

    def test_total(self):
        self.assertEqual(report.total([1, 2, 4]), 7)
