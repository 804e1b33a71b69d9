package tollroad

import "testing"

func ride(t *testing.T, a *Account, first, last, want int) {
	t.Helper()
	if err := a.Enter(first); err != nil {
		t.Fatalf("Enter(%d): %v", first, err)
	}
	if got, err := a.Leave(last); got != want || err != nil {
		t.Fatalf("Leave(%d) after Enter(%d) = %d, %v; want %d", last, first, got, err, want)
	}
}

func sums(t *testing.T, a *Account, total, longest int) {
	t.Helper()
	if a.Total() != total || a.Longest() != longest {
		t.Errorf("Total, Longest = %d, %d; want %d, %d", a.Total(), a.Longest(), total, longest)
	}
}

func TestNewAccount(t *testing.T) {
	sums(t, &Account{}, 0, 0)
}

func TestPrices(t *testing.T) {
	t.Parallel()
	a := &Account{}
	ride(t, a, 10, 30, 62)
	ride(t, a, 30, 10, 62)
	ride(t, a, 7, 7, 0)
	sums(t, a, 124, 20)
}

func TestEnterTwice(t *testing.T) {
	a := &Account{}
	if a.Enter(1) != nil || a.Enter(2) == nil {
		t.Error("the second Enter gave no error")
	}
	if price, _ := a.Leave(2); price != 5 {
		t.Errorf("Leave(2) = %d; want 5", price)
	}
}

func TestLeaveFirst(t *testing.T) {
	if _, err := (&Account{}).Leave(2); err == nil {
		t.Error("Leave gave no error")
	}
}

func TestWrongGate(t *testing.T) {
	a := &Account{}
	if a.Enter(-1) == nil {
		t.Error("Enter(-1) gave no error")
	}
	_ = a.Enter(1)
	if _, err := a.Leave(-1); err == nil {
		t.Error("Leave(-1) gave no error")
	}
	if price, _ := a.Leave(2); price != 5 {
		t.Errorf("Leave(2) = %d; want 5", price)
	}
}
