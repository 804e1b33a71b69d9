class WrongGateException extends Exception {

    WrongGateException(String message) {
        super(message);
    }

}
