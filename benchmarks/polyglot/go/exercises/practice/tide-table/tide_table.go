package tidetable

// Highs gives the positions of all high waters.
func Highs(heights []int) []int {
	panic("Write this function")
}

// Lows gives the positions of all low waters.
func Lows(heights []int) []int {
	panic("Write this function")
}
