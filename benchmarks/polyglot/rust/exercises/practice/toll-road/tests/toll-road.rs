use toll_road::*;

fn ride(account: &mut Account, first: i64, last: i64) -> i64 {
    account.enter(first).unwrap();
    account.leave(last).unwrap()
}

#[test]
fn new_account() {
    let account = Account::new();
    assert_eq!((account.total(), account.longest()), (0, 0));
}

#[test]
#[ignore]
fn price_of_a_ride() {
    let mut account = Account::new();
    assert_eq!(ride(&mut account, 10, 30), 62);
    assert_eq!(ride(&mut account, 30, 10), 62);
    assert_eq!(ride(&mut account, 7, 7), 0);
}

#[test]
#[ignore]
fn sums_up() {
    let mut account = Account::new();
    ride(&mut account, 0, 1);
    ride(&mut account, 4, 2);
    ride(&mut account, 5, 5);
    assert_eq!((account.total(), account.longest()), (13, 2));
}

#[test]
#[ignore]
fn enter_twice() {
    let mut account = Account::new();
    account.enter(1).unwrap();
    assert_eq!(account.enter(2), Err(Error::OnTheRoad));
    assert_eq!(account.leave(2), Ok(5));
}

#[test]
#[ignore]
fn leave_first() {
    assert_eq!(Account::new().leave(2), Err(Error::NotOnTheRoad));
}

#[test]
#[ignore]
#[should_panic(expected = "NoSuchGate")]
fn wrong_gate() {
    Account::new().enter(-1).unwrap();
}
