#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    Airline,
    Number,
}

pub fn label(airline: &str, number: u32) -> Result<String, Error> {
    if airline.len() != 2 || !airline.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(Error::Airline);
    }
    if number > 999_999 {
        return Err(Error::Number);
    }
    Ok(format!("{airline}{number:06}{}", number % 7))
}

pub fn is_valid(text: &str) -> bool {
    if !text.is_ascii() || text.len() != 9 {
        return false;
    }
    match text[2..8].parse() {
        Ok(number) => label(&text[..2], number).as_deref() == Ok(text),
        Err(_) => false,
    }
}
