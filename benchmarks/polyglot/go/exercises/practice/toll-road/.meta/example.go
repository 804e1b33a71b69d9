package tollroad

import "errors"

// Account of one car.
type Account struct {
	entered, total, longest int
	onRoad                  bool
}

var errGate = errors.New("there is no such gate")

// Enter notes the gate at which the car drives in.
func (a *Account) Enter(gate int) error {
	if a.onRoad {
		return errors.New("the car is on the road already")
	}
	if gate < 0 {
		return errGate
	}
	a.entered, a.onRoad = gate, true
	return nil
}

// Leave notes the gate at which the car drives out and gives the price of the ride.
func (a *Account) Leave(gate int) (int, error) {
	if !a.onRoad {
		return 0, errors.New("the car is not on the road")
	}
	if gate < 0 {
		return 0, errGate
	}
	a.onRoad = false
	ride := gate - a.entered
	if ride < 0 {
		ride = -ride
	}
	if ride == 0 {
		return 0, nil
	}
	if ride > a.longest {
		a.longest = ride
	}
	price := 3*ride + 2
	a.total += price
	return price, nil
}

// Total gives the sum of all rides.
func (a *Account) Total() int {
	return a.total
}

// Longest gives the longest ride in kilometres.
func (a *Account) Longest() int {
	return a.longest
}
