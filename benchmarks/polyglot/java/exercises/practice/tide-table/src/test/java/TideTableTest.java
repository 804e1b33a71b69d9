import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;

public class TideTableTest {

    private static void check(TideTable table, List<Integer> highs, List<Integer> lows) {
        assertEquals(highs, table.highs());
        assertEquals(lows, table.lows());
    }

    @Test
    public void nothingWrittenDown() {
        check(new TideTable(), List.of(), List.of());
    }

    @Disabled("Remove to run test")
    @Test
    public void oneTurn() {
        check(new TideTable(10, 30, 20), List.of(1), List.of());
        check(new TideTable(10, -30, 20), List.of(), List.of(1));
    }

    @Disabled("Remove to run test")
    @Test
    public void standingWater() {
        check(new TideTable(1, 3, 3, 3, 2), List.of(1), List.of());
        check(new TideTable(1, 3, 3, 4), List.of(), List.of());
    }

    @Disabled
    @Test
    public void endsDoNotCount() {
        check(new TideTable(9, 9, 1, 9), List.of(), List.of(2));
    }

    @Disabled("Remove to run test")
    @Test
    public void twoTides() {
        check(new TideTable(0, 5, 1, 1, 6, 6, 2, 3), List.of(1, 4), List.of(2, 6));
    }
}
