//! How large a World is, and what its positions look like.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pinfold_core::id::{ChainValue, Epoch, Id, OwnerId, RepresentationDigest, ShardIndex};
use pinfold_core::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Member, Necessity, RoleRow, Scope, Sharing,
};
use pinfold_core::manifest::Manifest;
use pinfold_core::plan::plan;
use pinfold_core::policy::{Genesis, Limits, Policy};

/// Tokens in a block of every position.
const BLOCK: u32 = 16;

/// The size of a World and the rules of its job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    /// How many workers there are, 1 to 8.
    pub workers: u8,
    /// How many operators, 1 to 2; the first one is genesis'.
    pub operators: u8,
    /// How many positions, 1 to 8.
    pub endpoints: u8,
    /// How many shards every checkpoint has, 1 to 2.
    pub shards: u8,
    /// How many conversations, 1 to 8.
    pub conversations: u8,
    /// How many turns each conversation can have, 1 to 16.
    pub turns: u8,
    /// How many transfers a worker runs at once, 1 to 3.
    pub transfers: u8,
    /// How many times anybody may begin a transfer.
    pub starts: u32,
    /// How many commands a process sends beyond its window, against the rule.
    pub overrun: u32,
    /// How many requests the network holds on to after they arrived, to bring them once more.
    pub remembered: u32,
    /// Every checkpoint has an attention page, which several may share.
    pub pages: bool,
    /// The job's policy at genesis, and the one that `Configure` changes to and fro.
    pub policies: [Policy; 2],
    /// The job's limits.
    pub limits: Limits,
}

impl Default for Setup {
    /// A World of two workers and an operator, with everything that has a number small.
    fn default() -> Self {
        let policy = Policy { turns: 2, ..Policy::default() };
        Self {
            workers: 2,
            operators: 1,
            endpoints: 2,
            shards: 1,
            conversations: 1,
            turns: 4,
            transfers: 1,
            starts: u32::MAX,
            overrun: 0,
            remembered: 6,
            pages: true,
            policies: [policy, Policy { turns: 1, ..policy }],
            limits: Limits { unanswered: 8, ..Limits::default() },
        }
    }
}

impl Setup {
    /// The job that the World begins with.
    #[must_use]
    pub fn genesis(&self) -> Genesis {
        Genesis {
            namespace: namespace(),
            epoch: Epoch::of_name("e1"),
            operator: self.owner(self.workers),
            policy: self.policies[0],
            limits: self.limits,
        }
    }

    /// How many processes there are: workers first, then operators.
    #[must_use]
    pub const fn processes(&self) -> u8 {
        self.workers + self.operators
    }

    /// The name of a process: `w1` and so on, then `op1` and so on.
    #[must_use]
    pub fn process_name(&self, process: u8) -> String {
        match process.checked_sub(self.workers) {
            None => format!("w{}", u16::from(process) + 1),
            Some(operator) => format!("op{}", u16::from(operator) + 1),
        }
    }

    /// The owner that a process is.
    #[must_use]
    pub fn owner(&self, process: u8) -> OwnerId {
        Id::of_name(&self.process_name(process))
    }

    /// True for the processes that are operators.
    #[must_use]
    pub const fn is_operator(&self, process: u8) -> bool {
        process >= self.workers
    }
}

fn namespace() -> pinfold_core::id::Namespace {
    // A fixed text of the allowed form.
    "world".parse().unwrap_or_else(|_| unreachable!("a namespace"))
}

/// How many geometries a position can be saved in.
pub const GEOMETRIES: usize = 3;

/// The manifests of all positions, in all of their geometries.
#[derive(Debug)]
pub struct Library {
    /// By position and geometry. The second has one object more a shard; the third is of the same
    /// shape as the first, and of other elements. Each has a digest of its own.
    manifests: Vec<[Arc<Manifest>; GEOMETRIES]>,
}

