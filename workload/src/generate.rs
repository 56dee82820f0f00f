//! A seeded generator of chat traces, so that the project needs nobody's data to be tried.
//!
//! It makes what real traces have and replay must bear: conversations of many turns, a few very
//! active ones among many brief ones, system prompts that strangers share, prompts sent again,
//! earlier turns taken up anew, prompts without a full block. The same configuration gives the same
//! bytes on every machine and in every release: it draws from `ChaCha8` alone and only counts in
//! integers. It never imitates a particular trace, and it makes up no texts, only their lengths.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::trace::{Continues, MOONCAKE_BLOCK_TOKENS, Request, Trace};

/// Inclusive bounds of a length in tokens; small lengths are more likely than large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRange {
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}

/// What a generated trace is like; the default is the trace bundled with the project.
///
/// Every `_per_mille` is a chance in thousandths, from 0 to 1,000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorConfig {
    /// Where the random numbers start; another seed is another trace of the same kind.
    pub seed: u64,
    /// How many conversations begin, the short requests included.
    pub conversations: u32,
    /// Mean time from one conversation's beginning to the next one's, in milliseconds.
    pub arrival_mean_ms: u32,
    /// Mean time from an answer's end to the next message of its conversation, in milliseconds.
    pub think_mean_ms: u32,
    /// Time that the answer takes, in milliseconds for each of its tokens.
    pub answer_token_ms: u32,
    /// Lengths in tokens of the system prompts; earlier ones are used by more conversations.
    pub system_tokens: Vec<u32>,
    /// Length of one message of a user.
    pub message_tokens: TokenRange,
    /// Length of one answer.
    pub answer_tokens: TokenRange,
    /// A conversation ends before its prompt exceeds this many tokens.
    pub context_tokens_max: u32,
    /// Most turns of an ordinary conversation, which has from one to this many, evenly.
    pub turns_usual_max: u32,
    /// Most turns of an active conversation, which has from a quarter of it to this many, evenly.
    pub turns_active_max: u32,
    /// How many conversations, short requests aside, are active.
    pub active_per_mille: u32,
    /// How many conversations are a single request without system prompt and without full block.
    pub short_per_mille: u32,
    /// How many turns send the latest prompt again and replace its answer.
    pub regenerate_per_mille: u32,
    /// How many of the other turns go on from one before the latest, which then has two
    /// continuations; possible from the third turn on.
    pub branch_per_mille: u32,
}

impl Default for GeneratorConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            conversations: 350,
            arrival_mean_ms: 10_000,
            think_mean_ms: 45_000,
            answer_token_ms: 20,
            system_tokens: vec![1_000, 800, 60, 3_000],
            message_tokens: TokenRange { min: 12, max: 4_000 },
            answer_tokens: TokenRange { min: 8, max: 1_600 },
            context_tokens_max: 131_072,
            turns_usual_max: 5,
            turns_active_max: 32,
            active_per_mille: 100,
            short_per_mille: 80,
            regenerate_per_mille: 60,
            branch_per_mille: 50,
        }
    }
}

/// Why a configuration gives no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub struct ConfigError {
    /// The field that is wrong.
    pub field: &'static str,
    /// What it should be.
    pub expected: &'static str,
}

impl GeneratorConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let positive = "at least 1";
        let range = "at least 1 token, and a maximum of at least the minimum";
        let chance = "from 0 to 1000";
        let fits = |range: TokenRange| (1..=range.max).contains(&range.min);
        let room = "room for every system prompt with the longest message, and for any answer";
        let first_fits = |system: u32| {
            let first = system.checked_add(self.message_tokens.max);
            first.is_some_and(|first| first <= self.context_tokens_max)
        };
        let rules = [
            ("conversations", positive, self.conversations > 0),
            ("system_tokens", "at least one length", !self.system_tokens.is_empty()),
            ("message_tokens", range, fits(self.message_tokens)),
            ("answer_tokens", range, fits(self.answer_tokens)),
            ("turns_usual_max", positive, self.turns_usual_max > 0),
            ("turns_active_max", positive, self.turns_active_max > 0),
            ("active_per_mille", chance, self.active_per_mille <= 1000),
            ("short_per_mille", chance, self.short_per_mille <= 1000),
            ("regenerate_per_mille", chance, self.regenerate_per_mille <= 1000),
            ("branch_per_mille", chance, self.branch_per_mille <= 1000),
            ("context_tokens_max", room, self.answer_tokens.max <= self.context_tokens_max),
            ("context_tokens_max", room, self.system_tokens.iter().copied().all(first_fits)),
        ];
        match rules.into_iter().find(|&(_, _, kept)| !kept) {
            Some((field, expected, _)) => Err(ConfigError { field, expected }),
            None => Ok(()),
        }
    }
}

