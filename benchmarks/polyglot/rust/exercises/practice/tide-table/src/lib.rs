pub fn highs(heights: &[i32]) -> Vec<usize> {
    todo!("high waters of {heights:?}")
}

pub fn lows(heights: &[i32]) -> Vec<usize> {
    todo!("low waters of {heights:?}")
}
