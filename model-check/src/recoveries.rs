//! How the recovery goes on from every state.
//!
//! The first step of a state's recovery is mostly one that is taken anyway, and then the state
//! behind it recovers for both. So each state keeps where its recovery leads, and the ways are
//! followed when all are known: each must come to a state from which the whole recovery was tried,
//! and the longest way there is the worst case.

use crate::tree::Number;

/// How a state recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovers<To> {
    /// Its whole recovery was tried, and took so many steps.
    In(u32),
    /// So many steps lead to a state, which recovers for it.
    Through(u32, To),
}

/// No number of steps.
const UNKNOWN: u32 = u32::MAX;

/// How every state recovers, by number. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Recoveries {
    /// Where it leads; to itself where the whole recovery was tried.
    to: Vec<Number>,
    steps: Vec<u16>,
}

/// A state whose recovery does not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endless(pub(crate) Number);

impl Recoveries {
    pub(crate) fn bytes(&self) -> usize {
        self.to.capacity() * size_of::<Number>() + self.steps.capacity() * size_of::<u16>()
    }

    /// Says how the next state recovers.
    pub(crate) fn add(&mut self, recovers: Recovers<Number>) {
        let itself = Number::try_from(self.to.len()).unwrap_or(Number::MAX);
        let (steps, to) = match recovers {
            Recovers::In(steps) => (steps, itself),
            Recovers::Through(steps, to) => (steps, to),
        };
        self.to.push(to);
        self.steps.push(u16::try_from(steps).unwrap_or(u16::MAX));
    }

    /// The longest recovery, and from which state; where not all states were looked at, of those
    /// whose way is known to its end.
    ///
    /// # Errors
    /// A state from which the way comes back to where it was, or leads nowhere.
    pub(crate) fn longest(&self, is_complete: bool) -> Result<(u32, Number), Endless> {
        let mut known = vec![UNKNOWN; self.to.len()];
        let (mut longest, mut way) = ((0, 0), Vec::new());
        for first in (0..).take(self.to.len()) {
            let mut at = first;
            let mut steps = loop {
                let state = at as usize;
                match self.to.get(state) {
                    None if is_complete => return Err(Endless(first)),
                    None => break UNKNOWN,
                    Some(_) if known[state] != UNKNOWN => break known[state],
                    Some(to) if *to == at => break u32::from(self.steps[state]),
                    Some(to) => at = *to,
                }
                way.push(state);
                if way.len() > self.to.len() {
                    return Err(Endless(first));
                }
            };
            if steps == UNKNOWN {
                way.clear();
                continue;
            }
            known[at as usize] = steps;
            while let Some(state) = way.pop() {
                steps += u32::from(self.steps[state]);
                known[state] = steps;
            }
            longest = longest.max((steps, first));
        }
        Ok(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[Recovers<Number>]) -> Recoveries {
        let mut made = Recoveries::default();
        all.iter().for_each(|it| made.add(*it));
        made
    }

    #[test]
    fn the_longest_way_counts() {
        let ways = of(&[
            Recovers::Through(3, 2),
            Recovers::In(4),
            Recovers::Through(2, 1),
            Recovers::In(8),
            Recovers::Through(50, 9),
        ]);
        assert_eq!(ways.longest(false), Ok((9, 0)));
        assert_eq!(ways.longest(true), Err(Endless(4)), "it leads nowhere");
        assert_eq!(of(&[]).longest(true), Ok((0, 0)));
    }

    #[test]
    fn a_way_that_never_ends_is_found() {
        let ways = of(&[Recovers::In(4), Recovers::Through(1, 2), Recovers::Through(1, 1)]);
        assert_eq!(ways.longest(true), Err(Endless(1)));
    }
}