/// Generates a trace in blocks of the Mooncake format.
///
/// # Errors
/// [`ConfigError`] for the first field that is out of its range.
pub fn generate(config: &GeneratorConfig) -> Result<Trace, ConfigError> {
    config.check()?;
    let mut generator = Generator::new(config);
    let mut begin_ms = 0;
    for conversation in 0..config.conversations {
        if conversation > 0 {
            begin_ms += generator.draws.wait_ms(config.arrival_mean_ms);
        }
        if generator.draws.chance(config.short_per_mille) {
            generator.short(begin_ms);
        } else {
            generator.conversation(begin_ms);
        }
    }
    Ok(generator.finish())
}

/// Random numbers, all drawn through here.
struct Draws(ChaCha8Rng);

impl Draws {
    /// The seed's eight bytes, least significant first, are the first of the cipher's key; the
    /// others are zero.
    fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number under `bound`; 0 when the bound is.
    fn below(&mut self, bound: u32) -> u32 {
        let scaled = (u64::from(self.0.next_u32()) * u64::from(bound)) >> 32;
        u32::try_from(scaled).unwrap_or(u32::MAX)
    }

    /// True this many times out of a thousand.
    fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < per_mille
    }

    /// A number under `bound`, small ones likelier: the product of two even ones, scaled back.
    fn skewed(&mut self, bound: u32) -> u32 {
        let (a, b) = (self.below(bound), self.below(bound));
        let scaled = (u64::from(a) * u64::from(b)).checked_div(u64::from(bound));
        u32::try_from(scaled.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// A number under `bound`, small ones likelier: the lesser of two even ones.
    fn lesser(&mut self, bound: u32) -> u32 {
        self.below(bound).min(self.below(bound))
    }

    /// A length in this range.
    fn tokens(&mut self, range: TokenRange) -> u32 {
        range.min + self.skewed((range.max - range.min).saturating_add(1))
    }

    /// A wait of about this mean without memory, so that events come as if independent: sixteenths
    /// of the mean are counted until one in sixteen succeeds, and the rest is even.
    fn wait_ms(&mut self, mean_ms: u32) -> u64 {
        let step_ms = mean_ms.div_ceil(16);
        let mut wait_ms = u64::from(self.below(step_ms));
        while self.below(16) > 0 {
            wait_ms += u64::from(step_ms);
        }
        wait_ms
    }
}

/// What a conversation holds at some time: tokens, and the contents of the full blocks they make.
#[derive(Clone, Default)]
struct History {
    tokens: u32,
    full: Vec<u64>,
}

/// A prompt: the blocks of a history, and the content of its last, partial block if it has one.
#[derive(Clone)]
struct Prompt {
    history: History,
    partial: Option<u64>,
}

/// A conversation while it is made.
struct Course {
    now_ms: u64,
    prompt: Prompt,
    /// What was held after each answer, the latest last.
    answered: Vec<History>,
}

struct Generator<'a> {
    config: &'a GeneratorConfig,
    draws: Draws,
    systems: Vec<History>,
    contents: u64,
    requests: Vec<Request>,
}

impl<'a> Generator<'a> {
    fn new(config: &'a GeneratorConfig) -> Self {
        let draws = Draws::new(config.seed);
        let requests = Vec::new();
        let mut new = Self { config, draws, systems: Vec::new(), contents: 0, requests };
        for &tokens in &config.system_tokens {
            let system = new.extended(&History::default(), tokens);
            new.systems.push(system);
        }
        new
    }

    /// A content that no block had before.
    fn content(&mut self) -> u64 {
        self.contents += 1;
        self.contents - 1
    }

    /// A history with more tokens; every block that they fill has a content of its own.
    fn extended(&mut self, history: &History, tokens: u32) -> History {
        let mut longer = history.clone();
        longer.tokens = longer.tokens.saturating_add(tokens);
        let full_count = longer.tokens / MOONCAKE_BLOCK_TOKENS;
        for _ in history.tokens / MOONCAKE_BLOCK_TOKENS..full_count {
            longer.full.push(self.content());
        }
        longer
    }

    /// A prompt of a history and a new message.
    fn prompt(&mut self, history: &History, message_tokens: u32) -> Prompt {
        let history = self.extended(history, message_tokens);
        let partial = !history.tokens.is_multiple_of(MOONCAKE_BLOCK_TOKENS);
        Prompt { partial: partial.then(|| self.content()), history }
    }

    /// A single request without a full block.
    fn short(&mut self, begin_ms: u64) {
        let message_tokens = 1 + self.draws.below(MOONCAKE_BLOCK_TOKENS - 1);
        let prompt = self.prompt(&History::default(), message_tokens);
        self.request(begin_ms, &prompt);
    }

