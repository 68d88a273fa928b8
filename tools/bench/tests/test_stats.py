"""Statistics against cases worked by hand and naive forms."""

import math
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import stats
import tables


class Stats(unittest.TestCase):
    def test_rank_is_the_nearest(self):
        self.assertEqual(
            [stats.rank([3, 1, 2, 4], share) for share in (0, 0.25, 0.26, 0.5, 0.99, 1)], [1, 1, 2, 2, 4, 4]
        )
        # 0.07 times 100 is a little more than 7 in binary.
        self.assertEqual(stats.rank(range(1, 101), 0.07), 7)
        self.assertIsNone(stats.rank([], 0.5))

    def test_median_leaves_the_unknown_out(self):
        self.assertEqual(stats.median([None, 3, 1]), 2)
        self.assertEqual(stats.median(iter([5, 1, 9])), 5)
        self.assertIsNone(stats.median([None]))

    def test_distance_of_two_samples(self):
        self.assertEqual(stats.ks_two([1, 2, 3], [1, 2, 3]), 0)
        self.assertEqual(stats.ks_two([1, 2], [3, 4]), 1)
        self.assertEqual(stats.ks_two([1, 3], [2, 4]), 0.5)
        self.assertIsNone(stats.ks_two([], [1]))

    def test_distance_from_the_law(self):
        # One value at the median of the law: half of the law lies on each side.
        self.assertAlmostEqual(stats.ks_exponential([math.log(2)], 1), 0.5)
        drawn = [random.Random(1).expovariate(1 / 5)]
        draw = random.Random(2)
        drawn = [draw.expovariate(1 / 5) for _ in range(5000)]
        self.assertLess(stats.ks_exponential(drawn, 5), stats.ks_critical(5000))
        self.assertGreater(stats.ks_exponential([round(value) for value in drawn], 5), 2 * stats.ks_critical(5000))

    def test_gaps_are_of_neighbours_in_time(self):
        self.assertEqual(stats.gaps([5, 1, 2]), [1, 3])


class Tables(unittest.TestCase):
    def test_a_range_is_shown_where_there_is_one(self):
        self.assertEqual(tables.spread([2.0]), "2.00")
        self.assertEqual(tables.spread([3.0, 1.0, None, 2.0]), "2.00 (1.00 to 3.00)")
        self.assertEqual(tables.spread([None]), "–")

    def test_ratios_are_of_the_same_turn(self):
        self.assertEqual(tables.ratio([2.0, 6.0, None], [1.0, 2.0, 1.0]), "2.50 (2.00 to 3.00)")
        self.assertEqual(tables.ratio([1.0], []), "–")

    def test_bars_in_cells_do_not_break_the_table(self):
        self.assertEqual(tables.table(["a"], [["x | y"]]), ["| a |", "| --- |", "| x \\| y |"])


if __name__ == "__main__":
    unittest.main()
