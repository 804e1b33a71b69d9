package luggagetag

import "testing"

func TestLabel(t *testing.T) {
	for _, c := range labels {
		t.Run(c.name, func(t *testing.T) {
			got, err := Label(c.airline, c.number)
			if (err != nil) != c.fails || got != c.want {
				t.Fatalf("Label(%q, %d) = %q, %v; want %q, error: %t", c.airline, c.number, got, err, c.want, c.fails)
			}
		})
	}
}

func TestPrintedTag(t *testing.T) {
	if !IsValid("QX0012342") {
		t.Error("IsValid of a printed tag = false")
	}
}

func TestWrongTags(t *testing.T) {
	for _, text := range []string{"QX0012343", "QX00123420", "qx0012342", "", "QX0012342\n"} {
		if IsValid(text) {
			t.Errorf("IsValid(%q) = true", text)
		}
	}
}
