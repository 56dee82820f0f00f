//! pinfold
fn main() {}
