//! Axes: where a number lies, and which numbers are written beside it.
//!
//! Ticks are round in the unit that a person counts in: decimal for counts, powers of two for
//! bytes. It never writes a number without its unit.

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds; written in the unit that gives small numbers.
    Micros,
    /// Thousandths; written in per cent, and always up to the whole.
    PerMille,
}

/// About how many ticks an axis has at most, zero aside.
const TICKS: u64 = 6;
/// The largest number on an axis: ten times it, rounded up to a tick, stays within 64 bits.
const MOST: u64 = 1 << 59;
/// Units of time in microseconds.
const TIMES: [(u64, &str); 4] = [(1, "µs"), (1000, "ms"), (1_000_000, "s"), (60_000_000, "min")];
const SIZES: [(u64, &str); 6] = [
    (1, "B"),
    (1 << 10, "KiB"),
    (1 << 20, "MiB"),
    (1 << 30, "GiB"),
    (1 << 40, "TiB"),
    (1 << 50, "PiB"),
];

/// An axis with its numbers, from zero.
pub(super) struct Scale {
    unit: Unit,
    most: u64,
    step: u64,
    /// What the written numbers count: one of these, and its name.
    scale: (u64, &'static str),
    ends: (f64, f64),
}

impl Scale {
    /// An axis that ends where its numbers do.
    pub(super) fn tight(unit: Unit, most: u64, ends: (f64, f64)) -> Self {
        // Beyond that, what is drawn is the largest number that can be.
        let most = most.clamp(1, MOST);
        // The largest unit of which there are at least two, so that no tick is a small fraction.
        let fit = |units: &[(u64, &'static str)]| {
            let fitting = units.iter().rev().find(|(size, _)| most / size >= 2);
            fitting.or(units.first()).copied().unwrap_or((1, ""))
        };
        let (scale, step) = match unit {
            Unit::Count => ((1, ""), decimal(most.div_ceil(TICKS))),
            Unit::Bytes => (fit(&SIZES), binary(most.div_ceil(TICKS))),
            Unit::Micros => {
                let (size, name) = fit(&TIMES);
                // Whole tenths of the unit.
                let tenths = (most.saturating_mul(10) / size).div_ceil(TICKS).max(1);
                ((size, name), (decimal(tenths).saturating_mul(size) / 10).max(1))
            }
            Unit::PerMille => ((10, "%"), 250),
        };
        Self { unit, most, step, scale, ends }
    }

    /// An axis that ends at a tick.
    pub(super) fn round(unit: Unit, most: u64, ends: (f64, f64)) -> Self {
        let tight = Self::tight(unit, most, ends);
        let most = tight.most.div_ceil(tight.step).saturating_mul(tight.step);
        Self { most, ..tight }
    }

    /// The numbers that are written, from zero.
    pub(super) fn ticks(&self) -> impl Iterator<Item = u64> {
        let count = self.most / self.step;
        (0..=count).map(|number| number * self.step)
    }

    /// Where a number lies.
    pub(super) fn place(&self, number: u64) -> f64 {
        let part = number.min(self.most) as f64 / self.most as f64;
        self.ends.0 + (self.ends.1 - self.ends.0) * part
    }

    /// A tick's number with its unit.
    pub(super) fn label(&self, tick: u64) -> String {
        let (size, name) = self.scale;
        match self.unit {
            Unit::Count => grouped(tick),
            Unit::Bytes | Unit::Micros | Unit::PerMille => {
                format!("{} {name}", tick as f64 / size as f64)
            }
        }
    }
}

/// The next of 1, 2, 5, 10, 20 and so on.
fn decimal(number: u64) -> u64 {
    let mut ten = 1_u64;
    loop {
        for digit in [1, 2, 5] {
            let step = ten.saturating_mul(digit);
            if step >= number {
                return step;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

/// The next power of two.
fn binary(number: u64) -> u64 {
    number.checked_next_power_of_two().unwrap_or(1 << 63)
}

/// A count in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count in at most four characters: 952, 8.1k, 12k, 3.4M.
pub(super) fn brief(number: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")];
    let Some((size, name)) = units.into_iter().find(|(size, _)| number >= *size) else {
        return number.to_string();
    };
    let tenths = number / (size / 10);
    if tenths < 100 {
        format!("{}.{}{name}", tenths / 10, tenths % 10)
    } else {
        format!("{}{name}", tenths / 10)
    }
}
