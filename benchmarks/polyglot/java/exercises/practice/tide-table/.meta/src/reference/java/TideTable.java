import java.util.List;

class TideTable {

    private final int[] heights;

    TideTable(int... heights) {
        this.heights = heights.clone();
    }

    List<Integer> highs() {
        return new Turns(heights).above();
    }

    List<Integer> lows() {
        return new Turns(heights).below();
    }

}
