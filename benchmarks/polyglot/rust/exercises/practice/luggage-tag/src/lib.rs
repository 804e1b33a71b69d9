#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    Airline,
    Number,
}

pub fn label(airline: &str, number: u32) -> Result<String, Error> {
    todo!("the tag of airline {airline} and number {number}")
}

pub fn is_valid(text: &str) -> bool {
    todo!("whether {text} is a tag")
}
