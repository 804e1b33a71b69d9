#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    OnTheRoad,
    NotOnTheRoad,
    NoSuchGate,
}

#[derive(Default)]
pub struct Account {
    entered: Option<i64>,
    total: i64,
    longest: i64,
}

impl Account {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn enter(&mut self, gate: i64) -> Result<(), Error> {
        if self.entered.is_some() {
            return Err(Error::OnTheRoad);
        }
        if gate < 0 {
            return Err(Error::NoSuchGate);
        }
        self.entered = Some(gate);
        Ok(())
    }

    pub fn leave(&mut self, gate: i64) -> Result<i64, Error> {
        let entered = self.entered.ok_or(Error::NotOnTheRoad)?;
        if gate < 0 {
            return Err(Error::NoSuchGate);
        }
        self.entered = None;
        let ride = (gate - entered).abs();
        let price = if ride > 0 { 3 * ride + 2 } else { 0 };
        self.total += price;
        self.longest = self.longest.max(ride);
        Ok(price)
    }

    pub fn total(&self) -> i64 {
        self.total
    }

    pub fn longest(&self) -> i64 {
        self.longest
    }
}
