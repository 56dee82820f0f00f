//! Other names for what is interchangeable.

/// What has names that can be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Processes; workers among each other.
    Owner,
    /// Positions.
    Endpoint,
    /// Conversations.
    Conversation,
    /// Turns, in all conversations alike.
    Turn,
}

impl Class {
    const COUNT: usize = 4;
}

/// The most names that a class has.
const MOST: usize = 16;

/// Another name for each name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming([[u8; MOST]; Class::COUNT]);

impl Naming {
    /// Every name as it is.
    #[must_use]
    pub fn same() -> Self {
        let all = core::array::from_fn(|place| u8::try_from(place).unwrap_or(0));
        Self([all; Class::COUNT])
    }

    pub(super) fn of(&self, class: Class, number: u8) -> u8 {
        self.0[class as usize].get(usize::from(number)).copied().unwrap_or(number)
    }
}

/// Every naming that exchanges the first so many names of each class: the product of all their
/// orders.
#[must_use]
pub fn namings(sizes: &[(Class, u8)]) -> Vec<Naming> {
    let mut all = vec![Naming::same()];
    for (class, size) in sizes {
        let orders = orders(*size);
        all = all
            .iter()
            .flat_map(|naming| {
                orders.iter().map(|order| {
                    let mut naming = naming.clone();
                    naming.0[*class as usize][..order.len()].copy_from_slice(order);
                    naming
                })
            })
            .collect();
    }
    all
}

/// Every order of the first numbers.
fn orders(size: u8) -> Vec<Vec<u8>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(size - 1);
    let grow = |order: &Vec<u8>| {
        (0..=order.len())
            .map(|place| {
                let mut order = order.clone();
                order.insert(place, size - 1);
                order
            })
            .collect::<Vec<_>>()
    };
    shorter.iter().flat_map(grow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_of_all_classes_and_each_once() {
        let all = namings(&[(Class::Owner, 3), (Class::Turn, 2), (Class::Endpoint, 1)]);
        assert_eq!(all.len(), 12);
        for (place, naming) in all.iter().enumerate() {
            assert!(!all[..place].contains(naming));
            let mut names: Vec<u8> = (0..16).map(|name| naming.of(Class::Owner, name)).collect();
            names.sort_unstable();
            assert_eq!(names, (0..16).collect::<Vec<u8>>());
        }
    }
}
