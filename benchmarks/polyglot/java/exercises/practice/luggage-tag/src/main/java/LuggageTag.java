class LuggageTag {

    String label(String airline, int number) {
        throw new UnsupportedOperationException("Write this method.");
    }

    boolean isValid(String text) {
        throw new UnsupportedOperationException("Write this method.");
    }

}
