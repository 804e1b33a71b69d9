use tide_table::{highs, lows};

macro_rules! turns {
    ($($name:ident: $heights:expr => $highs:expr, $lows:expr;)*) => {
        $(
            #[test]
            #[ignore]
            fn $name() {
                let (wanted_highs, wanted_lows): (Vec<usize>, Vec<usize>) = ($highs, $lows);
                assert_eq!(highs(&$heights), wanted_highs);
                assert_eq!(lows(&$heights), wanted_lows);
            }
        )*
    };
}

#[test]
fn nothing_written_down() {
    assert!(highs(&[]).is_empty());
    assert!(lows(&[]).is_empty());
}

turns! {
    one_high_water: [10, 30, 20] => vec![1], vec![];
    one_low_water: [10, -30, 20] => vec![], vec![1];
    standing_water_counts_once: [1, 3, 3, 3, 2] => vec![1], vec![];
    rising_after_standing: [1, 3, 3, 4] => vec![], vec![];
    ends_do_not_count: [9, 9, 1, 9] => vec![], vec![2];
    two_tides: [0, 5, 1, 1, 6, 6, 2, 3] => vec![1, 4], vec![2, 6];
}