impl Library {
    /// The library for a size of World; made once for each.
    #[must_use]
    pub fn of(setup: &Setup) -> Arc<Self> {
        static MADE: Mutex<BTreeMap<(u8, u8, bool), Arc<Library>>> = Mutex::new(BTreeMap::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let size = (setup.endpoints, setup.shards, setup.pages);
        Arc::clone(made.entry(size).or_insert_with(|| Arc::new(Self::new(size))))
    }

    fn new((endpoints, shards, has_pages): (u8, u8, bool)) -> Self {
        let layouts = [(1, "bf16"), (2, "bf16"), (1, "fp16")]
            .map(|(states, element)| layout(u16::from(shards), states, element, has_pages));
        let all = |endpoint: u8| {
            core::array::from_fn(|geometry| Arc::new(manifest(endpoint, &layouts[geometry])))
        };
        Self { manifests: (0..endpoints).map(all).collect() }
    }

    /// The manifest of a position in one of its geometries, from 0.
    #[must_use]
    pub fn manifest(&self, endpoint: u8, geometry: u8) -> &Arc<Manifest> {
        &self.manifests[usize::from(endpoint)][usize::from(geometry) % GEOMETRIES]
    }

    /// How many positions there are.
    #[must_use]
    pub fn endpoints(&self) -> u8 {
        u8::try_from(self.manifests.len()).unwrap_or(u8::MAX)
    }
}

fn layout(shards: u16, states: u16, element: &str, has_pages: bool) -> Layout {
    let all: Vec<ShardIndex> = (0..shards).map(ShardIndex).collect();
    let member = |layer, role: &str| Member {
        layer,
        role: role.to_string(),
        element: element.to_string(),
        bytes_per_page: 64,
        scale_of: None,
    };
    let group = |id, members| Group {
        id: GroupId(id),
        shards: all.clone(),
        coverage: Coverage::EndpointOnly,
        sharing: Sharing::EndpointPrivate,
        scope: Scope::PerShard,
        necessity: Necessity::Required,
        tokens_per_page: BLOCK,
        window_tokens: None,
        members,
    };
    let pages = Group {
        coverage: Coverage::EveryBlock,
        sharing: Sharing::SharedContent,
        ..group(0, vec![member(0, "key")])
    };
    let state = |id: u16| group(id, vec![member(u32::from(id), "ssm_state")]);
    let groups: Vec<Group> =
        has_pages.then_some(pages).into_iter().chain((1..=states).map(state)).collect();
    let row = |member: &Member| RoleRow {
        layer: member.layer,
        role: member.role.clone(),
        stage: 0,
        replicated: false,
    };
    let coordinates = |tensor| Coordinates { tensor, ..Coordinates::default() };
    Layout {
        representation: RepresentationDigest::from_u128(0xbeef),
        hash_chain: "world-v1".to_string(),
        tokens_per_block: BLOCK,
        roles: groups.iter().flat_map(|group| group.members.iter().map(row)).collect(),
        shards: (0..shards).map(coordinates).collect(),
        groups,
    }
}

/// Positions in pairs: the second of each pair continues the first, and shares its page.
fn manifest(endpoint: u8, layout: &Layout) -> Manifest {
    let value = |block: u8| ChainValue::new(&[endpoint / 2 + 1, block]);
    let chain: Result<Vec<_>, _> = (0..2).map(value).collect();
    let tokens = u64::from(BLOCK) * u64::from(endpoint % 2 + 1);
    let planned = chain.ok().and_then(|chain| plan(layout, &chain, tokens, &[]).ok());
    planned.unwrap_or_else(|| unreachable!("a layout that can be planned"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All geometries of a position have its endpoint; no two positions have the same.
    #[test]
    fn positions_differ_and_their_geometries_do_not() {
        for shards in [1, 2] {
            let library = Library::of(&Setup { endpoints: 8, shards, ..Setup::default() });
            let mut endpoints: Vec<_> = (0..library.endpoints())
                .map(|endpoint| {
                    let [one, other, third] =
                        [0, 1, 2].map(|geometry| library.manifest(endpoint, geometry));
                    for another in [other, third] {
                        assert_eq!(one.endpoint().id(), another.endpoint().id());
                        assert_ne!(one.digest(), another.digest());
                    }
                    assert_eq!(one.shape(), third.shape());
                    assert_eq!(one.shape().len(), usize::from(shards));
                    one.endpoint().id()
                })
                .collect();
            endpoints.sort_unstable();
            endpoints.dedup();
            assert_eq!(endpoints.len(), 8);
        }
    }
}