    /// A conversation from its first message on.
    fn conversation(&mut self, begin_ms: u64) {
        let turns = self.turns();
        let systems = u32::try_from(self.systems.len()).unwrap_or(u32::MAX);
        let system = usize::try_from(self.draws.lesser(systems)).unwrap_or(0);
        let system = self.systems[system].clone();
        let message_tokens = self.draws.tokens(self.config.message_tokens);
        let prompt = self.prompt(&system, message_tokens);
        let mut course = Course { now_ms: begin_ms, prompt, answered: Vec::new() };
        self.answer(&mut course);
        for _ in 1..turns {
            let think_ms = self.draws.wait_ms(self.config.think_mean_ms);
            course.now_ms = course.now_ms.saturating_add(think_ms);
            if self.draws.chance(self.config.regenerate_per_mille) {
                course.answered.pop();
            } else {
                let from = self.taken_up(&course.answered);
                let message_tokens = self.draws.tokens(self.config.message_tokens);
                course.prompt = self.prompt(&from, message_tokens);
            }
            if course.prompt.history.tokens > self.config.context_tokens_max {
                break;
            }
            self.answer(&mut course);
        }
    }

    fn turns(&mut self) -> u32 {
        if self.draws.chance(self.config.active_per_mille) {
            let most = self.config.turns_active_max;
            let least = most.div_ceil(4);
            least + self.draws.below(most - least + 1)
        } else {
            1 + self.draws.below(self.config.turns_usual_max)
        }
    }

    /// The history from which a turn goes on: the latest, or by chance one before it.
    fn taken_up(&mut self, answered: &[History]) -> History {
        let latest = u32::try_from(answered.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let anew = latest > 0 && self.draws.chance(self.config.branch_per_mille);
        let place = if anew { self.draws.below(latest) } else { latest };
        answered.get(usize::try_from(place).unwrap_or(usize::MAX)).cloned().unwrap_or_default()
    }

    /// Sends the prompt of a course and takes its answer in.
    fn answer(&mut self, course: &mut Course) {
        let output_tokens = self.request(course.now_ms, &course.prompt);
        let answer_ms = u64::from(output_tokens) * u64::from(self.config.answer_token_ms);
        course.now_ms = course.now_ms.saturating_add(answer_ms);
        let answered = self.extended(&course.prompt.history, output_tokens);
        course.answered.push(answered);
    }

    /// Adds a request; returns the length of its answer.
    fn request(&mut self, arrival_ms: u64, prompt: &Prompt) -> u32 {
        let output_tokens = self.draws.tokens(self.config.answer_tokens);
        let blocks = prompt.history.full.iter().copied().chain(prompt.partial).collect();
        let input_tokens = prompt.history.tokens;
        let continues = Continues::Unsaid;
        self.requests.push(Request { arrival_ms, input_tokens, output_tokens, blocks, continues });
        output_tokens
    }

    /// Orders the requests by arrival, those of one moment as made, so that a turn never precedes
    /// what it continues, and numbers the blocks as they first occur.
    fn finish(self) -> Trace {
        let mut requests = self.requests;
        requests.sort_by_key(|request| request.arrival_ms);
        let contents = usize::try_from(self.contents).unwrap_or(usize::MAX);
        let mut numbers = vec![None; contents];
        let mut unused = 0..;
        for block in requests.iter_mut().flat_map(|request| &mut request.blocks) {
            let place = usize::try_from(*block).unwrap_or(usize::MAX);
            *block = *numbers[place].get_or_insert_with(|| unused.next().unwrap_or(u64::MAX));
        }
        Trace { block_tokens: MOONCAKE_BLOCK_TOKENS, requests }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Figures, link};
    use crate::trace::{read_trace, write_trace};

    fn written(config: &GeneratorConfig) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_trace(&generate(config).unwrap(), &mut bytes).unwrap();
        bytes
    }

    /// FNV-1a with 64 bits.
    fn digest(bytes: &[u8]) -> u64 {
        let step = |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
    }

    /// The vectors come from the cipher's definition, computed apart from this code.
    #[test]
    fn draws_are_golden() {
        let mut draws = Draws::new(0x0102_0304_0506_0708);
        let below: Vec<_> = (0..8).map(|_| draws.below(1000)).collect();
        let skewed: Vec<_> = (0..8).map(|_| draws.skewed(1000)).collect();
        let lesser: Vec<_> = (0..4).map(|_| draws.lesser(1000)).collect();
        let waits: Vec<_> = (0..4).map(|_| draws.wait_ms(1600)).collect();
        assert_eq!(below, [872, 453, 964, 429, 661, 787, 324, 689]);
        assert_eq!(skewed, [161, 720, 114, 514, 344, 245, 428, 287]);
        assert_eq!(lesser, [527, 375, 294, 586]);
        assert_eq!(waits, [873, 2568, 452, 4258]);
        assert_eq!((draws.below(0), draws.skewed(0)), (0, 0));
    }

