use itertools::Itertools;

pub fn highs(heights: &[i32]) -> Vec<usize> {
    turns(heights, |here, beside| here > beside)
}

pub fn lows(heights: &[i32]) -> Vec<usize> {
    turns(heights, |here, beside| here < beside)
}

fn turns(heights: &[i32], beyond: fn(i32, i32) -> bool) -> Vec<usize> {
    heights
        .iter()
        .enumerate()
        .dedup_by(|one, other| one.1 == other.1)
        .tuple_windows()
        .filter(|(before, here, after)| beyond(*here.1, *before.1) && beyond(*here.1, *after.1))
        .map(|(_, here, _)| here.0)
        .collect()
}
