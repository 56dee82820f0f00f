//! Which promise an answer breaks that shows another job's genesis.

use pinfold_core::engine::Reply;
use pinfold_core::invariant::Invariant;
use pinfold_core::policy::Genesis;
use pinfold_host::dto::Answer;
use serde_json::Value;

/// The promise behind the first field in which a job's genesis is another one, and what differs.
pub(super) fn blame(found: &Genesis, expected: &Genesis) -> (Invariant, String) {
    let form = |job: &Genesis| serde_json::to_value(Answer::from(Reply::Job(job.clone())));
    let [found, expected] = [found, expected].map(|job| form(job).unwrap_or_default());
    let Some((field, found, expected)) = first_difference(&found["job"], &expected["job"]) else {
        return (Invariant::I11, "the job is another one".to_string());
    };
    let invariant = match field.as_str() {
        "namespace" | "epoch" | "operator" => Invariant::I12,
        "policy.quarantine" => Invariant::I9,
        field if field.starts_with("policy.") => Invariant::I6,
        _ => Invariant::I11,
    };
    (invariant, format!("the job's {field} is {expected}, and was answered as {found}"))
}

/// The first field in which two JSON objects differ, with dots between the names, and its values.
fn first_difference<'a>(
    found: &'a Value,
    expected: &'a Value,
) -> Option<(String, &'a Value, &'a Value)> {
    for (name, expected) in expected.as_object()? {
        let found = &found[name];
        if found != expected {
            let inner = first_difference(found, expected);
            return Some(
                inner.map_or((name.clone(), found, expected), |(field, found, expected)| {
                    (format!("{name}.{field}"), found, expected)
                }),
            );
        }
    }
    None
}
