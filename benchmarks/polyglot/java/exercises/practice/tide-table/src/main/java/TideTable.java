import java.util.List;

class TideTable {

    TideTable(int... heights) {
        throw new UnsupportedOperationException("Write this constructor.");
    }

    List<Integer> highs() {
        throw new UnsupportedOperationException("Write this method.");
    }

    List<Integer> lows() {
        throw new UnsupportedOperationException("Write this method.");
    }

}
