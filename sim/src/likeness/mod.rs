//! The canonical form of a World: equal for two Worlds that differ in names alone.
//!
//! A World is told as words, and whatever is a name is a word of its own kind. Numbers that only
//! grow are renamed to their rank among those that are still mentioned; workers, positions, turns
//! and conversations are renamed in every way that changes nothing, and the least digest counts.
//! What has no order of its own is told as a set. So the form does not depend on the way by which a
//! World was reached, and how many there are is a constant of a configuration.

mod dictionary;
mod naming;

use core::hash::Hasher;

use pinfold_core::id::Minted;

pub use dictionary::Dictionary;
use dictionary::Entry;
pub use naming::{Class, Naming, namings};

/// What is counted by each process for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Its transfers.
    Job,
    /// Its lives.
    Life,
    /// Attempts; of no process.
    Attempt,
    /// Its incarnations.
    Incarnation,
}

/// A number that only grows: among which others it counts, and which one it is. In their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grown(u128);

impl Grown {
    /// Of a sort, and in it of one incarnation or process.
    fn new(sort: u64, of: u64, number: u64) -> Self {
        Self(u128::from(sort << 56 | of) << 64 | u128::from(number))
    }

    fn minted(minted: Minted, number: u64) -> Self {
        Self::new(minted as u64, 0, number)
    }

    fn sequence(incarnation: u64, number: u64) -> Self {
        Self::new(SEQUENCE, incarnation, number)
    }

    fn counted(what: Counted, process: u8, number: u64) -> Self {
        Self::new(SEQUENCE + 1 + what as u64, process.into(), number)
    }

    /// What it counts among.
    const fn among(self) -> u128 {
        self.0 >> 64
    }

    const fn is_sequence(self) -> bool {
        self.0 >> 120 == SEQUENCE as u128
    }
}

/// Behind the sorts of what is minted.
const SEQUENCE: u64 = 16;

/// One word of a World.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// A run of words that no naming changes, folded into one.
    Plain(u64),
    Name(Class, u8),
    /// A number that grows, by its place among those that are mentioned.
    Grown(u32),
    /// A set begins, its next item begins, it ends.
    Open,
    Item,
    Close,
}

/// A World as words. See the [module](self).
#[derive(Clone, Debug)]
pub struct Words<'a> {
    dictionary: &'a Dictionary,
    /// How far a sequence's distance from the highest makes a difference.
    window: u64,
    words: Vec<Word>,
    /// Each number that grows once, in the order in which it was first mentioned.
    mentioned: Vec<Grown>,
    incarnation: u64,
    /// Whose each incarnation is.
    owners: Vec<(u64, u8)>,
    /// Room for the ranks, and for the words in which ranks are plain words.
    sorted: Vec<(Grown, u32)>,
    ranks: Vec<u64>,
    ranked: Vec<Word>,
}

impl<'a> Words<'a> {
    /// No words yet.
    #[must_use]
    pub const fn new(dictionary: &'a Dictionary, window: u64) -> Self {
        Self {
            dictionary,
            window,
            words: Vec::new(),
            mentioned: Vec::new(),
            incarnation: 0,
            owners: Vec::new(),
            sorted: Vec::new(),
            ranks: Vec::new(),
            ranked: Vec::new(),
        }
    }

    /// Forgets all words; the room stays.
    pub fn clear(&mut self) {
        self.words.clear();
        self.mentioned.clear();
        self.incarnation = 0;
        self.owners.clear();
    }

    /// A name.
    pub fn name(&mut self, class: Class, number: u8) {
        self.words.push(Word::Name(class, number));
    }

    /// A number that a process counts.
    pub fn counted(&mut self, what: Counted, process: u8, number: u64) {
        self.grown(Grown::counted(what, process, number));
        if what != Counted::Attempt {
            self.name(Class::Owner, process);
        }
    }

    /// Says whose an incarnation is: it counts among those of the same process.
    pub fn owner(&mut self, incarnation: u64, process: u8) {
        self.owners.push((incarnation, process));
    }

    /// Says each of some things, which have no order.
    pub fn set<T>(&mut self, each: impl IntoIterator<Item = T>, mut say: impl FnMut(&mut Self, T)) {
        self.words.push(Word::Open);
        for it in each {
            self.words.push(Word::Item);
            say(self, it);
        }
        self.words.push(Word::Close);
    }

    /// A word that no naming changes.
    fn plain(&mut self, number: u64) {
        push_plain(&mut self.words, number);
    }

    fn grown(&mut self, grown: Grown) {
        let known = self.mentioned.iter().position(|it| *it == grown);
        let place = known.unwrap_or_else(|| {
            self.mentioned.push(grown);
            self.mentioned.len() - 1
        });
        self.words.push(Word::Grown(u32::try_from(place).unwrap_or(u32::MAX)));
    }

    /// The digest of the canonical form: the least one under any of these namings. Another key
    /// gives another digest.
    pub fn digest(&mut self, namings: &[Naming], key: u64) -> u64 {
        self.rank();
        self.put_ranks();
        let least = |some: &[Naming]| match some.len() {
            1 => self.digest_as::<1>(some, key),
            2 => self.digest_as::<2>(some, key),
            3 | 4 => self.digest_as::<4>(some, key),
            _ => self.digest_as::<LANES>(some, key),
        };
        namings.chunks(LANES).map(least).min().unwrap_or(0)
    }

