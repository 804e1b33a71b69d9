class TollRoad {

    void enter(int gate) throws WrongGateException {
        throw new UnsupportedOperationException("Write this method.");
    }

    int leave(int gate) throws WrongGateException {
        throw new UnsupportedOperationException("Write this method.");
    }

    int getTotal() {
        throw new UnsupportedOperationException("Write this method.");
    }

    int getLongest() {
        throw new UnsupportedOperationException("Write this method.");
    }

}
