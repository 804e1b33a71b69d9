package tidetable

import (
	"fmt"
	"testing"
)

func check(t *testing.T, heights, highs, lows []int) {
	t.Helper()
	if got := Highs(heights); fmt.Sprint(got) != fmt.Sprint(highs) {
		t.Errorf("Highs(%v) = %v; want %v", heights, got, highs)
	}
	if got := Lows(heights); fmt.Sprint(got) != fmt.Sprint(lows) {
		t.Errorf("Lows(%v) = %v; want %v", heights, got, lows)
	}
}

func TestNothing(t *testing.T) {
	check(t, nil, nil, nil)
}

func TestOneTurn(t *testing.T) {
	check(t, []int{10, 30, 20}, []int{1}, nil)
	check(t, []int{10, -30, 20}, nil, []int{1})
}

func TestStandingWater(t *testing.T) {
	check(t, []int{1, 3, 3, 3, 2}, []int{1}, nil)
	check(t, []int{1, 3, 3, 4}, nil, nil)
}

func TestEnds(t *testing.T) {
	check(t, []int{9, 9, 1, 9}, nil, []int{2})
}

func TestTwoTides(t *testing.T) {
	check(t, []int{0, 5, 1, 1, 6, 6, 2, 3}, []int{1, 4}, []int{2, 6})
}

func BenchmarkHighs(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Highs([]int{0, 5, 1, 1, 6, 6, 2, 3})
	}
}
