//! One request of a client.

use pinfold_core::catalog::{Command, Register, Role};
use pinfold_core::engine::{Query, Request};
use pinfold_core::id::{Epoch, Incarnation, OpId, OwnerId, StartId};
use pinfold_core::policy::Policy;
use serde::{Deserialize, Serialize};

use super::command::{CommandForm, QueryForm, RoleForm, optional_policy};
use super::text;

/// A request, and the epoch that its client believes in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The epoch.
    #[serde(with = "text")]
    pub epoch: Epoch,
    /// What is asked.
    pub ask: Ask,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// To be registered.
    Register(#[serde(with = "RegisterForm")] Register),
    /// One command.
    Command(ListedCommand),
    /// Several commands, in order; the first refusal ends them.
    List(Vec<ListedCommand>),
    /// A question, which changes nothing.
    Query(#[serde(with = "QueryForm")] Query),
}

/// One command under its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedCommand {
    /// Its operation.
    #[serde(with = "text")]
    pub op: OpId,
    /// What it asks.
    #[serde(with = "CommandForm")]
    pub command: Command,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Register", deny_unknown_fields)]
struct RegisterForm {
    #[serde(with = "text")]
    owner: OwnerId,
    #[serde(with = "RoleForm")]
    role: Role,
    after: Incarnation,
    #[serde(with = "text")]
    start: StartId,
    version: u32,
    #[serde(with = "optional_policy", default)]
    expected_policy: Option<Policy>,
}

impl From<Request> for Ask {
    fn from(request: Request) -> Self {
        match request {
            Request::Register(register) => Self::Register(register),
            Request::Command(op, command) => Self::Command(ListedCommand { op, command }),
            Request::List(commands) => {
                let listed = |(op, command)| ListedCommand { op, command };
                Self::List(commands.into_iter().map(listed).collect())
            }
            Request::Query(query) => Self::Query(query),
        }
    }
}

impl From<Ask> for Request {
    fn from(ask: Ask) -> Self {
        match ask {
            Ask::Register(register) => Self::Register(register),
            Ask::Command(ListedCommand { op, command }) => Self::Command(op, command),
            Ask::List(commands) => {
                let pair = |ListedCommand { op, command }| (op, command);
                Self::List(commands.into_iter().map(pair).collect())
            }
            Ask::Query(query) => Self::Query(query),
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_core::catalog::PROTOCOL_VERSION;

    use super::*;

    fn back(request: &Request, text: &str) {
        let call = Call { epoch: Epoch::from_u128(0xE), ask: Ask::from(request.clone()) };
        let written = serde_json::to_string(&call).unwrap();
        let expected = format!(r#"{{"epoch":"{}e","ask":{text}}}"#, "0".repeat(31));
        assert_eq!(written, expected);
        let read: Call = serde_json::from_str(&written).unwrap();
        assert_eq!(Request::from(read.ask), *request);
    }

    #[test]
    fn every_request_is_read_as_it_was_written() {
        let owner = OwnerId::from_u128(0xA);
        let id = format!("{}a", "0".repeat(31));
        let (start, policy) = (format!(r#""start":"{id}""#), r#""expected_policy":null"#);
        let register = Register {
            owner,
            role: Role::Worker,
            after: Incarnation(2),
            start: StartId::from_u128(0xA),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        };
        let rest = format!(r#""role":"worker","after":2,{start},"version":1,{policy}"#);
        let expected = format!(r#"{{"register":{{"owner":"{id}",{rest}}}}}"#);
        back(&Request::Register(register), &expected);
        let op = OpId { owner, incarnation: Incarnation(3), sequence: 4 };
        let command = Command::Collect { limit: 5 };
        let one = format!(r#"{{"op":"{id}.3.4","command":{{"collect":{{"limit":5}}}}}}"#);
        back(&Request::Command(op, command.clone()), &format!(r#"{{"command":{one}}}"#));
        back(&Request::List(vec![(op, command)]), &format!(r#"{{"list":[{one}]}}"#));
        back(&Request::Query(Query::Job), r#"{"query":"job"}"#);
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for wrong in [
            r#"{"epoch":"e","ask":{"query":"job"}}"#,
            r#"{"epoch":"0000000000000000000000000000000e","ask":{"query":"everything"}}"#,
            r#"{"epoch":"0000000000000000000000000000000e","ask":{"query":"job"},"more":1}"#,
        ] {
            assert!(serde_json::from_str::<Call>(wrong).is_err(), "{wrong}");
        }
    }
}
