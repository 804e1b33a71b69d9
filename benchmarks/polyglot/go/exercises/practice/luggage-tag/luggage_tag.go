package luggagetag

// Label makes the tag of an airline and a number.
func Label(airline string, number int) (string, error) {
	panic("Write this function")
}

// IsValid says whether a text is a tag that could have been printed.
func IsValid(text string) bool {
	panic("Write this function")
}
