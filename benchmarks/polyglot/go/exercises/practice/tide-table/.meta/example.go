package tidetable

// Highs gives the positions of all high waters.
func Highs(heights []int) []int {
	return turns(heights, 1)
}

// Lows gives the positions of all low waters.
func Lows(heights []int) []int {
	return turns(heights, -1)
}

func turns(heights []int, sign int) []int {
	var starts, found []int
	for n, height := range heights {
		if n == 0 || height != heights[n-1] {
			starts = append(starts, n)
		}
	}
	for n := 1; n+1 < len(starts); n++ {
		before, here, after := heights[starts[n-1]], heights[starts[n]], heights[starts[n+1]]
		if sign*here > sign*before && sign*here > sign*after {
			found = append(found, starts[n])
		}
	}
	return found
}