    #[test]
    fn waits_have_about_their_mean() {
        let mut draws = Draws::new(3);
        let sum: u64 = (0..20_000).map(|_| draws.wait_ms(1600)).sum();
        assert!((1500..1600).contains(&(sum / 20_000)), "{}", sum / 20_000);
    }

    #[test]
    fn every_seed_gives_another_sound_trace() {
        let sizes = GeneratorConfig { conversations: 40, ..GeneratorConfig::default() };
        let mut before = Vec::new();
        for seed in 0..20 {
            let config = GeneratorConfig { seed, ..sizes.clone() };
            let trace = generate(&config).unwrap();
            trace.check().unwrap();
            let longest = trace.requests.iter().map(|request| request.input_tokens).max();
            assert!(longest <= Some(config.context_tokens_max));
            let bytes = written(&config);
            assert_eq!(bytes, written(&config));
            assert_ne!(bytes, before);
            before = bytes;
        }
    }

    #[test]
    fn chances_of_none_and_of_all_are_kept() {
        let plain = GeneratorConfig {
            conversations: 30,
            // One block of system prompt, and messages of more than a block: every turn after the
            // first links to the turn before it, and nothing else does.
            system_tokens: vec![512],
            message_tokens: TokenRange { min: 513, max: 600 },
            active_per_mille: 0,
            short_per_mille: 0,
            regenerate_per_mille: 0,
            branch_per_mille: 0,
            ..GeneratorConfig::default()
        };
        let figures = |config: &GeneratorConfig| {
            let trace = generate(config).unwrap();
            Figures::of(&trace, &link(&trace))
        };
        let found = figures(&plain);
        assert_eq!((found.roots, found.depth_max), (30, 4));
        assert_eq!((found.branching, found.repeats, found.too_short), (0, 0, 0));
        let found = figures(&GeneratorConfig { regenerate_per_mille: 1000, ..plain.clone() });
        assert_eq!((found.roots, found.repeats), (30, found.links));
        let found = figures(&GeneratorConfig { short_per_mille: 1000, ..plain });
        assert_eq!((found.requests, found.too_short), (30, 30));
    }

    #[test]
    fn a_field_out_of_range_is_refused_by_name() {
        let good = GeneratorConfig::default;
        let tokens = |min, max| TokenRange { min, max };
        let cases = [
            ("conversations", GeneratorConfig { conversations: 0, ..good() }),
            ("system_tokens", GeneratorConfig { system_tokens: vec![], ..good() }),
            ("message_tokens", GeneratorConfig { message_tokens: tokens(0, 5), ..good() }),
            ("answer_tokens", GeneratorConfig { answer_tokens: tokens(6, 5), ..good() }),
            ("turns_usual_max", GeneratorConfig { turns_usual_max: 0, ..good() }),
            ("turns_active_max", GeneratorConfig { turns_active_max: 0, ..good() }),
            ("active_per_mille", GeneratorConfig { active_per_mille: 1001, ..good() }),
            ("short_per_mille", GeneratorConfig { short_per_mille: 1001, ..good() }),
            ("regenerate_per_mille", GeneratorConfig { regenerate_per_mille: 1001, ..good() }),
            ("branch_per_mille", GeneratorConfig { branch_per_mille: 1001, ..good() }),
            ("context_tokens_max", GeneratorConfig { context_tokens_max: 6_999, ..good() }),
            ("context_tokens_max", GeneratorConfig { system_tokens: vec![u32::MAX], ..good() }),
        ];
        for (field, config) in cases {
            assert_eq!(generate(&config).unwrap_err().field, field);
        }
        assert!(generate(&GeneratorConfig { context_tokens_max: 7_000, ..good() }).is_ok());
    }

    /// Anyone may rely on these bytes: a change here is a new trace, not a correction.
    #[test]
    fn the_bundled_trace_is_golden() {
        let bytes = written(&GeneratorConfig::default());
        let trace = read_trace(bytes.as_slice()).unwrap();
        assert_eq!(trace, generate(&GeneratorConfig::default()).unwrap());
        let figures = Figures::of(&trace, &link(&trace));
        let known = Figures {
            requests: 1_524,
            span_ms: 4_808_586,
            blocks: 23_734,
            unique_blocks: 5_255,
            hit_per_mille: 779,
            links: 1_126,
            roots: 398,
            depth_max: 28,
            branching: 129,
            repeats: 132,
            too_short: 47,
        };
        assert_eq!(figures, known);
        assert_eq!((bytes.len(), digest(&bytes)), (256_924, 0x6c885c42145f5664));
    }
}
