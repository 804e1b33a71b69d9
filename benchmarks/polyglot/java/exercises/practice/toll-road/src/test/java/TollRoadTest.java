import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

public class TollRoadTest {

    private TollRoad account;

    @BeforeEach
    public void setUp() {
        account = new TollRoad();
    }

    private int ride(int first, int last) throws WrongGateException {
        account.enter(first);
        return account.leave(last);
    }

    @Test
    public void newAccount() {
        assertThat(account.getTotal()).isZero();
        assertThat(account.getLongest()).isZero();
    }

    @Disabled("Remove to run test")
    @Test
    public void prices() throws WrongGateException {
        assertThat(ride(10, 30)).isEqualTo(62);
        assertThat(ride(30, 10)).isEqualTo(62);
        assertThat(ride(7, 7)).isZero();
    }

    @Disabled("Remove to run test")
    @Test
    public void sums() throws WrongGateException {
        ride(0, 1);
        ride(4, 2);
        ride(5, 5);
        assertThat(account.getTotal()).isEqualTo(13);
        assertThat(account.getLongest()).isEqualTo(2);
    }

    @Disabled("Remove to run test")
    @Test
    public void enterTwice() throws WrongGateException {
        account.enter(1);
        assertThatExceptionOfType(WrongGateException.class).isThrownBy(() -> account.enter(2));
        assertThat(account.leave(2)).isEqualTo(5);
    }

    @Disabled("Remove to run test")
    @Test
    public void leaveFirst() {
        assertThatExceptionOfType(WrongGateException.class).isThrownBy(() -> account.leave(2));
    }

    @Disabled("Remove to run test")
    @Test
    public void wrongGateChangesNothing() throws WrongGateException {
        account.enter(1);
        assertThatExceptionOfType(WrongGateException.class).isThrownBy(() -> account.leave(-1));
        assertThat(account.leave(2)).isEqualTo(5);
    }
}