    /// Ranks what grows, from the highest one down. A sequence keeps its distance from the highest
    /// as far as that matters.
    fn rank(&mut self) {
        self.sorted.clear();
        self.sorted.extend(self.mentioned.iter().copied().zip(0..));
        self.sorted.sort_unstable_by_key(|it| core::cmp::Reverse(it.0));
        self.ranks.clear();
        self.ranks.resize(self.mentioned.len(), 0);
        let (mut highest, mut above) = (Grown(0), 0);
        for (grown, place) in &self.sorted {
            if grown.among() != highest.among() {
                (highest, above) = (*grown, 0);
            }
            // Of the same sort, so that the difference is one of numbers.
            let distance = u64::try_from(highest.0 - grown.0).unwrap_or(u64::MAX);
            self.ranks[*place as usize] = match grown.is_sequence() {
                true if distance <= self.window => distance,
                true => self.window + 1 + above,
                false => above,
            };
            above += 1;
        }
    }

    /// Puts its rank in the place of each number that grows.
    fn put_ranks(&mut self) {
        self.ranked.clear();
        for word in &self.words {
            match *word {
                Word::Plain(number) => push_plain(&mut self.ranked, number),
                Word::Grown(place) => push_plain(&mut self.ranked, self.ranks[place as usize]),
                word @ (Word::Name(..) | Word::Open | Word::Item | Word::Close) => {
                    self.ranked.push(word);
                }
            }
        }
    }

    /// The least digest under a few namings, side by side; where there are fewer, the last one
    /// again.
    fn digest_as<const N: usize>(&self, namings: &[Naming], key: u64) -> u64 {
        let namings: [&Naming; N] =
            core::array::from_fn(|lane| &namings[lane.min(namings.len() - 1)]);
        let (mut state, mut outer) = ([key; N], Vec::new());
        let (mut sum, mut items) = ([0_u64; N], 0_u64);
        for word in &self.ranked {
            match *word {
                Word::Plain(number) => state = state.map(|state| mix(state, number)),
                Word::Grown(_) => {}
                Word::Name(class, number) => {
                    for (state, naming) in state.iter_mut().zip(namings) {
                        let name = u64::from(naming.of(class, number));
                        *state = mix(*state, NAMED + (class as u64) * 256 + name);
                    }
                }
                Word::Open => {
                    outer.push((state, sum, items));
                    (sum, items) = ([0; N], 0);
                }
                Word::Item | Word::Close => {
                    if items > 0 {
                        let of = |lane: usize| sum[lane].wrapping_add(mix(state[lane], ITEM));
                        sum = core::array::from_fn(of);
                    }
                    (state, items) = ([key ^ ITEM; N], items + 1);
                    if *word == Word::Close
                        && let Some((before, of_outer, items_of_outer)) = outer.pop()
                    {
                        state =
                            core::array::from_fn(|lane| mix(mix(before[lane], sum[lane]), items));
                        (sum, items) = (of_outer, items_of_outer);
                    }
                }
            }
        }
        state.into_iter().map(|state| mix(state, key)).min().unwrap_or(0)
    }
}

/// How many namings are digested side by side at most: the processor works on several at once.
const LANES: usize = 8;

/// Names and items begin behind the small numbers, and are told from them.
const NAMED: u64 = 0x517c_c1b7_2722_0a95;
const ITEM: u64 = 0x2545_f491_4f6c_dd1d;
const RUN: u64 = 0x1f83_d9ab_fb41_bd6b;

/// Appends a word that no naming changes, to the run of such words where there is one.
fn push_plain(words: &mut Vec<Word>, number: u64) {
    match words.last_mut() {
        Some(Word::Plain(run)) => *run = mix(*run, number),
        _ => words.push(Word::Plain(mix(RUN, number))),
    }
}

/// Folds a word into a state: both halves of a product of 64 bits each.
fn mix(state: u64, word: u64) -> u64 {
    let one = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(one) * 0xd6e8_feb8_6659_fd93;
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(product >> 64).unwrap_or(0);
    (low ^ high).rotate_left(23) ^ state.wrapping_mul(0x9fb2_1c65_1e98_df25)
}

impl Hasher for Words<'_> {
    /// Words are digested under a naming; nobody asks for this.
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some((Entry::Digest(endpoint, geometry), 32)) = bytes
            .first_chunk()
            .and_then(|it| self.dictionary.find(u128::from_be_bytes(*it)))
            .zip(Some(bytes.len()))
        {
            self.name(Class::Endpoint, endpoint);
            self.plain(geometry.into());
            return;
        }
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.plain(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.unsigned_abs() as u64);
    }

    fn write_u128(&mut self, word: u128) {
        match Minted::read(word) {
            Some((Minted::Sequence, number)) => {
                self.grown(Grown::sequence(self.incarnation, number));
            }
            Some((minted, number)) => {
                if minted == Minted::Incarnation {
                    self.incarnation = number;
                }
                let of = self.owners.iter().find(|it| it.0 == number).map(|it| it.1);
                match (minted, of) {
                    // None is no number that grew.
                    (_, _) if number == 0 => self.plain(ITEM),
                    (Minted::Incarnation, Some(process)) => {
                        self.counted(Counted::Incarnation, process, number);
                    }
                    (_, _) => self.grown(Grown::minted(minted, number)),
                }
            }
            None => self.identity(word),
        }
    }
}

impl Words<'_> {
    fn identity(&mut self, word: u128) {
        match self.dictionary.find(word) {
            Some(Entry::Name(class, number)) => self.name(class, number),
            Some(Entry::Attempt(number)) => self.counted(Counted::Attempt, 0, number.into()),
            Some(Entry::Digest(..)) | None => match self.dictionary.life(word) {
                Some((process, life)) => self.counted(Counted::Life, process, life.into()),
                None => {
                    let half = |shift: u32| {
                        u64::try_from(word >> shift & u128::from(u64::MAX)).unwrap_or(0)
                    };
                    self.write_u64(half(64));
                    self.write_u64(half(0));
                }
            },
        }
    }
}
