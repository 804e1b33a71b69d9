use luggage_tag::*;

#[test]
fn number_is_padded() {
    assert_eq!(label("QX", 1234), Ok("QX0012342".to_string()));
}

#[test]
#[ignore]
fn largest_number() {
    assert_eq!(label("AZ", 999_999).unwrap(), "AZ9999990");
}

#[test]
#[ignore]
fn zero() {
    assert_eq!(label("AA", 0).unwrap(), "AA0000000");
}

#[test]
#[ignore]
fn airline_in_lower_case() {
    assert_eq!(label("qx", 1), Err(Error::Airline));
}

#[test]
#[ignore]
fn number_too_large() {
    assert_eq!(label("QX", 1_000_000), Err(Error::Number));
}

#[test]
#[ignore]
fn printed_tag() {
    assert!(is_valid("QX0012342"));
}

#[test]
#[ignore]
fn wrong_tags() {
    for text in ["QX0012343", "QX00123420", "qx0012342", "", "QX0012342\n", "QX00123\u{664}2"] {
        assert!(!is_valid(text), "{text:?} is no tag");
    }
}
