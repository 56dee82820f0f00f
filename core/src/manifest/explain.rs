//! In which fields two manifests differ, for a person to read.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Manifest;
use crate::id::ChainValue;
use crate::layout::{Group, Layout, Member};
use crate::representation::{Difference, differences};

impl Manifest {
    /// Every field in which the two differ; empty exactly when their digests are equal.
    ///
    /// Of two chains only the first block that differs is named, because all later ones follow
    /// from it; of two orders of members, the first place.
    #[must_use]
    pub fn explain(&self, other: &Self) -> Vec<Difference> {
        let mut found = differences(&facts(self), &facts(other));
        found.extend(chain_difference(self.chain(), other.chain()));
        for ours in &self.layout().groups {
            let theirs = other.layout().group(ours.id);
            found.extend(theirs.and_then(|theirs| order_difference(ours, theirs)));
        }
        found
    }
}

type Facts = BTreeMap<String, String>;

/// Everything but the chain and the order of members, flat.
fn facts(manifest: &Manifest) -> Facts {
    let layout = manifest.layout();
    let mut facts = Facts::new();
    let mut say = |field: &str, value: String| facts.insert(field.to_string(), value);
    say("endpoint.tokens", manifest.tokens().to_string());
    say("representation", layout.representation.to_string());
    say("hash_chain", layout.hash_chain.clone());
    say("tokens_per_block", layout.tokens_per_block.to_string());
    say("shards", layout.shards.len().to_string());
    say_frame(layout, &mut facts);
    for group in &layout.groups {
        say_group(group, &mut facts);
    }
    facts
}

fn say_frame(layout: &Layout, facts: &mut Facts) {
    for (index, coordinates) in layout.shards.iter().enumerate() {
        facts.insert(format!("shards.{index}"), coordinates.to_string());
    }
    for row in &layout.roles {
        let replicated = if row.replicated { ", replicated" } else { "" };
        let field = format!("roles.layer {}.{}", row.layer, row.role);
        facts.insert(field, format!("stage {}{replicated}", row.stage));
    }
}

fn say_group(group: &Group, facts: &mut Facts) {
    let mut say = |field: &str, value: String| {
        facts.insert(format!("groups.{}.{field}", group.id), value);
    };
    let shards: Vec<_> = group.shards.iter().map(|shard| shard.0).collect();
    say("shards", format!("{shards:?}"));
    say("coverage", group.coverage.to_string());
    say("sharing", group.sharing.to_string());
    say("scope", group.scope.to_string());
    say("necessity", group.necessity.to_string());
    say("tokens_per_page", group.tokens_per_page.to_string());
    if let Some(window) = group.window_tokens {
        say("window_tokens", window.to_string());
    }
    for Member { layer, role, element, bytes_per_page, scale_of } in &group.members {
        let scale = scale_of.as_ref().map_or_else(String::new, |of| format!(", scale of {of}"));
        let value = format!("{bytes_per_page} bytes of {element}{scale}");
        say(&format!("members.layer {layer}.{role}"), value);
    }
}

fn chain_difference(ours: &[ChainValue], theirs: &[ChainValue]) -> Option<Difference> {
    let same = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
    let show = |chain: &[ChainValue]| chain.get(same).map(ToString::to_string);
    let (ours, theirs) = (show(ours), show(theirs));
    let differs = ours != theirs;
    differs.then(|| Difference { field: format!("chain.block {same}"), ours, theirs })
}

fn order_difference(ours: &Group, theirs: &Group) -> Option<Difference> {
    let show = |member: &Member| format!("layer {} {}", member.layer, member.role);
    let mut pairs = ours.members.iter().zip(&theirs.members).map(|(a, b)| (show(a), show(b)));
    let place = pairs.clone().position(|(ours, theirs)| ours != theirs)?;
    let (ours_here, theirs_here) = pairs.nth(place)?;
    let all = |group: &Group| {
        let mut shown: Vec<_> = group.members.iter().map(show).collect();
        shown.sort_unstable();
        shown
    };
    let reordered = all(ours) == all(theirs);
    reordered.then(|| Difference {
        field: format!("groups.{}.members.order.{place}", ours.id),
        ours: Some(ours_here),
        theirs: Some(theirs_here),
    })
}
