import java.util.ArrayList;
import java.util.List;

class Turns {

    private final int[] heights;

    Turns(int[] heights) {
        this.heights = heights;
    }

    List<Integer> above() {
        return turns(1);
    }

    List<Integer> below() {
        return turns(-1);
    }

    private List<Integer> turns(int sign) {
        List<Integer> starts = new ArrayList<>();
        for (int n = 0; n < heights.length; n++) {
            if (n == 0 || heights[n] != heights[n - 1]) {
                starts.add(n);
            }
        }
        List<Integer> found = new ArrayList<>();
        for (int n = 1; n + 1 < starts.size(); n++) {
            int here = sign * heights[starts.get(n)];
            if (here > sign * heights[starts.get(n - 1)] && here > sign * heights[starts.get(n + 1)]) {
                found.add(starts.get(n));
            }
        }
        return found;
    }

}
