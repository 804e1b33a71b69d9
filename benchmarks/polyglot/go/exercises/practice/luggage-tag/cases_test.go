package luggagetag

var labels = []struct {
	name, airline string
	number        int
	want          string
	fails         bool
}{
	{"padded", "QX", 1234, "QX0012342", false},
	{"largest", "AZ", 999999, "AZ9999990", false},
	{"zero", "AA", 0, "AA0000000", false},
	{"lower case", "qx", 1, "", true},
	{"too large", "QX", 1000000, "", true},
	{"below zero", "QX", -1, "", true},
}
