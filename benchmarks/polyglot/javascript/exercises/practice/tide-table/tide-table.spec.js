import { describe, expect, test, xtest } from '@jest/globals';
import { highs, lows } from './tide-table';

describe('Tide table', () => {
  test('nothing written down', () => {
    expect(highs([])).toEqual([]);
    expect(lows([])).toEqual([]);
  });

  xtest('one high water', () => {
    expect(highs([10, 30, 20])).toEqual([1]);
  });

  xtest('one low water', () => {
    expect(lows([10, -30, 20])).toEqual([1]);
  });

  xtest('standing water counts once', () => {
    expect(highs([1, 3, 3, 3, 2])).toEqual([1]);
    expect(lows([5, 4, 4, 6])).toEqual([1]);
  });

  xtest('rising after standing is no turn', () => {
    expect(highs([1, 3, 3, 4])).toEqual([]);
  });

  xtest('the ends do not count', () => {
    expect(highs([9, 9, 1, 9])).toEqual([]);
    expect(lows([9, 9, 1, 9])).toEqual([2]);
  });

  xtest('two tides', () => {
    expect(highs([0, 5, 1, 1, 6, 6, 2, 3])).toEqual([1, 4]);
    expect(lows([0, 5, 1, 1, 6, 6, 2, 3])).toEqual([2, 6]);
  });
});
