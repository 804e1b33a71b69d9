import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

public class LuggageTagTest {

    private final LuggageTag tags = new LuggageTag();

    @Test
    @DisplayName("The number is padded")
    public void numberIsPadded() {
        assertThat(tags.label("QX", 1234)).isEqualTo("QX0012342");
    }

    @Disabled("Remove to run test")
    @Test
    @DisplayName("The largest number")
    public void largestNumber() {
        assertThat(tags.label("AZ", 999999)).isEqualTo("AZ9999990");
    }

    @Disabled("Remove to run test")
    @Test
    public void airlineInLowerCase() {
        assertThatExceptionOfType(IllegalArgumentException.class)
            .isThrownBy(() -> tags.label("qx", 1))
            .withMessage("an airline has two upper-case letters");
    }

    @Disabled("Remove to run test")
    @ParameterizedTest
    @ValueSource(ints = {-1, 1000000})
    public void numberOutOfRange(int number) {
        assertThatExceptionOfType(IllegalArgumentException.class)
            .isThrownBy(() -> tags.label("QX", number))
            .withMessage("a number has up to six digits");
    }

    @Disabled("Remove to run test")
    @Test
    public void printedTag() {
        assertThat(tags.isValid("QX0012342")).isTrue();
    }

    @Disabled("Remove to run test")
    @ParameterizedTest
    @ValueSource(strings = {"QX0012343", "QX00123420", "qx0012342", ""})
    public void wrongTag(String text) {
        assertThat(tags.isValid(text)).isFalse();
    }
}
