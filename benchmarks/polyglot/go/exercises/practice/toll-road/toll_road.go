package tollroad

// Account of one car.
type Account struct {
}

// Enter notes the gate at which the car drives in.
func (a *Account) Enter(gate int) error {
	panic("Write this method")
}

// Leave notes the gate at which the car drives out and gives the price of the ride.
func (a *Account) Leave(gate int) (int, error) {
	panic("Write this method")
}

// Total gives the sum of all rides.
func (a *Account) Total() int {
	panic("Write this method")
}

// Longest gives the longest ride in kilometres.
func (a *Account) Longest() int {
	panic("Write this method")
}
