import java.util.regex.Matcher;
import java.util.regex.Pattern;

class LuggageTag {

    private static final Pattern TAG = Pattern.compile("[A-Z]{2}([0-9]{6})([0-9])");

    String label(String airline, int number) {
        if (!airline.matches("[A-Z]{2}")) {
            throw new IllegalArgumentException("an airline has two upper-case letters");
        }
        if (number < 0 || number > 999999) {
            throw new IllegalArgumentException("a number has up to six digits");
        }
        return String.format("%s%06d%d", airline, number, number % 7);
    }

    boolean isValid(String text) {
        Matcher found = TAG.matcher(text);
        return found.matches() && Integer.parseInt(found.group(1)) % 7 == Integer.parseInt(found.group(2));
    }

}
