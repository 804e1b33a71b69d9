class TollRoad {

    private Integer entered;
    private int total;
    private int longest;

    void enter(int gate) throws WrongGateException {
        if (entered != null) {
            throw new WrongGateException("the car is on the road already");
        }
        entered = known(gate);
    }

    int leave(int gate) throws WrongGateException {
        if (entered == null) {
            throw new WrongGateException("the car is not on the road");
        }
        int ride = Math.abs(known(gate) - entered);
        entered = null;
        int price = ride == 0 ? 0 : 3 * ride + 2;
        total += price;
        longest = Math.max(longest, ride);
        return price;
    }

    int getTotal() {
        return total;
    }

    int getLongest() {
        return longest;
    }

    private static int known(int gate) throws WrongGateException {
        if (gate < 0) {
            throw new WrongGateException("there is no such gate");
        }
        return gate;
    }

}
