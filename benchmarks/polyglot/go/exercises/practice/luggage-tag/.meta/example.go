package luggagetag

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

var (
	airlines = regexp.MustCompile(`^[A-Z]{2}$`)
	tags     = regexp.MustCompile(`^[A-Z]{2}([0-9]{6})([0-9])$`)
)

// Label makes the tag of an airline and a number.
func Label(airline string, number int) (string, error) {
	if !airlines.MatchString(airline) {
		return "", errors.New("an airline has two upper-case letters")
	}
	if number < 0 || number > 999999 {
		return "", errors.New("a number has up to six digits")
	}
	return fmt.Sprintf("%s%06d%d", airline, number, number%7), nil
}

// IsValid says whether a text is a tag that could have been printed.
func IsValid(text string) bool {
	found := tags.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	number, _ := strconv.Atoi(found[1])
	check, _ := strconv.Atoi(found[2])
	return number%7 == check
}
